/* Values of built-in addons: what `values` of services.addons may hold. */
#include "base/ip.h"
#include "config/addon.h"
#include "config/scalar.h"

#define RANGES_MAX 32

static const struct addon_option option_table[] = {
        { ADDON_NODELOCALDNS, "address", OPTION_ADDRESS, "169.254.20.10",
                "the address of the cache, the same on every node", "169.254.20.10" },
        { ADDON_DNS_AUTOSCALER, "min", OPTION_NUMBER, "2", "replicas at least", "2", 1, 1000 },
        { ADDON_DNS_AUTOSCALER, "max", OPTION_NUMBER, "10", "replicas at most", "10", 1, 1000 },
        { ADDON_DNS_AUTOSCALER, "cpu", OPTION_NUMBER, "80",
                "percent of the requested CPU that the replicas are held at", "80", 1, 1000 },
        { ADDON_REGISTRY, "storage", OPTION_SIZE, "10Gi", "the size of its volume", "10Gi" },
        { ADDON_REGISTRY, "port", OPTION_NUMBER, "5000",
                "the port on the loopback address of nodes", "5000", 1024, 29999 },
        { ADDON_KUBE_VIP, "addresses", OPTION_RANGES, NULL,
                "addresses for Services, as FIRST-LAST or a CIDR", "[10.0.0.200-10.0.0.220]" },
        { ADDON_KUBE_VIP, "interface", OPTION_WORD, "",
                "the nodes' network interface, if it is not that of the default route", "eth1" },
        { ADDON_INGRESS, "replicas", OPTION_NUMBER, "2", "pods of Traefik", "2", 1, 100 },
        { ADDON_PROMETHEUS, "storage", OPTION_SIZE, "",
                "the size of its volume, if metrics are to outlive its pod", "50Gi" },
        { ADDON_PROMETHEUS, "days", OPTION_NUMBER, "15", "how long metrics are kept", "15", 1,
                3650 },
        { .name = NULL },
};

const struct addon_option *addon_options(void) { return option_table; }

bool option_range(const char *text, struct ip *first, struct ip *last)
{
        struct cidr cidr;
        const char *dash = strchr(text, '-');
        char *from CLEANUP(free_p) = xstrndup(text, dash ? (size_t)(dash - text) : 0);
        if (dash)
                return ip_parse(from, first) && ip_parse(dash + 1, last) &&
                       first->family == last->family &&
                       memcmp(first->b, last->b, sizeof(first->b)) <= 0;
        if (!cidr_parse(text, &cidr, NULL))
                return false;
        *first = *last = cidr.ip;
        for (unsigned bit = cidr.bits; bit < (cidr.ip.family == 4 ? 32U : 128U); bit++)
                last->b[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
        return true;
}

static const char *ranges_fault(struct arena *a, const struct tree *list)
{
        struct ip first, last;
        const char *why = NULL;
        if (list->kind != TREE_LIST || !list->count || list->count > RANGES_MAX)
                return arena_printf(a, "it must be a list of 1 to %d ranges", RANGES_MAX);
        tree_each (c, list)
                if (!why && (c->kind != TREE_SCALAR || !option_range(c->text, &first, &last)))
                        why = arena_printf(a, "\"%s\" is neither FIRST-LAST nor a CIDR",
                                c->kind == TREE_SCALAR ? c->text : "");
        return why;
}

const char *option_fault(struct arena *a, const struct addon_option *o, const struct tree *value)
{
        struct ip ip;
        int64_t n;
        if (o->kind == OPTION_RANGES)
                return ranges_fault(a, value);
        if (value->kind != TREE_SCALAR)
                return "it must be a single value";
        switch (o->kind) {
        case OPTION_ADDRESS:
                return ip_parse(value->text, &ip) ? NULL : "it must be an IP address";
        case OPTION_NUMBER:
                return tree_int(value, &n) && n >= o->min && n <= o->max
                               ? NULL
                               : arena_printf(a, "it must be a number from %lld to %lld",
                                         (long long)o->min, (long long)o->max);
        case OPTION_SIZE:
                return size_parse(value->text, &n) && n > 0 ? NULL
                                                            : "it must be a size, such as 10Gi";
        default:
                return *value->text && strlen(value->text) < 16 &&
                                       !strpbrk(value->text, " /\t\n,\"'")
                               ? NULL
                               : "it must be the name of a network interface";
        }
}

static const struct addon_option *option_named(enum addon_id id, const char *name)
{
        for (const struct addon_option *o = option_table; o->name; o++)
                if (o->addon == id && streq(o->name, name))
                        return o;
        return NULL;
}

static const char *ranges_text(struct arena *a, const struct tree *list)
{
        struct str all CLEANUP(str_release) = { 0 };
        tree_each (c, list)
                if (c->kind == TREE_SCALAR)
                        str_addf(&all, "%s%s", all.len ? "," : "", c->text);
        return arena_strdup(a, str_text(&all));
}

/* What is complained about may be of any kind. */
const char *addon_value(const struct cluster *c, enum addon_id id, const char *name)
{
        const struct addon_option *o = option_named(id, name);
        const struct tree *given = NULL;
        for (size_t i = 0; i < c->services.addons.n; i++)
                if (addon_named(c->services.addons.v[i].name) == id)
                        given = tree_get(c->services.addons.v[i].values, name);
        if (given && o->kind == OPTION_RANGES)
                return ranges_text(c->arena, given);
        if (given && given->kind == TREE_SCALAR)
                return given->text;
        return o->fallback ? o->fallback : "";
}
