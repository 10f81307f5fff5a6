/* The static pods of the control plane: kubeadm's flags and mounts, options of cluster.yaml, and
 * the user's flags, which override both. */
#include "config/addon.h"
#include "node/context.h"

#define YEAR        (INT64_C(365) * 86400) /* default of cluster-signing-duration */
#define PKI         "/etc/kubernetes/pki/"
#define MAX_FLAGS   96
#define MAX_VOLUMES 16

struct flags {
        size_t n;
        struct pair v[MAX_FLAGS];
};

static void flag_add(struct flags *f, const char *name, const char *value)
{
        if (f->n == MAX_FLAGS)
                abort();
        f->v[f->n++] = (struct pair){ name, value };
}

static void flags_add(struct flags *f, const struct pair *table, size_t n)
{
        for (size_t i = 0; i < n; i++)
                flag_add(f, table[i].key, table[i].value);
}

static void flag_long(const struct context *x, struct flags *f, const char *name, long value)
{
        flag_add(f, name, arena_printf(x->arena, "%ld", value));
}

static bool user_sets(const struct pairs *user, const char *name)
{
        for (size_t i = 0; i < user->n; i++)
                if (streq(flag_name(user->v[i].key), name))
                        return true;
        return false;
}

static int compare_pairs(const void *a, const void *b)
{
        return strcmp(((const struct pair *)a)->key, ((const struct pair *)b)->key);
}

/* As in kubeadm: the user's flag replaces ours, and all are sorted by name. */
static json_t *flags_json(const struct context *x, const struct flags *f, const struct pairs *user)
{
        struct pair *all = arena_array(x->arena, struct pair, f->n + user->n);
        size_t n = 0;
        json_t *list = json_array();
        for (size_t i = 0; i < f->n; i++)
                if (!user_sets(user, f->v[i].key))
                        all[n++] = f->v[i];
        for (size_t i = 0; i < user->n; i++)
                all[n++] = (struct pair){ flag_name(user->v[i].key), user->v[i].value };
        /* insertion sort: stable, so that a flag given several times keeps its order */
        for (size_t i = 1; i < n; i++)
                for (size_t j = i; j && compare_pairs(&all[j - 1], &all[j]) > 0; j--) {
                        struct pair t = all[j];
                        all[j] = all[j - 1];
                        all[j - 1] = t;
                }
        for (size_t i = 0; i < n; i++)
                json_add(list, arena_printf(x->arena, "--%s=%s", all[i].key, all[i].value));
        return list;
}

static void hardening_add(const struct context *x, struct flags *f)
{
        struct pairs hard = hardening_flags(x, false);
        flags_add(f, hard.v, hard.n);
}

static void gate_flags(const struct context *x, struct flags *f)
{
        const struct pairs *g = &x->cluster->feature_gates;
        struct str s CLEANUP(str_release) = { 0 };
        for (size_t i = 0; i < g->n; i++)
                str_addf(&s, "%s%s=%s", i ? "," : "", g->v[i].key, g->v[i].value);
        if (g->n)
                flag_add(f, "feature-gates", arena_strdup(x->arena, str_text(&s)));
}

/* ---- mounts ---- */

struct pod_volume {
        const char *name, *path, *type;
        bool read_only;
};

struct volumes_list {
        size_t n;
        struct pod_volume v[MAX_VOLUMES];
};

static void volume_add(struct volumes_list *l, const char *name, const char *path, const char *type,
        bool read_only)
{
        if (l->n == MAX_VOLUMES)
                abort();
        l->v[l->n++] = (struct pod_volume){ name, path, type, read_only };
}

static int compare_volumes(const void *a, const void *b)
{
        return strcmp(((const struct pod_volume *)a)->name, ((const struct pod_volume *)b)->name);
}

static json_t *volumes_json(struct volumes_list *l)
{
        json_t *list = json_array();
        qsort(l->v, l->n, sizeof(l->v[0]), compare_volumes);
        for (size_t i = 0; i < l->n; i++) {
                json_t *o = json_object();
                json_put(o, "name", l->v[i].name);
                json_put(o, "path", l->v[i].path);
                json_put(o, "type", l->v[i].type);
                json_object_set_new(o, "read_only", json_boolean(l->v[i].read_only));
                json_array_append_new(list, o);
        }
        return list;
}

/* The system's trusted certificates and the directories they link to: /etc/ca-certificates is the
 * volume etc-ca-certificates. */
