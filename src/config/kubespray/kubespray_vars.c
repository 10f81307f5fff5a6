/* Variables of the inventory: whose value counts, Jinja's plain references, and lines of YAML made
 * from them. */
#include <ctype.h>

#include "base/quote.h"
#include "base/utf8.h"
#include "config/kubespray/kubespray_impl.h"

#define MAX_VALUE     4096 /* bytes of one value after references are filled in */
#define MAX_LOOKUPS   256  /* references followed for one value */
#define MAX_NESTED    8    /* a reference to a reference to … */
#define MAX_LEFTOVERS 60   /* names listed */

static bool resolve(struct spray *k, const struct inventory_host *h, const char *text, int depth,
        struct str *out);

/* The value of NAME or NAME.KEY in {{ … }}; NULL when it is more than that or is not known. */
static const struct tree *kubespray_vars_reference(
        struct spray *k, const struct inventory_host *h, const char *expr, size_t n)
{
        char name[128];
        size_t len = 0;
        while (len < n && (isalnum((unsigned char)expr[len]) || expr[len] == '_'))
                len++;
        if (!len || len >= sizeof(name))
                return NULL;
        memcpy(name, expr, len);
        name[len] = 0;
        const struct tree *t = inventory_get(k->inv, h, name);
        if (len == n || !t)
                return len == n ? t : NULL;
        if (expr[len] != '.' || n - len >= sizeof(name))
                return NULL;
        memcpy(name, expr + len + 1, n - len - 1);
        name[n - len - 1] = 0;
        return tree_get(t, name);
}

static bool kubespray_vars_fill_in(struct spray *k, const struct inventory_host *h,
        const char *expr, size_t n, int depth, struct str *out)
{
        while (n && isspace((unsigned char)*expr))
                expr++, n--;
        while (n && isspace((unsigned char)expr[n - 1]))
                n--;
        if (n == strlen("inventory_hostname") && !memcmp(expr, "inventory_hostname", n)) {
                str_add(out, h->name);
                return true;
        }
        if (depth == MAX_NESTED || !k->budget || !k->budget--)
                return false;
        const struct tree *t = kubespray_vars_reference(k, h, expr, n);
        return t && t->kind == TREE_SCALAR && resolve(k, h, t->text, depth + 1, out);
}

static bool resolve(struct spray *k, const struct inventory_host *h, const char *text, int depth,
        struct str *out)
{
        for (const char *open; (open = strstr(text, "{{"));) {
                const char *close = strstr(open, "}}");
                if (!close)
                        return false;
                str_addn(out, text, (size_t)(open - text));
                if (!kubespray_vars_fill_in(k, h, open + 2, (size_t)(close - open - 2), depth, out))
                        return false;
                text = close + 2;
        }
        str_add(out, text);
        return out->len <= MAX_VALUE && !strstr(text, "{%") && !strstr(text, "{{");
}

const char *spray_scalar(
        struct spray *k, const struct inventory_host *h, const struct tree *t, const char *name)
{
        struct str s CLEANUP(str_release) = { 0 };
        if (!t || t->kind != TREE_SCALAR)
                return NULL;
        k->budget = MAX_LOOKUPS;
        if (strlen(t->text) > MAX_VALUE || !resolve(k, h, t->text, 0, &s)) {
                spray_note(k, "%s is a Jinja expression that only Ansible can evaluate: %s", name,
                        t->text);
                return NULL;
        }
        return s.len ? arena_strdup(k->arena, s.data) : NULL;
}

static const struct tree *lookup(
        struct spray *k, const char *name, const struct inventory_host **from)
{
        index_put(&k->asked, name, k);
        for (size_t i = 0; i < ARRAY_SIZE(k->seat); i++) {
                const struct tree *t = k->seat[i] ? inventory_get(k->inv, k->seat[i], name) : NULL;
                *from = k->seat[i];
                if (t)
                        return t->kind == TREE_NULL ? NULL : t;
        }
        *from = k->seat[0];
        return NULL;
}

const struct tree *spray_var(struct spray *k, const char *name)
{
        const struct inventory_host *from;
        return lookup(k, name, &from);
}

const char *spray_text(struct spray *k, const char *name)
{
        const struct inventory_host *from;
        const struct tree *t = lookup(k, name, &from);
        return spray_scalar(k, from, t, name);
}

const char *spray_host_text(struct spray *k, const struct inventory_host *h, const char *name)
{
        index_put(&k->asked, name, k);
        return spray_scalar(k, h, inventory_get(k->inv, h, name), name);
}

static bool is_true(const char *text)
{
        static const char *const words[] = { "true", "yes", "on", "1", "y", "t" };
        for (size_t i = 0; text && i < ARRAY_SIZE(words); i++)
                if (!strcasecmp(text, words[i]))
                        return true;
        return false;
}

