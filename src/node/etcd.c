/* etcd as a systemd service with a configuration file. With a file it ignores all flags, so those
 * of cluster.yaml become fields. */
#include "node/context.h"
#include "node/template.h"

/* Fields that are not text. */
static const struct flag_field fields[] = {
        { "auth-token-ttl", NULL, FIELD_NUMBER },
        { "backend-batch-interval", NULL, FIELD_NANOSECONDS },
        { "backend-batch-limit", NULL, FIELD_NUMBER },
        { "bcrypt-cost", NULL, FIELD_NUMBER },
        { "bootstrap-defrag-threshold-megabytes", NULL, FIELD_NUMBER },
        { "cipher-suites", NULL, FIELD_LIST },
        { "client-cert-allowed-hostname", "client-transport-security.allowed-hostname",
                FIELD_LIST },
        { "compact-hash-check-time", NULL, FIELD_NANOSECONDS },
        { "compaction-batch-limit", NULL, FIELD_NUMBER },
        { "compaction-sleep-interval", NULL, FIELD_NANOSECONDS },
        { "corrupt-check-time", NULL, FIELD_NANOSECONDS },
        { "distributed-tracing-sampling-rate", NULL, FIELD_NUMBER },
        { "downgrade-check-time", NULL, FIELD_NANOSECONDS },
        { "enable-distributed-tracing", NULL, FIELD_BOOL },
        { "enable-grpc-gateway", NULL, FIELD_BOOL },
        { "enable-log-rotation", NULL, FIELD_BOOL },
        { "enable-pprof", NULL, FIELD_BOOL },
        { "grpc-keepalive-interval", NULL, FIELD_NANOSECONDS },
        { "grpc-keepalive-min-time", NULL, FIELD_NANOSECONDS },
        { "grpc-keepalive-timeout", NULL, FIELD_NANOSECONDS },
        { "log-outputs", NULL, FIELD_LIST },
        { "max-concurrent-streams", NULL, FIELD_NUMBER },
        { "max-learners", NULL, FIELD_NUMBER },
        { "max-request-bytes", NULL, FIELD_NUMBER },
        { "max-snapshots", NULL, FIELD_NUMBER },
        { "max-txn-ops", NULL, FIELD_NUMBER },
        { "max-wals", NULL, FIELD_NUMBER },
        { "memory-mlock", NULL, FIELD_BOOL },
        { "pre-vote", NULL, FIELD_BOOL },
        { "snapshot-catchup-entries", NULL, FIELD_NUMBER },
        { "snapshot-count", NULL, FIELD_NUMBER },
        { "socket-reuse-address", "socket-options.reuse-address", FIELD_BOOL },
        { "socket-reuse-port", "socket-options.reuse-port", FIELD_BOOL },
        { "strict-reconfig-check", NULL, FIELD_BOOL },
        { "unsafe-no-fsync", NULL, FIELD_BOOL },
        { "warning-apply-duration", NULL, FIELD_NANOSECONDS },
        { "warning-unary-request-duration", NULL, FIELD_NANOSECONDS },
        { "watch-progress-notify-interval", NULL, FIELD_NANOSECONDS },
};

static const char *etcd_initial_members(const struct context *x)
{
        const struct node *n;
        struct str s CLEANUP(str_release) = { 0 };
        char host[IP_TEXT + 2];
        for (size_t i = 0; (n = cluster_next(x->cluster, ROLE_ETCD, &i));)
                str_addf(&s, "%s%s=https://%s:2380", s.len ? "," : "", n->name,
                        ip_host(&n->ip[0], host));
        return arena_strdup(x->arena, str_text(&s));
}

json_t *etcd_values(const struct context *x)
{
        const struct cluster *c = x->cluster;
        const struct ip *ip = &x->node->ip[0];
        const char *loopback = ip->family == 6 ? "[::1]" : "127.0.0.1";
        char host[IP_TEXT + 2];
        json_t *v = json_object();
        ip_host(ip, host);
        json_put(v, "listen_client",
                arena_printf(x->arena, "https://%s:2379,https://%s:2379", loopback, host));
        json_put(v, "advertise_client", arena_printf(x->arena, "https://%s:2379", host));
        json_put(v, "peer", arena_printf(x->arena, "https://%s:2380", host));
        json_put(v, "metrics", arena_printf(x->arena, "http://%s:2381", loopback));
        /* etcd reads these two only when the member is created: they stay unchanged, so that other
         * members joining or leaving restart nothing */
        json_put(v, "cluster",
                x->facts->etcd_initial ? x->facts->etcd_initial : etcd_initial_members(x));
        json_put(v, "state", x->facts->etcd_state ? x->facts->etcd_state : "new");
        json_put(v, "token", arena_printf(x->arena, "%s-%s", c->name, x->in->identity->prefix));
        json_put(v, "pki", etcd_own_user(x) ? ETCD_PKI : "/etc/kubernetes/pki/etcd");
        json_object_set_new(v, "tls", hardening_flags(x, true).n ? json_true() : json_false());
        json_object_set_new(v, "ciphers", hardening_ciphers(x, true));
        const struct etcd_snapshots *snap = &c->etcd.snapshots;
        json_put(v, "own", arena_printf(x->arena, "https://%s:2379", loopback));
        json_put(v, "cluster_name", c->name);
        json_put(v, "copy_to", snap->copy_to);
        json_object_set_new(v, "keep", json_integer(snap->keep));
        json_object_set_new(v, "every", json_integer(snap->every));
        /* soon in a new cluster */
        json_object_set_new(v, "first", json_integer(snap->every < 600 ? snap->every : 600));
        json_object_set_new(
                v, "spread", json_integer(snap->every / 20 < 300 ? snap->every / 20 : 300));
        json_object_set_new(v, "quota", json_integer(c->etcd.quota));
        json_object_set_new(v, "heartbeat", json_integer(c->etcd.heartbeat));
        json_object_set_new(v, "election", json_integer(c->etcd.election));
        return v;
}

void etcd_config(const struct context *x, struct str *out)
{
        const struct pairs *user = &x->cluster->components.etcd.flags;
        struct str text CLEANUP(str_release) = { 0 };
        template_render("etcd.yaml", x->values, &text);
        if (!user->n) {
                str_addn(out, str_text(&text), text.len);
                return;
        }
        json_t *config = json_from_yaml(str_text(&text));
        for (size_t i = 0; i < user->n; i++) {
                const char *name = flag_name(user->v[i].key);
                const struct flag_field *f = flag_field_find(fields, ARRAY_SIZE(fields), name),
                                        as_text = { name, NULL, FIELD_TEXT };
                flag_field_set(config, f ? f : &as_text, user->v[i].value);
        }
        yaml_from_json(config, out);
        json_decref(config);
}

/* As a configuration file of curl: its arguments would be visible to other users. */
void etcd_copy_key_add(const struct context *x, struct nodespec *s)
{
        const char *key = x->cluster->etcd.snapshots.copy_key;
        struct str text CLEANUP(str_wipe_release) = { 0 };
        if (!(x->with & ON_ETCD) || !(x->with & WITH_SNAPSHOTS) || !key || x->immutable)
                return;
        str_add(&text, "user = \"");
        for (; *key; key++)
                str_addf(&text, "%s%c", strchr("\\\"", *key) ? "\\" : "", *key);
        str_add(&text, "\"\n");
        file_add(x, s, CLASS_SECRET, "/etc/slipway/s3.curl", 0600, str_text(&text), text.len);
}