static void ca_volumes(const struct context *x, struct volumes_list *l)
{
        volume_add(l, "ca-certs", "/etc/ssl/certs", "DirectoryOrCreate", true);
        volume_add(l, "k8s-certs", "/etc/kubernetes/pki", "DirectoryOrCreate", true);
        for (size_t i = 0; i < ARRAY_SIZE(x->os->ca_paths) && x->os->ca_paths[i]; i++) {
                char *name = arena_strdup(x->arena, x->os->ca_paths[i] + 1);
                for (char *p = name; *p; p++)
                        if (*p == '/')
                                *p = '-';
                volume_add(l, name, x->os->ca_paths[i], "DirectoryOrCreate", true);
        }
}

/* ---- kube-apiserver ---- */

static const struct pair apiserver_flags[] = {
        { "allow-privileged", "true" },
        { "client-ca-file", PKI "ca.crt" },
        { "enable-bootstrap-token-auth", "true" },
        { "etcd-cafile", PKI "etcd/ca.crt" },
        { "etcd-certfile", PKI "apiserver-etcd-client.crt" },
        { "etcd-keyfile", PKI "apiserver-etcd-client.key" },
        { "kubelet-client-certificate", PKI "apiserver-kubelet-client.crt" },
        { "kubelet-client-key", PKI "apiserver-kubelet-client.key" },
        { "kubelet-preferred-address-types", "InternalIP,ExternalIP,Hostname" },
        { "proxy-client-cert-file", PKI "front-proxy-client.crt" },
        { "proxy-client-key-file", PKI "front-proxy-client.key" },
        { "requestheader-allowed-names", "front-proxy-client" },
        { "requestheader-client-ca-file", PKI "front-proxy-ca.crt" },
        { "requestheader-extra-headers-prefix", "X-Remote-Extra-" },
        { "requestheader-group-headers", "X-Remote-Group" },
        { "requestheader-username-headers", "X-Remote-User" },
        { "service-account-key-file", PKI "sa.pub" },
        { "service-account-signing-key-file", PKI "sa.key" },
        /* without it a stopping API server waits for its watches until it is killed */
        { "shutdown-watch-termination-grace-period", "5s" },
        { "tls-cert-file", PKI "apiserver.crt" },
        { "tls-private-key-file", PKI "apiserver.key" },
};

static const char *etcd_servers(const struct context *x)
{
        const struct node *n;
        struct str s CLEANUP(str_release) = { 0 };
        char host[IP_TEXT + 2];
        if (x->with & ON_ETCD)
                return x->node->ip[0].family == 6 ? "https://[::1]:2379" : "https://127.0.0.1:2379";
        for (size_t i = 0; (n = cluster_next(x->cluster, ROLE_ETCD, &i));)
                str_addf(&s, "%shttps://%s:2379", s.len ? "," : "",
                        ip_host(node_ip(n, x->node->ip[0].family), host));
        return arena_strdup(x->arena, str_text(&s));
}

static void admission_flags(const struct context *x, struct flags *f)
{
        const struct admission *a = &x->cluster->admission;
        struct str s CLEANUP(str_release) = { 0 };
        str_add(&s, "NodeRestriction");
        for (size_t i = 0; i < a->enable.n; i++)
                if (!streq(a->enable.v[i], "NodeRestriction"))
                        str_addf(&s, ",%s", a->enable.v[i]);
        flag_add(f, "enable-admission-plugins", arena_strdup(x->arena, str_text(&s)));
        if (a->disable.n)
                flag_add(f, "disable-admission-plugins", strings_join(x->arena, &a->disable, ","));
        if (x->with & WITH_ADMISSION)
                flag_add(f, "admission-control-config-file",
                        "/etc/kubernetes/admission/config.yaml");
}

/* Dex in the cluster has a certificate of the cluster CA, which the system does not trust. */
static const char *oidc_ca(const struct context *x)
{
        if (x->with & WITH_OIDC_CA)
                return PKI "oidc-ca.crt";
        return x->cluster->services.dex.host
                       ? (x->with & WITH_CA_CHAIN ? PKI "ca-bundle.crt" : PKI "ca.crt")
                       : NULL;
}

static void oidc_flags(const struct context *x, struct flags *f)
{
        const struct oidc *o = &x->cluster->auth.oidc;
        const struct pair table[] = {
                { "oidc-issuer-url", o->issuer },
                { "oidc-client-id", o->client_id },
                { "oidc-username-claim", o->username_claim },
                { "oidc-username-prefix", o->username_prefix },
                { "oidc-groups-claim", o->groups_claim },
                { "oidc-groups-prefix", o->groups_prefix },
                { "oidc-ca-file", oidc_ca(x) },
                { "oidc-signing-algs",
                        o->signing_algs.n ? strings_join(x->arena, &o->signing_algs, ",") : NULL },
        };
        if (!o->issuer || authentication_file(x))
                return;
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (table[i].value && *table[i].value)
                        flag_add(f, table[i].key, table[i].value);
        for (size_t i = 0; i < o->required_claims.n; i++)
                flag_add(f, "oidc-required-claim",
                        arena_printf(x->arena, "%s=%s", o->required_claims.v[i].key,
                                o->required_claims.v[i].value));
}

