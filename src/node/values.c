/* Values of one node: addresses, peers, versions. */
#include "config/addon.h"
#include "node/context.h"
#include "base/quote.h"

/* Up to this many nodes NO_PROXY has each address; with more, their /24 and /64 networks: the
 * variable must fit into an environment. */
#define NO_PROXY_NODES 64

#define NO_PROXY_BLOCKS 512

/* In the same /24 or /64. Called for every pair of nodes, so it must be fast. */
static bool same_block(const struct ip *a, const struct ip *b)
{
        return a->family == b->family && !memcmp(a->b, b->b, a->family == 4 ? 3 : 8);
}

static void no_proxy_blocks(const struct cluster *c, struct str *s)
{
        const struct ip *seen[NO_PROXY_BLOCKS];
        size_t n = 0;
        for (size_t i = 0; i < c->node_count * 2; i++) {
                const struct ip *ip = &c->nodes[i / 2].ip[i % 2];
                size_t k = n;
                if (!ip->family)
                        continue;
                while (k && !same_block(seen[k - 1], ip)) /* from the last: often the same */
                        k--;
                if (k || n == NO_PROXY_BLOCKS)
                        continue;
                char text[IP_TEXT], buf[IP_TEXT + 4];
                struct cidr block;
                seen[n++] = ip;
                snprintf(buf, sizeof(buf), "%s/%d", ip_format(ip, text), ip->family == 4 ? 24 : 64);
                if (cidr_parse(buf, &block, NULL))
                        str_addf(s, ",%s", cidr_format(&block, buf));
        }
}

static void no_proxy_nodes(const struct cluster *c, struct str *s)
{
        char text[IP_TEXT], buf[IP_TEXT + 4];
        for (size_t i = 0; i < c->network.hosts.n; i++)
                str_addf(s, ",%s", cidr_format(&c->network.hosts.v[i], buf));
        if (c->network.hosts.n)
                return;
        if (c->node_count > NO_PROXY_NODES) {
                no_proxy_blocks(c, s);
                return;
        }
        for (size_t i = 0; i < c->node_count * 2; i++)
                if (c->nodes[i / 2].ip[i % 2].family)
                        str_addf(s, ",%s", ip_format(&c->nodes[i / 2].ip[i % 2], text));
}

static const char *no_proxy_values(const struct context *x)
{
        const struct cluster *c = x->cluster;
        struct str s CLEANUP(str_release) = { 0 };
        const char *endpoint = cluster_endpoint_host(c);
        str_addf(&s, "localhost,127.0.0.1,::1,.svc,.%s", c->network.domain);
        str_addf(&s, ",%s,%s", cidrs_join(x->arena, &c->network.pods),
                cidrs_join(x->arena, &c->network.services));
        if (endpoint)
                str_addf(&s, ",%s", endpoint);
        no_proxy_nodes(c, &s);
        for (size_t i = 0; i < c->proxy.no_proxy.n; i++)
                str_addf(&s, ",%s", c->proxy.no_proxy.v[i]);
        return arena_strdup(x->arena, str_text(&s));
}

static json_t *image_values(const struct context *x)
{
        static const struct {
                const char *key;
                enum image_id id;
        } table[] = {
                { "apiserver", IMG_APISERVER },
                { "controller_manager", IMG_CONTROLLER_MANAGER },
                { "scheduler", IMG_SCHEDULER },
                { "haproxy", IMG_HAPROXY },
                { "keepalived", IMG_KEEPALIVED },
        };
        json_t *v = json_object();
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                json_put(v, table[i].key, x->catalogue.images[table[i].id].name);
        return v;
}

static json_t *encryption_values(const struct context *x)
{
        static const char *const providers[] = { [ENCRYPTION_NONE] = "",
                [ENCRYPTION_SECRETBOX] = "secretbox",
                [ENCRYPTION_AESCBC] = "aescbc",
                [ENCRYPTION_AESGCM] = "aesgcm" };
        json_t *v = json_object(), *resources = json_array();
        for (size_t i = 0; i < x->cluster->encryption.resources.n; i++)
                json_add(resources, x->cluster->encryption.resources.v[i]);
        json_object_set_new(v, "resources", resources);
        json_put(v, "provider", providers[x->cluster->encryption.provider]);
        const struct identity *id = x->in->identity;
        json_t *keys = json_array();
        json_array_append_new(keys, json_pack("{s:s, s:s}", "name", id->encryption_key_name, "key",
                                            id->encryption_key));
        if (id->encryption_other)
                json_array_append_new(
                        keys, json_pack("{s:s, s:s}", "name", id->encryption_other_name, "key",
                                      id->encryption_other));
        json_object_set_new(v, "keys", keys);
        json_object_set_new(
                v, "plain_first", json_boolean(id->rotation.phase[ROTATE_ENCRYPT] == ROTATE_TRUST));
        return v;
}

