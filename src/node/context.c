#include "node/context.h"
#include "config/addon.h"
#include "config/fabric.h"

void json_put(json_t *object, const char *key, const char *text)
{
        json_object_set_new(object, key, json_string_nocheck(text ? text : ""));
}

void json_add(json_t *array, const char *text)
{
        json_array_append_new(array, json_string_nocheck(text));
}

json_t *json_pairs(const struct pairs *p)
{
        json_t *list = json_array();
        for (size_t i = 0; i < p->n; i++) {
                json_t *o = json_object();
                json_put(o, "key", p->v[i].key);
                json_put(o, "value", p->v[i].value);
                json_array_append_new(list, o);
        }
        return list;
}

const char *flag_name(const char *name) { return name + strspn(name, "-"); }

struct pairs pairs_over(struct arena *a, const struct pairs *base, const struct pairs *over)
{
        struct pairs out = { .v = arena_array(a, struct pair, base->n + over->n) };
        for (size_t i = 0; i < base->n; i++)
                out.v[out.n++] = base->v[i];
        for (size_t i = 0; i < over->n; i++) {
                size_t j = 0;
                while (j < base->n && !streq(flag_name(out.v[j].key), flag_name(over->v[i].key)))
                        j++;
                out.v[j < base->n ? j : out.n++] = over->v[i];
        }
        return out;
}

const char *strings_join(struct arena *a, const struct strings *s, const char *between)
{
        struct str text CLEANUP(str_release) = { 0 };
        for (size_t i = 0; i < s->n; i++)
                str_addf(&text, "%s%s", i ? between : "", s->v[i]);
        return arena_strdup(a, str_text(&text));
}

const char *cidrs_join(struct arena *a, const struct cidrs *c)
{
        struct str text CLEANUP(str_release) = { 0 };
        char buf[IP_TEXT + 4];
        for (size_t i = 0; i < c->n; i++)
                str_addf(&text, "%s%s", i ? "," : "", cidr_format(&c->v[i], buf));
        return arena_strdup(a, str_text(&text));
}

const struct ip *node_ip(const struct node *n, int family)
{
        return n->ip[1].family == family ? &n->ip[1] : &n->ip[0];
}

bool any_ipv6(const struct cluster *c)
{
        for (size_t i = 0; i < c->network.pods.n; i++)
                if (c->network.pods.v[i].ip.family == 6)
                        return true;
        return false;
}

/* ---- bits that tables select by ---- */

static with_set role_bits(const struct context *x)
{
        const struct cluster *c = x->cluster;
        unsigned roles = x->node->pool->roles;
        with_set with = 0;
        with |= roles & ROLE_CONTROL_PLANE ? ON_CONTROL_PLANE : 0;
        with |= roles & ROLE_ETCD ? ON_ETCD : 0;
        with |= roles & (ROLE_CONTROL_PLANE | ROLE_WORKER) ? ON_KUBE : 0;
        for (size_t i = 0; i < c->pools.n; i++)
                if ((c->pools.v[i].roles & (ROLE_CONTROL_PLANE | ROLE_ETCD)) ==
                        (ROLE_CONTROL_PLANE | ROLE_ETCD))
                        with |= WITH_ETCD_BESIDE;
        return with;
}

