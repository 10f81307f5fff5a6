/* The objects of a built-in fabric. */
#include "addon/addon.h"
#include "config/fabric.h"
#include "node/context.h"
#include "node/template.h"

/* ---- Calico ---- */

static const struct {
        const char *kind, *plural;
        bool namespaced;
} calico_kinds[] = {
        { "BGPConfiguration", "bgpconfigurations" },
        { "BGPFilter", "bgpfilters" },
        { "BGPPeer", "bgppeers" },
        { "BlockAffinity", "blockaffinities" },
        { "CalicoNodeStatus", "caliconodestatuses" },
        { "ClusterInformation", "clusterinformations" },
        { "FelixConfiguration", "felixconfigurations" },
        { "GlobalNetworkPolicy", "globalnetworkpolicies" },
        { "GlobalNetworkSet", "globalnetworksets" },
        { "HostEndpoint", "hostendpoints" },
        { "IPAMBlock", "ipamblocks" },
        { "IPAMConfig", "ipamconfigs" },
        { "IPAMHandle", "ipamhandles" },
        { "IPPool", "ippools" },
        { "IPReservation", "ipreservations" },
        { "KubeControllersConfiguration", "kubecontrollersconfigurations" },
        { "NetworkPolicy", "networkpolicies", true },
        { "NetworkSet", "networksets", true },
};

static json_t *calico_definitions(void)
{
        json_t *list = json_array();
        for (size_t i = 0; i < ARRAY_SIZE(calico_kinds); i++) {
                const char *kind = calico_kinds[i].kind, *plural = calico_kinds[i].plural;
                char *singular CLEANUP(free_p) = xstrdup(kind);
                for (char *p = singular; *p; p++)
                        *p = *p >= 'A' && *p <= 'Z' ? (char)(*p + 32) : *p;
                json_array_append_new(
                        list, json_pack("{s:o, s:s, s:s, s:o, s:s, s:s}", "crd",
                                      json_sprintf("%s.crd.projectcalico.org", plural), "scope",
                                      calico_kinds[i].namespaced ? "Namespaced" : "Cluster", "kind",
                                      kind, "list", json_sprintf("%sList", kind), "plural", plural,
                                      "singular", singular));
        }
        return list;
}

/* With host-gw the nodes of one network have routes to each other's pods, and only packets to
 * other networks are wrapped. Every node gets blocks of addresses from the pool as its pods need
 * them. */
static json_t *calico_pools(const struct cluster *c)
{
        json_t *list = json_array();
        const char *mode = c->network.fabric.backend == BACKEND_HOST_GW ? "CrossSubnet" : "Always";
        for (size_t i = 0; i < c->network.pods.n; i++) {
                const struct cidr *pods = &c->network.pods.v[i];
                bool six = pods->ip.family == 6;
                char text[IP_TEXT + 4];
                int block = six ? 122 : 26;
                json_array_append_new(
                        list, json_pack("{s:s, s:s, s:i, s:s}", "name",
                                      six ? "default-ipv6-ippool" : "default-ipv4-ippool", "cidr",
                                      cidr_format(pods, text), "block",
                                      block < pods->bits ? pods->bits : block, "mode", mode));
        }
        return list;
}

void addon_fabric(const struct cluster *c, struct str *out)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct catalogue catalogue;
        const struct fabric_row *row = cluster_fabric(c);
        json_t *v = json_object();
        if (!catalogue_for(&a, &c->kubernetes, &catalogue))
                return json_decref(v);
        json_object_set_new(v, "kinds", calico_definitions());
        json_object_set_new(v, "pools", calico_pools(c));
        json_put(v, "version", "v" CALICO_VERSION);
        json_put(v, "controllers", catalogue.images[IMG_CALICO_CONTROLLERS].name);
        for (size_t i = 0; i < ARRAY_SIZE(row->objects) && row->objects[i]; i++) {
                str_add(out, i ? "\n---\n" : "");
                template_render(row->objects[i], v, out);
        }
        if (cluster_addon(c, ADDON_MULTUS)) { /* without them no pod starts, not even CoreDNS */
                str_add(out, "\n---\n");
                template_render(addon_row(ADDON_MULTUS)->template, v, out);
        }
        json_decref(v);
}