static void audit_flags(const struct context *x, struct flags *f)
{
        const struct audit *a = &x->cluster->audit;
        if (!(x->with & WITH_AUDIT))
                return;
        flag_add(f, "audit-policy-file", "/etc/kubernetes/audit/policy.yaml");
        flag_add(f, "audit-log-path", a->path);
        flag_long(x, f, "audit-log-maxage", a->max_age);
        flag_long(x, f, "audit-log-maxbackup", a->max_backups);
        flag_long(x, f, "audit-log-maxsize", a->max_size);
}

static json_t *apiserver_volumes(const struct context *x)
{
        struct volumes_list l = { 0 };
        ca_volumes(x, &l);
        if (x->with & WITH_ADMISSION)
                volume_add(&l, "admission", "/etc/kubernetes/admission", "DirectoryOrCreate", true);
        if (authentication_file(x))
                volume_add(&l, "authentication", "/etc/kubernetes/authentication",
                        "DirectoryOrCreate", true);
        if (x->with & WITH_ENCRYPTION)
                volume_add(
                        &l, "encryption", "/etc/kubernetes/encryption", "DirectoryOrCreate", true);
        if (x->with & WITH_AUDIT) {
                const char *slash = strrchr(x->cluster->audit.path, '/');
                volume_add(&l, "audit", "/etc/kubernetes/audit", "DirectoryOrCreate", true);
                volume_add(&l, "audit-log",
                        slash > x->cluster->audit.path
                                ? arena_strndup(x->arena, x->cluster->audit.path,
                                          (size_t)(slash - x->cluster->audit.path))
                                : "/",
                        "DirectoryOrCreate", false);
        }
        return volumes_json(&l);
}

json_t *control_apiserver(const struct context *x)
{
        const struct cluster *c = x->cluster;
        const struct pairs *user = &c->components.apiserver.flags;
        struct flags f = { 0 };
        char address[IP_TEXT], host[IP_TEXT + 2];
        json_t *v = json_object();
        ip_format(&x->node->ip[0], address);
        flags_add(&f, apiserver_flags, ARRAY_SIZE(apiserver_flags));
        flag_add(&f, "advertise-address", address);
        if (!user_sets(user, "authorization-config"))
                flag_add(&f, "authorization-mode", "Node,RBAC");
        flag_add(&f, "etcd-servers", etcd_servers(x));
        flag_long(x, &f, "secure-port", c->api.port);
        if (c->certificates.verify_kubelets)
                flag_add(&f, "kubelet-certificate-authority", PKI "ca.crt");
        if (x->in->identity->sa_other)
                flag_add(&f, "service-account-key-file", PKI "sa-other.pub");
        flag_add(&f, "service-account-issuer",
                arena_printf(x->arena, "https://kubernetes.default.svc.%s", c->network.domain));
        flag_add(&f, "service-cluster-ip-range", cidrs_join(x->arena, &c->network.services));
        /* a stopping API server answers until VIP and load balancers have moved away */
        if (c->api.vip || c->api.load_balancer)
                flag_add(&f, "shutdown-delay-duration", "5s");
        if (x->with & WITH_ENCRYPTION)
                flag_add(
                        &f, "encryption-provider-config", "/etc/kubernetes/encryption/config.yaml");
        if (authentication_file(x))
                flag_add(&f, "authentication-config", "/etc/kubernetes/authentication/config.yaml");
        admission_flags(x, &f);
        oidc_flags(x, &f);
        audit_flags(x, &f);
        hardening_add(x, &f);
        gate_flags(x, &f);
        json_object_set_new(v, "flags", flags_json(x, &f, user));
        json_object_set_new(v, "volumes", apiserver_volumes(x));
        json_put(v, "probe", address);
        json_put(v, "endpoint",
                arena_printf(x->arena, "%s:%ld", ip_host(&x->node->ip[0], host), c->api.port));
        return v;
}

/* ---- kube-controller-manager ---- */

/* Without requestheader-client-ca-file its first request is for that CA, and the load balancer
 * delays it until the API is ready. Otherwise the first request is for its lease: that fails after
 * five seconds, and the container restarts up to four and a half seconds later. */