static json_t *gate_values(const struct cluster *c)
{
        json_t *list = json_array();
        for (size_t i = 0; i < c->feature_gates.n; i++) {
                json_t *o = json_object();
                json_put(o, "key", c->feature_gates.v[i].key);
                json_object_set_new(
                        o, "value", json_boolean(streq(c->feature_gates.v[i].value, "true")));
                json_array_append_new(list, o);
        }
        return json_array_size(list) ? json_pack("{s:o}", "pairs", list)
                                     : (json_decref(list), json_false());
}

static void plain_values(struct context *x)
{
        static const char *const levels[] = { [AUDIT_NONE] = "None",
                [AUDIT_METADATA] = "Metadata",
                [AUDIT_REQUEST] = "Request",
                [AUDIT_REQUEST_RESPONSE] = "RequestResponse" };
        static const char *const security[] = { [POD_SECURITY_PRIVILEGED] = "privileged",
                [POD_SECURITY_BASELINE] = "baseline",
                [POD_SECURITY_RESTRICTED] = "restricted" };
        const struct cluster *c = x->cluster;
        const struct os_id *os = os_find(x->facts->os_id);
        struct ip dns[2];
        char text[IP_TEXT];
        json_t *v = x->values, *list = json_array();
        json_put(v, "name", x->node->name);
        json_put(v, "domain", c->network.domain);
        json_put(v, "pods", cidrs_join(x->arena, &c->network.pods));
        json_put(v, "pause",
                c->runtime.pause ? c->runtime.pause : x->catalogue.images[IMG_PAUSE].name);
        json_put(v, "no_proxy", x->with & WITH_HTTP_PROXY ? no_proxy_values(x) : "");
        json_put(v, "audit_level", levels[c->audit.level]);
        json_put(v, "pod_security", security[c->admission.pod_security]);
        json_put(v, "pod_warning", security[c->admission.pod_warning]);
        json_put(v, "resolv_conf", os && os->resolved ? "/run/systemd/resolve/resolv.conf" : "");
        json_object_set_new(v, "systemd_cgroup", json_boolean(x->facts->cgroup == 2));
        json_object_set_new(v, "cgroup_v1", json_boolean(x->facts->cgroup == 1));
        json_object_set_new(v, "ipv6", json_boolean(any_ipv6(c)));
        json_object_set_new(v, "static_balancers", json_boolean(x->with & WITH_STATIC_BALANCERS));
        const char *cache =
                x->with & WITH_DNS_CACHE ? addon_value(c, ADDON_NODELOCALDNS, "address") : NULL;
        for (size_t i = 0, n = cache ? 0 : cluster_dns(c, dns); i < n; i++)
                json_add(list, ip_format(&dns[i], text));
        if (cache)
                json_add(list, cache);
        json_object_set_new(v, "dns", list);
        json_put(v, "dns_address",
                arena_printf(x->arena, "%s/%d", cache ? cache : "",
                        cache && strchr(cache, ':') ? 128 : 32));
        json_object_set_new(v, "gates", gate_values(c));
        json_object_set_new(v, "image", image_values(x));
}

void node_values(struct context *x)
{
        const struct {
                with_set need;
                const char *key;
                json_t *(*make)(const struct context *);
        } table[] = {
                { ON_KUBE, "api", api_values },
                { ON_KUBE, "kubelet", kubelet_values },
                { ON_KUBE | WITH_KUBE_PROXY, "kube_proxy", kube_proxy_values },
                { ON_KUBE | WITH_FLANNEL, "flannel", flannel_values },
                { ON_KUBE | WITH_FELIX, "calico", calico_values },
                { ON_KUBE, "registry", registry_values },
                { ON_CONTROL_PLANE, "apiserver", control_apiserver },
                { ON_CONTROL_PLANE, "controller_manager", control_controller_manager },
                { ON_CONTROL_PLANE, "scheduler", control_scheduler },
                { ON_CONTROL_PLANE | WITH_ENCRYPTION, "encryption", encryption_values },
                { ON_CONTROL_PLANE | WITH_VIP, "vip", vip_values },
                { ON_ETCD, "etcd", etcd_values },
                { ON_ETCD | WITH_ETCD_POD, "etcd_pod", etcd_pod_values },
        };
        x->values = json_copy(x->host);
        plain_values(x);
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if ((x->with & table[i].need) == table[i].need)
                        json_object_set_new(x->values, table[i].key, table[i].make(x));
}