static with_set cluster_bits(const struct context *x)
{
        const struct cluster *c = x->cluster;
        const struct identity *id = x->in->identity;
        const struct {
                bool so;
                with_set bit;
        } table[] = {
                { c->runtime.managed && c->runtime.kind == RUNTIME_CONTAINERD, WITH_CONTAINERD },
                { c->runtime.managed && c->runtime.kind == RUNTIME_CRIO, WITH_CRIO },
                { c->runtime.managed && c->runtime.oci == OCI_RUNC, WITH_RUNC },
                { c->runtime.managed && c->runtime.oci == OCI_CRUN, WITH_CRUN },
                { !c->runtime.managed, WITH_HOST_RUNTIME },
                { c->etcd.run == ETCD_RUN_SERVICE, WITH_ETCD_SERVICE },
                { c->etcd.run == ETCD_RUN_STATIC_POD, WITH_ETCD_POD },
                { c->api.local_balancer, WITH_BALANCER },
                { fabric_has(c, FABRIC_FLANNELD), WITH_FLANNEL },
                { fabric_has(c, FABRIC_BRIDGE), WITH_BRIDGE },
                { fabric_has(c, FABRIC_FELIX), WITH_FELIX },
                { fabric_has(c, FABRIC_CALICO_IPAM), WITH_CALICO_IPAM },
                { c->network.proxy_mode != PROXY_NONE && c->network.proxy_run == PROXY_RUN_SERVICE,
                        WITH_KUBE_PROXY },
                { c->api.vip, WITH_VIP },
                { c->services.dex.host, WITH_DEX },
                { cluster_addon(c, ADDON_NODELOCALDNS), WITH_DNS_CACHE },
                { cluster_addon(c, ADDON_MULTUS), WITH_MULTUS },
                { c->encryption.provider != ENCRYPTION_NONE, WITH_ENCRYPTION },
                { c->audit.level != AUDIT_NONE || c->audit.policy, WITH_AUDIT },
                { c->admission.pod_security != POD_SECURITY_PRIVILEGED ||
                                c->admission.pod_warning != POD_SECURITY_PRIVILEGED ||
                                c->admission.config,
                        WITH_ADMISSION },
                { c->auth.oidc.issuer && c->auth.oidc.ca_pem, WITH_OIDC_CA },
                { c->proxy.http || c->proxy.https, WITH_HTTP_PROXY },
                { url_has_user(c->proxy.http) || url_has_user(c->proxy.https), WITH_SECRET_PROXY },
                { c->os.ntp.n, WITH_NTP },
                { c->etcd.snapshots.keep > 0, WITH_SNAPSHOTS },
                { c->registry.ca_pem, WITH_REGISTRY_CA },
                { c->registry.username && c->registry.password, WITH_REGISTRY_AUTH },
                { id && !streq(id->ca[CA_CLUSTER].clients, id->ca[CA_CLUSTER].bundle),
                        WITH_CA_CHAIN },
        };
        with_set with = 0;
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                with |= table[i].so ? table[i].bit : 0;
        return with;
}

static with_set machine_bits(const struct context *x)
{
        with_set with = x->os->packages ? WITH_PACKAGES : WITH_STATIC_BALANCERS;
        with |= x->facts->family == OS_FLATCAR ? WITH_FLATCAR : 0;
        with |= disks_any(x->node->pool) ? WITH_DISKS : 0;
        return with;
}

int context_init(struct context *x, const struct spec_input *in, struct arena *a, bool immutable,
        struct error *err)
{
        *x = (struct context){ .in = in,
                .cluster = in->cluster,
                .node = in->node,
                .facts = in->facts,
                .os = os_info(in->facts->family),
                .arena = a,
                .immutable = immutable };
        if (!catalogue_for(a, &x->cluster->kubernetes, &x->catalogue)) {
                error_set(err, EINVAL, EXIT_CONFIG, "Kubernetes %s is not in the catalogue",
                        x->cluster->kubernetes.text);
                return error_hint(err, "this slipway installs %s", catalogue_minors());
        }
        x->with = role_bits(x) | cluster_bits(x) | machine_bits(x);
        if (x->with & ON_KUBE && x->cluster->network.proxy_mode == PROXY_IPVS && !in->facts->ipvs) {
                error_set(err, ENOTSUP, EXIT_PREFLIGHT,
                        "node %s: network.proxyMode is ipvs, but the kernel has no IPVS",
                        x->node->name);
                return error_hint(err,
                        "set network.proxyMode to nftables or iptables, or use a kernel with ip_vs");
        }
        host_values(x);
        if (!immutable)
                node_values(x);
        return 0;
}

/* jansson's strings are const, but this one has no other user and is freed next. */
static void wipe_text(json_t *object, const char *key)
{
        json_t *v = json_object_get(object, key);
        if (json_is_string(v))
                wipe((char *)(uintptr_t)json_string_value(v), json_string_length(v));
}

void context_release(struct context *x)
{
        wipe_text(json_object_get(x->values, "encryption"), "key");
        wipe_text(json_object_get(x->values, "vip"), "password");
        wipe_text(json_object_get(x->values, "registry"), "authorization");
        json_decref(x->values);
        json_decref(x->host);
        x->values = x->host = NULL;
}