static const struct pair controller_manager_flags[] = {
        { "allocate-node-cidrs", "true" },
        { "authentication-kubeconfig", "/etc/kubernetes/controller-manager.conf" },
        { "authorization-kubeconfig", "/etc/kubernetes/controller-manager.conf" },
        { "bind-address", "127.0.0.1" },
        { "client-ca-file", PKI "ca.crt" },
        { "cluster-signing-key-file", PKI "ca.key" },
        { "controllers", "*,bootstrapsigner,tokencleaner" },
        /* with the defaults (30 and 20) starting its forty controllers takes five seconds */
        { "kube-api-burst", "200" },
        { "kube-api-qps", "100" },
        { "kubeconfig", "/etc/kubernetes/controller-manager.conf" },
        { "leader-elect", "true" },
        { "service-account-private-key-file", PKI "sa.key" },
        { "use-service-account-credentials", "true" },
};

/* The address for probes; "" (the address of the pod) for a component that listens on all. */
static const char *probe_address(const struct pairs *user)
{
        const char *address = "127.0.0.1";
        for (size_t i = 0; i < user->n; i++)
                if (streq(flag_name(user->v[i].key), "bind-address"))
                        address = user->v[i].value;
        return streq(address, "0.0.0.0") || streq(address, "::") ? "" : address;
}

static void node_range_flags(const struct context *x, struct flags *f)
{
        const struct network *n = &x->cluster->network;
        bool dual = n->pods.n > 1;
        for (size_t i = 0; i < n->pods.n; i++) {
                bool v6 = n->pods.v[i].ip.family == 6;
                flag_long(x, f,
                        !dual ? "node-cidr-mask-size"
                        : v6  ? "node-cidr-mask-size-ipv6"
                              : "node-cidr-mask-size-ipv4",
                        v6 ? n->node_mask6 : n->node_mask);
        }
}

json_t *control_controller_manager(const struct context *x)
{
        const struct cluster *c = x->cluster;
        const struct pairs *user = &c->components.controller_manager.flags;
        struct flags f = { 0 };
        struct volumes_list l = { 0 };
        json_t *v = json_object();
        flags_add(&f, controller_manager_flags, ARRAY_SIZE(controller_manager_flags));
        flag_add(&f, "cluster-signing-cert-file",
                two_authorities(x) ? PKI "ca-signing.crt" : PKI "ca.crt");
        if (c->certificates.lifetime != YEAR) /* for kubelets the same lifetime as for others */
                flag_add(&f, "cluster-signing-duration",
                        arena_printf(x->arena, "%llds", (long long)c->certificates.lifetime));
        flag_add(&f, "root-ca-file", x->with & WITH_CA_CHAIN ? PKI "ca-bundle.crt" : PKI "ca.crt");
        flag_add(&f, "cluster-cidr", cidrs_join(x->arena, &c->network.pods));
        flag_add(&f, "cluster-name", c->name);
        if (cluster_cloud_controller(c))
                flag_add(&f, "cloud-provider", "external");
        flag_add(&f, "service-cluster-ip-range", cidrs_join(x->arena, &c->network.services));
        node_range_flags(x, &f);
        hardening_add(x, &f);
        gate_flags(x, &f);
        ca_volumes(x, &l);
        volume_add(
                &l, "kubeconfig", "/etc/kubernetes/controller-manager.conf", "FileOrCreate", true);
        json_object_set_new(v, "flags", flags_json(x, &f, user));
        json_object_set_new(v, "volumes", volumes_json(&l));
        json_put(v, "probe", probe_address(user));
        return v;
}

/* ---- kube-scheduler ---- */

static const struct pair scheduler_flags[] = {
        { "authentication-kubeconfig", "/etc/kubernetes/scheduler.conf" },
        { "authorization-kubeconfig", "/etc/kubernetes/scheduler.conf" },
        { "bind-address", "127.0.0.1" },
        { "kubeconfig", "/etc/kubernetes/scheduler.conf" },
        { "leader-elect", "true" },
};

json_t *control_scheduler(const struct context *x)
{
        const struct pairs *user = &x->cluster->components.scheduler.flags;
        struct flags f = { 0 };
        struct volumes_list l = { 0 };
        json_t *v = json_object();
        flags_add(&f, scheduler_flags, ARRAY_SIZE(scheduler_flags));
        hardening_add(x, &f);
        gate_flags(x, &f);
        volume_add(&l, "kubeconfig", "/etc/kubernetes/scheduler.conf", "FileOrCreate", true);
        json_object_set_new(v, "flags", flags_json(x, &f, user));
        json_object_set_new(v, "volumes", volumes_json(&l));
        json_put(v, "probe", probe_address(user));
        return v;
}