bool spray_true(struct spray *k, const char *name) { return is_true(spray_text(k, name)); }

static void add_string(struct arena *a, struct strings *s, const char *v)
{
        if (!(s->n & (s->n - 1))) { /* full at every power of two */
                const char **bigger = arena_array(a, const char *, s->n ? s->n * 2 : 1);
                if (s->n)
                        memcpy(bigger, s->v, s->n * sizeof(*bigger));
                s->v = bigger;
        }
        s->v[s->n++] = v;
}

struct strings spray_list(struct spray *k, const char *name)
{
        const struct inventory_host *from;
        const struct tree *t = lookup(k, name, &from);
        struct strings s = { 0 };
        if (t && t->kind == TREE_LIST)
                tree_each (c, t) {
                        const char *v = spray_scalar(k, from, c, name);
                        if (v)
                                add_string(k->arena, &s, v);
                }
        const char *text = t && t->kind == TREE_SCALAR ? spray_scalar(k, from, t, name) : NULL;
        for (size_t n; text && *text; text += n) {
                text += strspn(text, ", \t\n");
                n = strcspn(text, ", \t\n");
                if (n)
                        add_string(k->arena, &s, arena_strndup(k->arena, text, n));
        }
        return s;
}

/* ---- what nobody asked for ---- */

/* Set in every inventory copied from Kubespray's sample, and of no meaning here: they say how
 * Kubespray itself works. */
static const char *const unimportant[] = {
        "ansible_become",
        "bootstrap_os",
        "kube_image_repo",
        "gcr_image_repo",
        "github_image_repo",
        "docker_image_repo",
        "quay_image_repo",
        "kube_vip_arp_enabled",
        "kube_vip_controlplane_enabled",
        "ansible_connection",
        "ansible_become_method",
        "ansible_python_interpreter",
        "ansible_ssh_extra_args",
        "auto_renew_certificates",
        "bin_dir",
        "calico_cni_name",
        "cert_management",
        "cluster_id",
        "coredns_k8s_external_zone",
        "credentials_dir",
        "default_kubelet_config_dir",
        "deploy_container_engine",
        "dns_mode",
        "docker_dns_servers_strict",
        "docker_daemon_graph",
        "docker_storage_options",
        "docker_options",
        "docker_bin_dir",
        "docker_log_opts",
        "docker_iptables_enabled",
        "docker_cgroup_driver",
        "docker_rpm_keepcache",
        "docker_container_storage_setup",
        "download_container",
        "download_run_once",
        "download_localhost",
        "download_always_pull",
        "download_cache_dir",
        "enable_network_policy",
        "etcd_kubeadm_enabled",
        "etcd_member_name",
        "event_ttl_duration",
        "ignore_assert_errors",
        "k8s_image_pull_policy",
        "kube_api_anonymous_auth",
        /* with kube_pod_security_use_default; the rest of these five is what hardening: cis sets */
        "kube_pod_security_default_enforce",
        "kube_pod_security_exemptions_namespaces",
        "kubelet_protect_kernel_defaults",
        "kubelet_seccomp_default",
        "tls_cipher_suites",
        "tls_min_version",
        "kube_apiserver_ip",
        "kube_apiserver_insecure_port",
        "kube_cert_dir",
        "kube_cert_group",
        "kube_config_dir",
        "kube_log_level",
        "kube_manifest_dir",
        "kube_owner",
        "kube_proxy_nodeport_addresses",
        "kube_proxy_strict_arp",
        "kube_script_dir",
        "kube_token_dir",
        "kube_users_dir",
        "kubeadm_certificate_key",
        "kubeadm_patches",
        "kubeadm_patches_dir",
        "kubeadm_enabled",
        "kubeconfig_localhost",
        "kubectl_localhost",
        "kubelet_deployment_type",
        "kubelet_cgroups_per_qos",
        "kubelet_enforce_node_allocatable",
        "loadbalancer_apiserver_healthcheck_port",
        "loadbalancer_apiserver_localhost",
        "loadbalancer_apiserver_port",
        "loadbalancer_apiserver_type",
        "local_release_dir",
        "metallb_namespace",
        "metallb_speaker_enabled",
        "ndots",
        "nodelocaldns_bind_metrics_host_ip",
        "nodelocaldns_health_port",
        "nodelocaldns_ip",
        "nodelocaldns_second_health_port",
        "nodelocaldns_secondary_skew_seconds",
        "ping_access_ip",
        "resolvconf_mode",
        "retry_stagger",
        "skydns_server",
        "skydns_server_secondary",
        "supersede_nameserver",
        "vault_deployment_type",
        "volume_cross_zone_attachment",
        "kube_version_min_required",
        "helm_deployment_type",
        "kube_pods_subnet_ipv6",
        "kube_service_addresses_ipv6",
        "kube_network_node_prefix_ipv6",
        "cluster_name",
        "ntp_servers",
        "ntp_manage_config",
        "ansible_host_key_checking",
        "audit_log_maxage",
        "audit_log_maxbackups",
        "audit_log_maxsize",
        "audit_log_path",
        "kube_vip_address",
        "kube_vip_interface",
        "system_memory_reserved",
        "system_cpu_reserved",
        "system_ephemeral_storage_reserved",
        "system_pid_reserved",
        "kube_memory_reserved",
        "kube_cpu_reserved",
        "kube_ephemeral_storage_reserved",
        "kube_pid_reserved",
};

