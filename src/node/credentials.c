/* Keys, certificates and kubeconfigs: kubeadm's files, with the contents of the Identity. */
#include "node/context.h"

#define PKI "/etc/kubernetes/pki/"

static void pem_add(const struct context *x, struct nodespec *s, bool secret, const char *path,
        const char *pem, const char *units)
{
        if (!pem)
                return;
        struct spec_entry *e = file_add(x, s, secret ? CLASS_SECRET : CLASS_MUTABLE, path,
                secret ? 0600 : 0644, pem, strlen(pem));
        if (e)
                e->units = units;
}

/* ---- CAs ---- */

/* The only CA key on a node is that of the cluster CA: the controller manager signs with it.
 * Those of etcd and of the front proxy stay in the Identity. Clients are verified with the
 * signing certificate alone: with the bundle of an intermediate, every other certificate of its
 * root would be accepted too. The bundle is for verifying servers: kubeconfigs, and the service
 * accounts of pods. */
static void authorities_add(const struct context *x, struct nodespec *s)
{
        const struct identity *id = x->in->identity;
        const struct authority *ca = id->ca;
        const struct {
                with_set need;
                bool secret;
                const char *path, *pem, *units;
        } table[] = {
                { ON_KUBE, false, PKI "ca.crt", ca[CA_CLUSTER].clients, "kubelet.service" },
                { ON_CONTROL_PLANE, false, PKI "ca-signing.crt",
                        two_authorities(x) ? ca[CA_CLUSTER].cert : NULL, NULL }, /* to sign with */
                { ON_CONTROL_PLANE, true, PKI "ca.key", ca[CA_CLUSTER].key, NULL },
                { ON_CONTROL_PLANE | WITH_CA_CHAIN, false, PKI "ca-bundle.crt",
                        ca[CA_CLUSTER].bundle, NULL },
                { ON_CONTROL_PLANE, false, PKI "front-proxy-ca.crt", ca[CA_FRONT_PROXY].clients,
                        NULL },
                { ON_CONTROL_PLANE, true, PKI "sa.key", id->sa_key, NULL },
                { ON_CONTROL_PLANE, false, PKI "sa.pub", id->sa_pub, NULL },
                { ON_CONTROL_PLANE, false, PKI "sa-other.pub", id->sa_other, NULL },
                { ON_CONTROL_PLANE | WITH_OIDC_CA, false, PKI "oidc-ca.crt",
                        x->cluster->auth.oidc.ca_pem, NULL },
                { ON_KUBE | WITH_REGISTRY_CA, false, "/etc/slipway/registry-ca.crt",
                        x->cluster->registry.ca_pem, NULL },
        };
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (needs_met(x, table[i].need))
                        pem_add(x, s, table[i].secret, table[i].path, table[i].pem, table[i].units);
        if (needs_met(x, ON_KUBE | WITH_BALANCER) || needs_met(x, ON_CONTROL_PLANE | WITH_VIP))
                pem_add(x, s, false, API_CA, ca[CA_CLUSTER].bundle,
                        needs_met(x, WITH_BALANCER | WITH_PACKAGES) ? "slipway-haproxy.service"
                                                                    : NULL);
        if (x->with & (ON_CONTROL_PLANE | ON_ETCD)) /* the API server is a client of etcd */
                pem_add(x, s, false, PKI "etcd/ca.crt", ca[CA_ETCD].clients,
                        needs_met(x, ON_ETCD | WITH_ETCD_SERVICE) ? "etcd.service" : NULL);
}

/* ---- leaves ---- */

static const struct {
        enum leaf_id leaf;
        const char *crt, *key, *units;
} leaf_files[] = {
        /* API server and etcd reload their files by themselves. */
        { LEAF_APISERVER, PKI "apiserver.crt", PKI "apiserver.key", NULL },
        { LEAF_APISERVER_KUBELET_CLIENT, PKI "apiserver-kubelet-client.crt",
                PKI "apiserver-kubelet-client.key", NULL },
        { LEAF_APISERVER_ETCD_CLIENT, PKI "apiserver-etcd-client.crt",
                PKI "apiserver-etcd-client.key", NULL },
        { LEAF_FRONT_PROXY_CLIENT, PKI "front-proxy-client.crt", PKI "front-proxy-client.key",
                NULL },
        { LEAF_ETCD_SERVER, PKI "etcd/server.crt", PKI "etcd/server.key", NULL },
        { LEAF_ETCD_PEER, PKI "etcd/peer.crt", PKI "etcd/peer.key", NULL },
        { LEAF_ETCD_HEALTHCHECK, PKI "etcd/healthcheck-client.crt",
                PKI "etcd/healthcheck-client.key", NULL },
        { LEAF_KUBELET_SERVER, "/var/lib/kubelet/pki/kubelet.crt",
                "/var/lib/kubelet/pki/kubelet.key", "kubelet.service" },
};

/* The kubelet renews its client certificate itself and then changes the link; the first one comes
 * from here. It must be a link: the kubelet refuses to replace a regular file. */
static void kubelet_client_add(const struct context *x, struct nodespec *s)
{
        const char *file = "/var/lib/kubelet/pki/kubelet-client-slipway.pem";
        const struct leaf *l = &x->in->leaves->leaf[LEAF_KUBELET_CLIENT];
        struct str pem CLEANUP(str_wipe_release) = { 0 };
        if (!l->cert)
                return;
        str_addf(&pem, "%s%s", l->cert, l->key);
        unsigned flags = SPEC_ONCE | (x->facts->kubelet_again ? SPEC_AGAIN : 0);
        struct spec_entry *e = file_add(x, s, CLASS_SECRET, file, 0600, str_text(&pem), pem.len);
        e->flags = flags;
        e = nodespec_add(s, SPEC_LINK, CLASS_MUTABLE);
        e->path = "/var/lib/kubelet/pki/kubelet-client-current.pem";
        e->target = file;
        e->flags = flags;
        e->units = "kubelet.service"; /* the kubelet does not notice a replaced certificate */
}

