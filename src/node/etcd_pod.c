/* etcd as a static pod with flags, as kubeadm runs it: for adopted clusters. */
#include "node/context.h"

#define PKI "/etc/kubernetes/pki/etcd/"

/* Flags that kubeadm does not set, only where cluster.yaml has the option: an adopted pod keeps
 * etcd's defaults. */
static struct pairs etcd_pod_said(const struct context *x)
{
        const struct etcd_options *e = &x->cluster->etcd;
        const struct {
                const char *option, *flag;
                int64_t value;
        } table[] = { { "quota", "quota-backend-bytes", e->quota },
                { "heartbeat", "heartbeat-interval", e->heartbeat },
                { "election", "election-timeout", e->election } };
        struct pairs out = { 0, arena_array(x->arena, struct pair, ARRAY_SIZE(table)) };
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (tree_get(e->src, table[i].option))
                        out.v[out.n++] = (struct pair){ table[i].flag,
                                arena_printf(x->arena, "%" PRId64, table[i].value) };
        return out;
}

/* Sorted by name, as kubeadm writes them; the user's flags override them, and other ones follow. */
json_t *etcd_pod_values(const struct context *x)
{
        const struct cluster *c = x->cluster;
        json_t *etcd = etcd_values(x), *v = json_object(), *list = json_array();
        const char *initial = json_string_value(json_object_get(etcd, "cluster")),
                   *state = json_string_value(json_object_get(etcd, "state"));
        const char *client = json_string_value(json_object_get(etcd, "advertise_client")),
                   *peer = json_string_value(json_object_get(etcd, "peer"));
        struct pair table[] = {
                { "advertise-client-urls", client },
                { "cert-file", PKI "server.crt" },
                { "client-cert-auth", "true" },
                { "data-dir", c->etcd.data_dir },
                { "feature-gates", "InitialCorruptCheck=true" },
                { "initial-advertise-peer-urls", peer },
                { "initial-cluster", initial },
                { "initial-cluster-state", state },
                { "key-file", PKI "server.key" },
                { "listen-client-urls", json_string_value(json_object_get(etcd, "listen_client")) },
                { "listen-metrics-urls", json_string_value(json_object_get(etcd, "metrics")) },
                { "listen-peer-urls", peer },
                { "name", x->node->name },
                { "peer-cert-file", PKI "peer.crt" },
                { "peer-client-cert-auth", "true" },
                { "peer-key-file", PKI "peer.key" },
                { "peer-trusted-ca-file", PKI "ca.crt" },
                { "snapshot-count", "10000" },
                { "trusted-ca-file", PKI "ca.crt" },
                { "watch-progress-notify-interval", "5s" },
        };
        struct pairs ours = { ARRAY_SIZE(table), table }, hard = hardening_flags(x, true),
                     said = etcd_pod_said(x);
        struct pairs with = pairs_over(x->arena, &ours, &said),
                     all = pairs_over(x->arena, &with, &hard);
        all = pairs_over(x->arena, &all, &c->components.etcd.flags);
        for (size_t i = 0; i < all.n; i++)
                json_add(list,
                        arena_printf(x->arena, "--%s=%s", flag_name(all.v[i].key), all.v[i].value));
        json_object_set_new(v, "flags", list);
        json_put(v, "client", client);
        json_put(v, "image", c->etcd.image ? c->etcd.image : x->catalogue.images[IMG_ETCD].name);
        json_put(v, "probe", x->node->ip[0].family == 6 ? "::1" : "127.0.0.1");
        json_decref(etcd);
        return v;
}
