#include "config/addon.h"
#include "config/dex.h"
#include "config/fabric.h"
#include "pki/pki.h"

#define CP     ROLE_CONTROL_PLANE
#define NODES  (ROLE_CONTROL_PLANE | ROLE_WORKER)
#define ADMINS "kubeadm:cluster-admins"

static void apiserver_names(const struct cluster *c, const struct node *n, struct want *w);
static void etcd_names(const struct cluster *c, const struct node *n, struct want *w);
static void node_names(const struct cluster *c, const struct node *n, struct want *w);
static bool is_first(const struct cluster *c, const struct node *n);
static bool has_kube_proxy(const struct cluster *c, const struct node *n)
{
        return c->network.proxy_mode != PROXY_NONE;
}
static bool has_flannel(const struct cluster *c, const struct node *n)
{
        return fabric_has(c, FABRIC_FLANNELD);
}
static bool has_calico(const struct cluster *c, const struct node *n)
{
        return fabric_has(c, FABRIC_FELIX);
}
static bool has_multus(const struct cluster *c, const struct node *n)
{
        return cluster_addon(c, ADDON_MULTUS);
}

/* The certificates: those that kubeadm makes, and those of the host services. */
static const struct leaf_row {
        const char *name; /* in nodes/NODE.pem */
        const char *cn;
        bool cn_node; /* followed by the node's name */
        const char *o;
        enum ca_id ca;
        unsigned usage;
        void (*names)(const struct cluster *c, const struct node *n, struct want *w);
        unsigned roles;
        bool (*only)(const struct cluster *c, const struct node *n);
} leaf_table[LEAF_COUNT] = {
        [LEAF_APISERVER] = { "apiserver", "kube-apiserver", false, NULL, CA_CLUSTER, USAGE_SERVER,
                apiserver_names, CP },
        [LEAF_APISERVER_KUBELET_CLIENT] = { "apiserver-kubelet-client",
                "kube-apiserver-kubelet-client", false, NULL, CA_CLUSTER, USAGE_CLIENT, NULL, CP },
        [LEAF_APISERVER_ETCD_CLIENT] = { "apiserver-etcd-client", "kube-apiserver-etcd-client",
                false, NULL, CA_ETCD, USAGE_CLIENT, NULL, CP },
        [LEAF_FRONT_PROXY_CLIENT] = { "front-proxy-client", "front-proxy-client", false, NULL,
                CA_FRONT_PROXY, USAGE_CLIENT, NULL, CP },
        [LEAF_CONTROLLER_MANAGER] = { "controller-manager", "system:kube-controller-manager", false,
                NULL, CA_CLUSTER, USAGE_CLIENT, NULL, CP },
        [LEAF_SCHEDULER] = { "scheduler", "system:kube-scheduler", false, NULL, CA_CLUSTER,
                USAGE_CLIENT, NULL, CP },
        [LEAF_ADMIN] = { "admin", "kubernetes-admin", false, ADMINS, CA_CLUSTER, USAGE_CLIENT, NULL,
                CP },
        [LEAF_SUPER_ADMIN] = { "super-admin", "kubernetes-super-admin", false, "system:masters",
                CA_CLUSTER, USAGE_CLIENT, NULL, CP, is_first },
        [LEAF_ETCD_SERVER] = { "etcd-server", "", true, NULL, CA_ETCD, USAGE_SERVER | USAGE_CLIENT,
                etcd_names, ROLE_ETCD },
        [LEAF_ETCD_PEER] = { "etcd-peer", "", true, NULL, CA_ETCD, USAGE_SERVER | USAGE_CLIENT,
                etcd_names, ROLE_ETCD },
        [LEAF_ETCD_HEALTHCHECK] = { "etcd-healthcheck-client", "kube-etcd-healthcheck-client",
                false, NULL, CA_ETCD, USAGE_CLIENT, NULL, ROLE_ETCD },
        [LEAF_KUBELET_CLIENT] = { "kubelet-client", "system:node:", true, "system:nodes",
                CA_CLUSTER, USAGE_CLIENT, NULL, NODES },
        [LEAF_KUBELET_SERVER] = { "kubelet-server", "system:node:", true, "system:nodes",
                CA_CLUSTER, USAGE_SERVER, node_names, NODES },
        [LEAF_KUBE_PROXY] = { "kube-proxy", "system:kube-proxy", false, NULL, CA_CLUSTER,
                USAGE_CLIENT, NULL, NODES, has_kube_proxy },
        [LEAF_FLANNEL] = { "flannel", "slipway:flannel:", true, "slipway:flannel", CA_CLUSTER,
                USAGE_CLIENT, NULL, NODES, has_flannel },
        [LEAF_CALICO] = { "calico", "slipway:calico:", true, "slipway:calico", CA_CLUSTER,
                USAGE_CLIENT, NULL, NODES, has_calico },
        [LEAF_MULTUS] = { "multus", "slipway:multus:", true, "slipway:multus", CA_CLUSTER,
                USAGE_CLIENT, NULL, NODES, has_multus },
};

static bool is_first(const struct cluster *c, const struct node *n)
{
        size_t i = 0;
        const struct node *first = cluster_next(c, ROLE_CONTROL_PLANE, &i);
        return first && streq(first->name, n->name);
}

static void node_names(const struct cluster *c, const struct node *n, struct want *w)
{
        want_host(w, n->name);
        want_ip(w, &n->ip[0]);
        want_ip(w, &n->ip[1]);
}

static void add_loopback(struct want *w)
{
        want_host(w, "localhost");
        want_host(w, "127.0.0.1");
        want_host(w, "::1");
}

