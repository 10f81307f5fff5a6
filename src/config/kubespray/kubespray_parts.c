/* Components, etcd and the operating system. */
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