/* Off, empty or null: nothing is lost with it. */
static bool says_nothing(const struct tree *t)
{
        if (t->kind == TREE_NULL)
                return true;
        if (t->kind != TREE_SCALAR)
                return !t->count;
        return !*t->text || !strcasecmp(t->text, "false") || !strcasecmp(t->text, "no") ||
               !strcasecmp(t->text, "none") || !strcasecmp(t->text, "off");
}

/* Variables of a pod network; words: those that it is for. */
static const struct {
        const char *prefix, *plugins;
} spray_fabric_vars[] = {
        { "calico_", "calico canal" },
        { "typha_", "calico canal" },
        { "canal_", "canal" },
        { "cilium_", "cilium" },
        { "flannel_", "flannel canal" },
        { "kube_ovn_", "kube-ovn" },
        { "kube_router_", "kube-router" },
        { "macvlan_", "macvlan" },
        { "enable_nat_default_gateway", "macvlan" },
        { "weave_", "weave" },
};

/* Variables of something that PREFIXenabled switches on. */
static const char *const spray_switched_vars[] = { "argocd_", "aws_ebs_csi_", "azure_csi_",
        "cephfs_provisioner_", "cert_manager_", "cinder_csi_", "dashboard_", "gateway_api_",
        "ingress_alb_", "ingress_nginx_", "krew_", "kube_vip_", "local_path_provisioner_",
        "local_volume_provisioner_", "metallb_", "metrics_server_", "node_feature_discovery_",
        "rbd_provisioner_", "vsphere_csi_" };

/* Kubespray's sample sets them for everything that there is: those of what the cluster does not
 * have say nothing. */
static bool of_something_else(struct spray *k, const char *name)
{
        const char *plugin = spray_text(k, "kube_network_plugin"), *prefix;
        for (size_t i = 0; i < ARRAY_SIZE(spray_fabric_vars); i++)
                if (has_prefix(name, spray_fabric_vars[i].prefix))
                        return !strstr(spray_fabric_vars[i].plugins, plugin ? plugin : "calico");
        for (size_t i = 0; i < ARRAY_SIZE(spray_switched_vars); i++)
                if (has_prefix(name, prefix = spray_switched_vars[i]))
                        return !spray_true(k, arena_printf(k->arena, "%senabled", prefix));
        return false;
}

struct leftovers {
        struct spray *k;
        struct index seen;
        struct str names;
        size_t n;
};

static void leftover_vars(struct leftovers *l, const struct inventory_var *v)
{
        for (; v; v = v->next) {
                if (says_nothing(v->value) || index_get(&l->k->asked, v->name) ||
                        of_something_else(l->k, v->name) || index_put(&l->seen, v->name, l))
                        continue;
                if (++l->n > MAX_LEFTOVERS)
                        continue;
                str_add(&l->names, l->n > 1 ? ", " : "");
                text_harmless(&l->names, v->name, 80);
        }
}

/* Long lines of names are broken between words. */
static void wrapped_comment(struct spray *k, const char *text)
{
        while (*text) {
                size_t n = strlen(text);
                if (n > 120)
                        for (n = 120; n > 1 && text[n - 1] != ' '; n--)
                                ;
                n = n > 1 ? n : strlen(text);
                spray_comment(k, "  %.*s", (int)n, text);
                text += n;
        }
}

void spray_leftovers(struct spray *k)
{
        struct leftovers l = { .k = k };
        for (size_t i = 0; i < ARRAY_SIZE(unimportant); i++)
                index_put(&k->asked, unimportant[i], k);
        for (const struct inventory_group *g = k->inv->groups; g; g = g->next)
                leftover_vars(&l, g->vars);
        for (const struct inventory_host *h = k->inv->hosts; h; h = h->next)
                leftover_vars(&l, h->vars);
        if (l.n > MAX_LEFTOVERS)
                str_addf(&l.names, " and %zu more", l.n - MAX_LEFTOVERS);
        if (l.n) {
                str_addc(k->out, '\n');
                spray_note(k,
                        "%zu variable%s of the inventory %s no equivalent in cluster.yaml: see the end of the file",
                        l.n, l.n == 1 ? "" : "s", l.n == 1 ? "has" : "have");
                wrapped_comment(k, str_text(&l.names));
        }
        str_release(&l.names);
        index_release(&l.seen);
}
