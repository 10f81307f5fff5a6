/* etcd as kubeadm runs it: a static pod with flags. Kept so in clusters that were made that way. */
#include "node/context.h"

#define PKI "/etc/kubernetes/pki/etcd/"

/* In the order of their names, as kubeadm writes them; the user's come over them, and new ones last. */
json_t *etcd_pod_values(const struct context *x)
{
        const struct cluster *c = x->cluster;
        json_t *etcd = etcd_values(x), *v = json_object(), *list = json_array();
        const char *initial = json_string_value(json_object_get(etcd, "cluster")), *state = json_string_value(json_object_get(etcd, "state"));
        const char *client = json_string_value(json_object_get(etcd, "advertise_client")), *peer = json_string_value(json_object_get(etcd, "peer"));
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
        struct pairs ours = { ARRAY_SIZE(table), table }, all = pairs_over(x->arena, &ours, &c->components.etcd.flags);
        for (size_t i = 0; i < all.n; i++)
                json_add(list, arena_printf(x->arena, "--%s=%s", flag_name(all.v[i].key), all.v[i].value));
        json_object_set_new(v, "flags", list);
        json_put(v, "client", client);
        json_put(v, "image", c->etcd.image ? c->etcd.image : x->catalogue.images[IMG_ETCD].name);
        json_put(v, "probe", x->node->ip[0].family == 6 ? "::1" : "127.0.0.1");
        json_decref(etcd);
        return v;
}
