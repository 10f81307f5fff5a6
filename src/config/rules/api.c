/* The endpoint: virtual IP, load balancer, names, ports. */
#include "config/platform.h"
#include "config/rules/rules.h"

static void vip_inside(const struct cluster *c, const struct ip *vip, const char *path,
        const struct cidrs *ranges, struct problems *p)
{
        char text[IP_TEXT + 4];
        for (size_t i = 0; i < ranges->n; i++)
                if (cidr_contains(&ranges->v[i], vip))
                        rule_error(p, c, "api.vip", "use a free address of the hosts' network",
                                "%s is inside %s %s", c->api.vip, path,
                                cidr_format(&ranges->v[i], text));
}

static void vip_of_node(const struct cluster *c, const struct ip *vip, struct problems *p)
{
        for (size_t i = 0; i < c->node_count; i++)
                if (ip_equal(&c->nodes[i].ip[0], vip) || ip_equal(&c->nodes[i].ip[1], vip)) {
                        rule_error(p, c, "api.vip", "use an address that no machine has",
                                "%s is the address of node %s", c->api.vip, c->nodes[i].name);
                        return;
                }
}

/* The network that all control-plane nodes seem to be in: their common /24 or /64. */
static bool guess_network(const struct cluster *c, unsigned family, struct cidr *out)
{
        char text[IP_TEXT], with_bits[IP_TEXT + 4];
        bool any = false;
        for (size_t i = 0; i < c->node_count; i++)
                for (size_t k = 0; k < 2; k++) {
                        const struct ip *ip = &c->nodes[i].ip[k];
                        if (!(c->nodes[i].pool->roles & ROLE_CONTROL_PLANE) || ip->family != family)
                                continue;
                        snprintf(with_bits, sizeof(with_bits), "%s/%s", ip_format(ip, text),
                                family == 4 ? "24" : "64");
                        if (!any && !cidr_parse(with_bits, out, NULL))
                                return false;
                        if (any && !cidr_contains(out, ip))
                                return false;
                        any = true;
                }
        return any;
}

/* A VIP moves between nodes by ARP, which reaches no further than their own network. */
static void vip_network(const struct cluster *c, const struct ip *vip, struct problems *p)
{
        bool local = c->provider.kind == PROVIDER_LOCAL;
        struct cidrs known = c->network.hosts;
        struct cidr guess;
        if (!known.n && local)
                known = c->provider.local.network;
        const char *path = c->network.hosts.n ? "network.hosts" : "provider.local.network";
        char text[IP_TEXT + 4];
        const struct cidr *other = NULL;
        for (size_t i = 0; i < known.n; i++) {
                if (cidr_contains(&known.v[i], vip))
                        return;
                other = &known.v[i];
        }
        if (other)
                rule_error(p, c, "api.vip",
                        "use a free address of that network: the VIP moves between nodes by ARP, which does not cross networks",
                        "%s is outside the hosts' network, %s %s", c->api.vip, path,
                        cidr_format(other, text));
        else if (guess_network(c, vip->family, &guess) && !cidr_contains(&guess, vip))
                rule_warn(p, c, "api.vip",
                        "use a free address of their network, or set network.hosts if it is larger",
                        "%s seems to be outside the hosts' network: all control-plane nodes are in %s",
                        c->api.vip, cidr_format(&guess, text));
}

static void vip_local(const struct cluster *c, const struct ip *vip, struct problems *p)
{
        const struct cidrs *nets = &c->provider.local.network;
        bool own = false;
        struct ip first;
        for (size_t i = 0; c->provider.kind == PROVIDER_LOCAL && i < nets->n; i++)
                own |= ip_equal(vip, &nets->v[i].ip) ||
                       (cidr_nth(&nets->v[i], 1, &first) && ip_equal(vip, &first));
        if (own)
                rule_error(p, c, "api.vip",
                        "use the second to ninth address: they are reserved for this",
                        "%s is this computer's own address in provider.local.network", c->api.vip);
}

static void api_vip(const struct cluster *c, struct problems *p)
{
        struct ip ip;
        if (!c->api.vip || !ip_parse(c->api.vip, &ip))
                return;
        if (c->api.load_balancer)
                rule_error(p, c, "api.vip",
                        "set api.vip if the nodes hold the address, or api.loadBalancer if there is a separate load balancer",
                        "both a VIP and a load balancer are set");
        if (c->provider.kind == PROVIDER_AWS) {
                rule_error(p, c, "api.vip",
                        "leave it out: with provider.aws.loadBalancer: nlb the load balancer is the endpoint",
                        "a VIP cannot move between machines in AWS");
                return;
        }
        if (c->provider.kind == PROVIDER_TERRAFORM && !rule_spoiled(p, "provider.terraform") &&
                !(platform_row(c->provider.terraform.platform)->has & PLATFORM_VIP)) {
                rule_error(p, c, "api.vip",
                        "leave it out: the exported files have a load balancer, which is the endpoint",
                        "a VIP cannot move between machines in %s",
                        platform_row(c->provider.terraform.platform)->label);
                return;
        }
        if (c->provider.kind == PROVIDER_OPENSTACK &&
                c->provider.openstack.load_balancer != OS_LB_VIP)
                rule_error(p, c, "api.vip",
                        "set provider.openstack.loadBalancer: vip, or leave the VIP out",
                        "a VIP needs provider.openstack.loadBalancer: vip, got %s",
                        c->provider.openstack.load_balancer == OS_LB_OCTAVIA ? "octavia" : "none");
        bool family = false;
        for (size_t i = 0; i < c->network.pods.n; i++)
                family |= c->network.pods.v[i].ip.family == ip.family;
        if (!family && c->network.pods.n) {
                rule_error(p, c, "api.vip", "use an address of the cluster's family",
                        "%s is IPv%u, but the cluster is IPv%u only", c->api.vip, ip.family,
                        c->network.pods.v[0].ip.family);
                return;
        }
        vip_inside(c, &ip, "network.pods", &c->network.pods, p);
        vip_inside(c, &ip, "network.services", &c->network.services, p);
        vip_of_node(c, &ip, p);
        vip_network(c, &ip, p);
        vip_local(c, &ip, p);
}

