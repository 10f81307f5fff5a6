/* Components, etcd, the operating system, and what Kubespray installed on top. */
#include "base/quote.h"
#include "config/kubespray/kubespray_impl.h"

/* ["A=true", "B=false"], or {A: true} */
static void feature_gates(struct spray *k)
{
        const struct tree *t = spray_var(k, "kube_feature_gates");
        struct spray_section section;
        struct index seen CLEANUP(index_release) = { 0 };
        if (t && t->count && !k->same_version) /* one gate too many, and no component starts */
                return spray_note(k,
                        "kube_feature_gates are left out: gates of another version may have been removed, and components do not start with an unknown gate");
        spray_begin(k, &section, "featureGates");
        tree_each (c, t) {
                const char *text = spray_scalar(k, k->seat[0], c, "kube_feature_gates");
                const char *equals = text && !c->key ? strchr(text, '=') : NULL,
                           *value = c->key   ? text
                                    : equals ? equals + 1
                                             : NULL;
                const char *name = c->key   ? c->key
                                   : equals ? arena_strndup(k->arena, text, (size_t)(equals - text))
                                            : "";
                if (!value || (strcasecmp(value, "true") && strcasecmp(value, "false")) || !*name)
                        spray_note(k,
                                "the feature gate %s is left out: it is not NAME=true or NAME=false",
                                text ? text : "");
                else if (!index_put(&seen, name, k)) {
                        str_addf(k->out, "%*s", k->indent, "");
                        quote_yaml(k->out, name);
                        str_addf(k->out, ": %s\n", strcasecmp(value, "true") ? "false" : "true");
                }
        }
        spray_end(k, &section);
}

/* A key may stand in a map once; the first one stays. */
static void field_once(struct spray *k, struct index *seen, const char *name, const char *value)
{
        if (!index_put(seen, name, k))
                spray_field(k, name, value);
        else
                spray_note(k, "%s was set twice, also to %s", name, value);
}

/* A map of flags, as {name: value} or [{name: …, value: …}]. */
static void flags(struct spray *k, struct index *seen, const char *var)
{
        tree_each (c, spray_var(k, var)) {
                const char *name =
                        c->key ? c->key : spray_scalar(k, k->seat[0], tree_get(c, "name"), var);
                const char *value =
                        spray_scalar(k, k->seat[0], c->key ? c : tree_get(c, "value"), var);
                if (name && value)
                        field_once(k, seen, name, value);
        }
}

/* ["--name=value"] */
static void flag_words(struct spray *k, struct index *seen, const char *var)
{
        struct strings s = spray_list(k, var);
        for (size_t i = 0; i < s.n; i++) {
                const char *name = s.v[i] + strspn(s.v[i], "-"), *equals = strchr(name, '=');
                char *bare = arena_strndup(
                        k->arena, name, equals ? (size_t)(equals - name) : strlen(name));
                if (*bare)
                        field_once(k, seen, bare, equals ? equals + 1 : "true");
        }
}

static void component(struct spray *k, const char *name, const char *var)
{
        struct index seen CLEANUP(index_release) = { 0 };
        struct spray_section section, inner;
        spray_begin(k, &section, name);
        spray_begin(k, &inner, "flags");
        const char *ports =
                streq(name, "apiserver") ? spray_text(k, "kube_apiserver_node_port_range") : NULL;
        if (ports)
                field_once(k, &seen, "service-node-port-range", ports);
        flags(k, &seen, var);
        spray_end(k, &inner);
        spray_end(k, &section);
}

/* Kubespray counts what it reserves in four variables each. */
static void kubespray_parts_reserved(struct spray *k, const char *what, const char *field)
{
        static const struct {
                const char *infix, *resource;
        } kinds[] = { { "cpu", "cpu" }, { "memory", "memory" },
                { "ephemeral_storage", "ephemeral-storage" }, { "pid", "pid" } };
        struct spray_section section;
        spray_begin(k, &section, field);
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                const char *v = spray_text(
                        k, arena_printf(k->arena, "%s_%s_reserved", what, kinds[i].infix));
                if (v)
                        spray_field(k, kinds[i].resource, v);
        }
        spray_end(k, &section);
}