/* ---- kubeconfigs ---- */

enum server { SERVER_LOCAL, SERVER_OWN, SERVER_ENDPOINT };

static const struct {
        enum leaf_id leaf;
        const char *path, *user;
        enum server server;
        const char *units;
} kubeconfigs[] = {
        { LEAF_ADMIN, "/etc/kubernetes/admin.conf", "kubernetes-admin", SERVER_ENDPOINT, NULL },
        { LEAF_SUPER_ADMIN, "/etc/kubernetes/super-admin.conf", "kubernetes-super-admin",
                SERVER_ENDPOINT, NULL },
        { LEAF_CONTROLLER_MANAGER, "/etc/kubernetes/controller-manager.conf",
                "system:kube-controller-manager", SERVER_OWN, NULL },
        { LEAF_SCHEDULER, "/etc/kubernetes/scheduler.conf", "system:kube-scheduler", SERVER_OWN,
                NULL },
        { LEAF_KUBE_PROXY, "/var/lib/kube-proxy/kubeconfig.conf", "system:kube-proxy", SERVER_LOCAL,
                "kube-proxy.service" },
        { LEAF_FLANNEL, "/etc/kubernetes/flannel.conf", "slipway:flannel", SERVER_LOCAL,
                "flanneld.service" },
        { LEAF_CALICO, "/etc/kubernetes/calico.conf", "slipway:calico", SERVER_LOCAL,
                "calico-node.service" },
        { LEAF_MULTUS, "/etc/kubernetes/multus.conf", "slipway:multus", SERVER_LOCAL, NULL },
};

/* The node's own API server, through the load balancer, which delays connections until
 * it is ready. */
static bool by_own_balancer(const struct context *x, enum server which)
{
        return which == SERVER_OWN &&
               needs_met(x, ON_CONTROL_PLANE | WITH_BALANCER | WITH_PACKAGES);
}

static const char *kubeconfig_server_url(const struct context *x, enum server which)
{
        const struct cluster *c = x->cluster;
        char host[IP_TEXT + 2];
        const char *endpoint = cluster_endpoint_host(c);
        if (which == SERVER_LOCAL && !(x->with & WITH_BALANCER))
                which = SERVER_ENDPOINT;
        if (which == SERVER_LOCAL)
                return arena_printf(x->arena, "https://127.0.0.1:%ld", c->api.local_port);
        if (by_own_balancer(x, which))
                return arena_printf(x->arena, "https://127.0.0.2:%ld", c->api.local_port);
        if (which == SERVER_OWN || !endpoint)
                return arena_printf(
                        x->arena, "https://%s:%ld", ip_host(&x->node->ip[0], host), c->api.port);
        return arena_printf(x->arena, strchr(endpoint, ':') ? "https://[%s]:%ld" : "https://%s:%ld",
                endpoint, cluster_endpoint_port(c));
}

const char *node_api_url(const struct context *x) { return kubeconfig_server_url(x, SERVER_LOCAL); }

static void kubeconfig_add(const struct context *x, struct nodespec *s, struct kubeconfig *k,
        const char *path, bool secret, const char *units)
{
        struct str text CLEANUP(str_wipe_release) = { 0 };
        k->cluster = x->cluster->name;
        k->ca = x->in->identity->ca[CA_CLUSTER].bundle;
        kubeconfig_text(k, &text);
        struct spec_entry *e = file_add(
                x, s, secret ? CLASS_SECRET : CLASS_MUTABLE, path, 0600, str_text(&text), text.len);
        e->units = units;
}

static void kubeconfigs_add(const struct context *x, struct nodespec *s)
{
        for (size_t i = 0; i < ARRAY_SIZE(kubeconfigs); i++) {
                const struct leaf *l = &x->in->leaves->leaf[kubeconfigs[i].leaf];
                if (!l->cert)
                        continue;
                if (kubeconfigs[i].leaf == LEAF_KUBE_PROXY && !(x->with & WITH_KUBE_PROXY))
                        continue;
                struct kubeconfig k = { .user = kubeconfigs[i].user,
                        .server = kubeconfig_server_url(x, kubeconfigs[i].server),
                        .leaf = l };
                k.server_name = by_own_balancer(x, kubeconfigs[i].server) ? "127.0.0.1" : NULL;
                kubeconfig_add(x, s, &k, kubeconfigs[i].path, true, kubeconfigs[i].units);
        }
        if (x->with & ON_KUBE) {
                struct kubeconfig k = {
                        .user = arena_printf(x->arena, "system:node:%s", x->node->name),
                        .server = kubeconfig_server_url(x, SERVER_LOCAL),
                        .client_pem = "/var/lib/kubelet/pki/kubelet-client-current.pem",
                };
                kubeconfig_add(x, s, &k, "/etc/kubernetes/kubelet.conf", false, "kubelet.service");
        }
}

void credentials_add(const struct context *x, struct nodespec *s)
{
        if (x->immutable)
                return;
        authorities_add(x, s);
        for (size_t i = 0; i < ARRAY_SIZE(leaf_files); i++) {
                const struct leaf *l = &x->in->leaves->leaf[leaf_files[i].leaf];
                pem_add(x, s, false, leaf_files[i].crt, l->cert, leaf_files[i].units);
                pem_add(x, s, true, leaf_files[i].key, l->key, leaf_files[i].units);
        }
        etcd_copies_add(x, s);
        if (x->with & ON_KUBE)
                kubelet_client_add(x, s);
        kubeconfigs_add(x, s);
}