static void vip_name(const struct cluster *c, struct problems *p)
{
        struct ip ip;
        if (c->api.vip && c->api.vip_name && ip_parse(c->api.vip_name, &ip))
                rule_error(p, c, "api.vipName", "use a DNS name, or leave it out",
                        "%s is an address", c->api.vip_name);
}

static void without_vip(const struct cluster *c, struct problems *p)
{
        const struct api *a = &c->api;
        size_t servers = 0;
        if (a->vip || rule_spoiled(p, "api.vip"))
                return;
        if (tree_get(a->src, "vipInterface"))
                rule_warn(p, c, "api.vipInterface", "set api.vip too, or leave it out",
                        "vipInterface has no effect without a VIP");
        if (tree_get(a->src, "vipName"))
                rule_error(p, c, "api.vipName",
                        "set api.vip too, or list the name in api.names instead",
                        "a name of the VIP has no effect without a VIP");
        if (tree_get(a->src, "virtualRouterID"))
                rule_warn(p, c, "api.virtualRouterID", "set api.vip too, or leave it out",
                        "virtualRouterID has no effect without a VIP");
        for (size_t i = 0; i < c->node_count; i++)
                servers += !!(c->nodes[i].pool->roles & ROLE_CONTROL_PLANE);
        if (servers > 1 && !a->load_balancer && !a->names.n && c->provider.kind == PROVIDER_SSH)
                rule_warn(p, c, "api.vip",
                        "set api.vip to a free address of the hosts' network, or set api.loadBalancer or api.names to the load balancer in front of them",
                        "there are %zu API servers but no common address for them, so clients lose the API when the first one is down",
                        servers);
}

static const struct {
        long port;
        const char *what;
} ports[] = {
        { 22, "sshd" },
        { 2379, "etcd" },
        { 2380, "etcd peers" },
        { 2381, "etcd's metrics" },
        { 10248, "the kubelet's health check" },
        { 10249, "kube-proxy's metrics" },
        { 10250, "the kubelet" },
        { 10256, "kube-proxy's health check" },
        { 10257, "the controller manager" },
        { 10259, "the scheduler" },
};

void rule_port(const struct cluster *c, const char *path, long number, const char *hint,
        struct problems *p)
{
        for (size_t i = 0; i < ARRAY_SIZE(ports); i++)
                if (ports[i].port == number)
                        rule_error(
                                p, c, path, hint, "port %ld is used by %s", number, ports[i].what);
        if (number >= 30000 && number <= 32767)
                rule_error(p, c, path, hint,
                        "port %ld is in 30000–32767, which Kubernetes uses for NodePort Services",
                        number);
}

static void load_balancer(const struct cluster *c, struct problems *p)
{
        const char *lb = c->api.load_balancer;
        size_t n = lb ? strcspn(lb, ":") : 0;
        for (size_t i = 0; lb && n && i < c->node_count; i++) {
                const char *address = c->nodes[i].address;
                if (address && (c->nodes[i].pool->roles & ROLE_CONTROL_PLANE) &&
                        strlen(address) == n && strncmp(address, lb, n) == 0)
                        rule_warn(p, c, "api.loadBalancer",
                                "leave it out if there is one API server, or set it to the load balancer in front of all",
                                "%s is the control-plane node %s itself", lb, c->nodes[i].name);
        }
}

void rules_api(struct cluster *c, struct problems *p)
{
        const struct api *a = &c->api;
        api_vip(c, p);
        vip_name(c, p);
        without_vip(c, p);
        rule_port(c, "api.port", a->port, "use 6443", p);
        if (a->local_port && a->local_port == a->port)
                rule_error(p, c, rule_find(c, "api.localPort") ? "api.localPort" : "api.port",
                        "use another, such as 7443",
                        "port %ld is used by both the API server and the local load balancer",
                        a->port);
        else
                rule_port(c, "api.localPort", a->local_port, "use 7443", p);
        load_balancer(c, p);
        rule_duplicates(p, rule_find(c, "api.names"), &a->names, "name");
}