static void etcd_names(const struct cluster *c, const struct node *n, struct want *w)
{
        node_names(c, n, w);
        add_loopback(w);
}

/* Names and addresses that clients outside the cluster use. */
static void add_endpoint(const struct cluster *c, struct want *w)
{
        want_host(w, cluster_endpoint_host(c));
        want_host(w, c->api.vip);
        want_host(w, c->balancer);
        for (size_t i = 0; i < c->api.names.n; i++)
                want_host(w, c->api.names.v[i]);
}

/* The DNS names of a service: "x", "x.svc", "x.svc.DOMAIN". */
static void add_service(const struct cluster *c, struct want *w, const char *name)
{
        char *svc CLEANUP(free_p) = xasprintf("%s.svc", name);
        char *full CLEANUP(free_p) = xasprintf("%s.svc.%s", name, c->network.domain);
        want_host(w, name);
        want_host(w, svc);
        want_host(w, full);
}

static void apiserver_names(const struct cluster *c, const struct node *n, struct want *w)
{
        struct ip first;
        want_host(w, n->name);
        want_host(w, "kubernetes");
        add_service(c, w, "kubernetes.default");
        for (size_t i = 0; i < c->network.services.n; i++)
                if (cidr_nth(&c->network.services.v[i], 1, &first))
                        want_ip(w, &first);
        node_names(c, n, w);
        add_loopback(w);
        add_endpoint(c, w);
}

const char *leaf_name(enum leaf_id id) { return leaf_table[id].name; }

bool leaf_wanted(enum leaf_id id, const struct cluster *c, const struct node *n)
{
        const struct leaf_row *l = &leaf_table[id];
        return l->roles & n->pool->roles && (!l->only || l->only(c, n));
}

static void want_begin(const struct cluster *c, struct want *w, enum ca_id ca, unsigned usage)
{
        str_truncate(&w->subject, 0);
        str_truncate(&w->san, 0);
        w->ca = ca;
        w->usage = usage;
        w->authority = false;
        w->lifetime = c->certificates.lifetime;
        w->algorithm = c->certificates.algorithm;
}

/* kubeadm before 1.36.1 has no binding for the kubelet client, and makes it an administrator. */
static const char *organization(enum leaf_id id, const struct cluster *c)
{
        static const struct version binding = { 1, 36, 1, NULL };
        if (id == LEAF_APISERVER_KUBELET_CLIENT && version_compare(&c->kubernetes, &binding) < 0)
                return ADMINS;
        return leaf_table[id].o;
}

void leaf_want(enum leaf_id id, const struct cluster *c, const struct node *n, struct want *w)
{
        const struct leaf_row *l = &leaf_table[id];
        const char *o = organization(id, c);
        char *cn CLEANUP(free_p) = xasprintf("%s%s", l->cn, l->cn_node ? n->name : "");
        want_begin(c, w, l->ca, l->usage);
        if (o)
                want_o(w, o);
        want_cn(w, cn);
        if (l->names)
                l->names(c, n, w);
}

/* Administrators are not in a group of the certificate but in a binding in the cluster
 * (addon_admins), because a binding can be removed. */
void user_want(const struct cluster *c, const struct user *u, struct want *w)
{
        want_begin(c, w, CA_CLUSTER, USAGE_CLIENT);
        if (u->lifetime > 0)
                w->lifetime = u->lifetime;
        for (size_t i = 0; i < u->groups.n; i++)
                want_o(w, u->groups.v[i]);
        want_cn(w, u->name);
}

void admin_want(const struct cluster *c, struct want *w) { leaf_want(LEAF_ADMIN, c, NULL, w); }

bool lb_wanted(const struct cluster *c)
{
        const struct provider *p = &c->provider;
        return c->api.load_balancer ||
               (p->kind == PROVIDER_AWS && p->aws.load_balancer != AWS_LB_NONE) ||
               (p->kind == PROVIDER_OPENSTACK && p->openstack.load_balancer == OS_LB_OCTAVIA);
}

void lb_want(const struct cluster *c, struct want *w)
{
        want_begin(c, w, CA_CLUSTER, USAGE_SERVER);
        want_cn(w, "kubernetes-lb");
        add_endpoint(c, w);
}

bool dex_wanted(const struct cluster *c) { return c->services.dex.host; }

void dex_want(const struct cluster *c, struct want *w)
{
        want_begin(c, w, CA_CLUSTER, USAGE_SERVER);
        want_cn(w, "dex");
        want_host(w, c->services.dex.host);
        want_host(w, "dex");
        add_service(c, w, "dex." DEX_NAMESPACE);
}

static int name_check(const char *field, const char *name, struct error *err)
{
        if (!name)
                return 0;
        for (const char *p = name; *p; p++)
                if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f) {
                        error_set(err, EINVAL, EXIT_CONFIG,
                                "%s: a certificate cannot contain \"%s\": it is not ASCII", field,
                                name);
                        return error_hint(
                                err, "write an international name in its ASCII form (xn--...)");
                }
        return 0;
}

int names_check(const struct cluster *c, struct error *err)
{
        int r = name_check("network.domain", c->network.domain, err);
        if (r == 0)
                r = name_check("api.loadBalancer", c->api.load_balancer, err);
        if (r == 0)
                r = name_check("services.dex.host", c->services.dex.host, err);
        for (size_t i = 0; r == 0 && i < c->api.names.n; i++)
                r = name_check("api.names", c->api.names.v[i], err);
        return r;
}