static void kubelet_config(struct spray *k)
{
        struct str json CLEANUP(str_release) = { 0 };
        const struct tree *t = spray_var(k, "kubelet_config_extra_args");
        if (!t || t->kind != TREE_MAP || !t->count)
                return;
        tree_json(&json, t);
        if (strstr(str_text(&json), "{{") || strstr(str_text(&json), "{%") || json.len > 4096)
                return spray_note(k,
                        "kubelet_config_extra_args has Jinja expressions that only Ansible can evaluate: write the values under components.kubelet.config");
        str_addf(k->out, "%*sconfig: %s\n", k->indent, "", json.data);
}

static void kubelet(struct spray *k)
{
        static const struct spray_row max_pods = { "kubelet_max_pods", "maxPods", HOW_NUMBER, "110",
                1, 10000 };
        struct index signals CLEANUP(index_release) = { 0 }, words CLEANUP(index_release) = { 0 };
        struct spray_section section, inner;
        spray_begin(k, &section, "kubelet");
        spray_rows(k, &max_pods, 1);
        if (spray_true(k, "system_reserved"))
                kubespray_parts_reserved(k, "system", "systemReserved");
        if (spray_true(k, "kube_reserved"))
                kubespray_parts_reserved(k, "kube", "kubeReserved");
        spray_begin(k, &inner, "evictionHard");
        flags(k, &signals, "eviction_hard");
        spray_end(k, &inner);
        spray_begin(k, &inner, "flags");
        flag_words(k, &words, "kubelet_custom_flags");
        spray_end(k, &inner);
        kubelet_config(k);
        spray_end(k, &section);
}

static void components(struct spray *k)
{
        struct spray_section section;
        spray_begin(k, &section, "components");
        component(k, "apiserver", "kube_kubeadm_apiserver_extra_args");
        component(k, "controllerManager", "kube_kubeadm_controller_extra_args");
        component(k, "scheduler", "kube_kubeadm_scheduler_extra_args");
        kubelet(k);
        spray_end(k, &section);
}

static void kubespray_parts_etcd(struct spray *k)
{
        static const struct spray_row rows[] = {
                { "etcd_data_dir", "dataDir", HOW_PATH, "/var/lib/etcd" },
                { "etcd_quota_backend_bytes", "quota", HOW_BYTES },
                { "etcd_heartbeat_interval", "heartbeat", HOW_MILLIS, NULL, 10, 10000 },
                { "etcd_election_timeout", "election", HOW_MILLIS, NULL, 50, 50000 },
        };
        const char *type = spray_text(k, "etcd_deployment_type");
        struct spray_section section;
        spray_begin(k, &section, "etcd");
        spray_rows(k, rows, ARRAY_SIZE(rows));
        if (type && !streq(type, "host") && !streq(type, "kubeadm"))
                spray_note(k, "etcd ran in %s: here it is a systemd service", type);
        spray_end(k, &section);
}

/* [{name: net.…, value: 1}] */
static void kubespray_parts_sysctls(struct spray *k)
{
        struct index seen CLEANUP(index_release) = { 0 };
        struct spray_section section;
        spray_begin(k, &section, "sysctls");
        tree_each (c, spray_var(k, "additional_sysctl")) {
                const char *name =
                        spray_scalar(k, k->seat[0], tree_get(c, "name"), "additional_sysctl");
                const char *value =
                        spray_scalar(k, k->seat[0], tree_get(c, "value"), "additional_sysctl");
                if (name && value)
                        field_once(k, &seen, name, value);
        }
        spray_end(k, &section);
}

static void os(struct spray *k)
{
        struct spray_section section;
        spray_begin(k, &section, "os");
        if (spray_true(k, "ntp_enabled")) {
                struct strings words = spray_list(k, "ntp_servers"),
                               hosts = { 0, arena_array(k->arena, const char *, words.n + 1) };
                for (size_t i = 0; i < words.n; i++) /* "0.pool.ntp.org iburst" */
                        hosts.v[hosts.n++] =
                                arena_strndup(k->arena, words.v[i], strcspn(words.v[i], " \t"));
                spray_words(k, "ntp", &hosts);
        }
        kubespray_parts_sysctls(k);
        spray_end(k, &section);
}

static void upgrade(struct spray *k)
{
        static const struct spray_row rows[] = { { "drain_timeout", "drainTimeout",
                HOW_DURATION } };
        struct spray_section section;
        spray_begin(k, &section, "upgrade");
        spray_rows(k, rows, ARRAY_SIZE(rows));
        spray_end(k, &section);
}

void spray_parts(struct spray *k)
{
        feature_gates(k);
        components(k);
        kubespray_parts_etcd(k);
        os(k);
        upgrade(k);
}

/* ---- what was installed on top ---- */

static const struct {
        const char *var;
        const char *addon; /* of services.addons; NULL: it has no counterpart */
        const char *what;  /* a note; NULL: the addon is the same */
} addons[] = {
        { "argocd_enabled", NULL, "add Argo CD's chart to services.charts" },
        { "cert_manager_enabled", "cert-manager", NULL },
        { "cephfs_provisioner_enabled", NULL,
                "its successor is the addon ceph-csi-cephfs: add it to services.addons, with the Ceph cluster's monitors in values" },
        { "cinder_csi_enabled", NULL, "add the chart openstack-cinder-csi to services.charts" },
        { "dashboard_enabled", "headlamp",
                "the dashboard was archived in 2026; Headlamp takes its place" },
        { "gateway_api_enabled", NULL,
                "the addons envoy-gateway (services.addons) and others bring its definitions" },
        { "helm_enabled", NULL, "helm runs on your own computer, and tiller was removed" },
        { "ingress_alb_enabled", NULL,
                "add the chart aws-load-balancer-controller to services.charts" },
        { "ingress_nginx_enabled", NULL,
                "ingress-nginx was retired in 2026; the addons traefik and envoy-gateway (services.addons) take its place" },
        { "krew_enabled", NULL, "it belongs on your own computer" },
        { "kube_network_plugin_multus", NULL, "apply multus' manifest with kubectl" },
        { "kube_vip_services_enabled", NULL,
                "the addon metallb (services.addons) assigns addresses to Services" },
        { "local_path_provisioner_enabled", "local-path", NULL },
        { "local_volume_provisioner_enabled", NULL, "add its chart to services.charts" },
        { "metallb_enabled", "metallb",
                "its address ranges are not converted: create an IPAddressPool and an L2Advertisement once it runs" },
        { "metrics_server_enabled", "metrics-server", NULL },
        { "node_feature_discovery_enabled", "node-feature-discovery", NULL },
        { "persistent_volumes_enabled", NULL,
                "add the chart of your CSI driver to services.charts" },
        { "rbd_provisioner_enabled", NULL,
                "its successor is the addon ceph-csi-rbd: add it to services.addons, with the Ceph cluster's monitors in values" },
        { "registry_enabled", NULL, "add the chart of a registry to services.charts" },
};

static void spray_named_addons(struct spray *k)
{
        struct strings names = { 0, arena_array(k->arena, const char *, ARRAY_SIZE(addons)) };
        struct spray_section section;
        spray_begin(k, &section, "services");
        for (size_t i = 0; i < ARRAY_SIZE(addons); i++) {
                if (!spray_true(k, addons[i].var))
                        continue;
                if (addons[i].addon)
                        names.v[names.n++] = addons[i].addon;
                if (addons[i].what)
                        spray_note(k, "%s was on: %s", addons[i].var, addons[i].what);
        }
        if (names.n)
                spray_words(k, "addons", &names);
        spray_end(k, &section);
}

void spray_addons(struct spray *k)
{
        const char *cloud = spray_text(k, "cloud_provider"),
                   *external = spray_text(k, "external_cloud_provider");
        spray_named_addons(k);
        if (cloud && !streq(cloud, "none"))
                spray_note(k,
                        "cloud_provider was %s: in-tree cloud providers were removed in Kubernetes 1.31; install its cloud controller manager with helm or "
                        "kubectl",
                        external && streq(cloud, "external") ? external : cloud);
}
