/* Security groups: `nodes` has every machine, `control` the control plane and etcd in addition,
 * `bastion` only the bastion, `balancer` only the load balancer. */
#include "provider/aws/kinds.h"

#define OURS "slipway" /* the description of our rules: others may add their own */

enum rule_from {
        FROM_NODES,
        FROM_CONTROL,
        FROM_BASTION,
        FROM_VPC,
        FROM_SSH,
        FROM_API,
        FROM_ADDRESSES,
        FROM_NODE_PORTS
};

/* Within the group `nodes` everything is open: the fabrics' ports differ, and so do pods'. */
static const struct rule {
        const char *group, *protocol;
        long from, to; /* 0: the API's port; -1: all */
        enum rule_from source;
} group_rules[] = {
        { "nodes", "-1", -1, -1, FROM_NODES },
        { "nodes", "tcp", 22, 22, FROM_SSH },
        { "nodes", "tcp", 22, 22, FROM_BASTION },
        { AWS_BASTION, "tcp", 22, 22, FROM_SSH },
        { "nodes", "icmp", -1, -1, FROM_VPC },
        { "nodes", "tcp", 30000, 32767, FROM_NODE_PORTS },
        { "nodes", "udp", 30000, 32767, FROM_NODE_PORTS },
        { "control", "tcp", 0, 0, FROM_API },
        /* the load balancer's checks and, as it does not preserve addresses, its clients: whose
         * they may be is said by its own group */
        { "control", "tcp", 0, 0, FROM_VPC },
        { "control", "tcp", 2379, 2380, FROM_CONTROL },
        { AWS_BALANCE, "tcp", 0, 0, FROM_API },
        { AWS_BALANCE, "tcp", 0, 0, FROM_VPC },
        { AWS_BALANCE, "tcp", 0, 0, FROM_ADDRESSES },
};

static const struct {
        const char *role, *whose;
} group_words[] = { { "nodes", "machines" }, { "control", "control plane" },
        { AWS_BASTION, AWS_BASTION }, { AWS_BALANCE, "load balancer" } };

static const char *group_whose(const char *role)
{
        for (size_t i = 0; i < ARRAY_SIZE(group_words); i++)
                if (streq(group_words[i].role, role))
                        return group_words[i].whose;
        return role;
}

void group_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        arg_put(a, "GroupName", thing_name(w, t));
        arg_put(a, "GroupDescription",
                arena_printf(a->arena, "%s of cluster %s (%s)", group_whose(t->role),
                        w->run->cluster->name, w->mark));
        arg_put(a, "VpcId", vpc_id(w));
}

static const struct thing *rule_source_group(const struct aws_run *w, const struct rule *r)
{
        static const char *const roles[] = {
                [FROM_NODES] = "nodes", [FROM_CONTROL] = "control", [FROM_BASTION] = AWS_BASTION
        };
        return r->source < ARRAY_SIZE(roles) ? thing_of(w, KIND_GROUP, roles[r->source]) : NULL;
}

static struct cidrs rule_addresses(struct aws_run *w)
{
        struct cidrs all = { 0, arena_array(&w->arena, struct cidr, w->count) };
        for (size_t i = 0; i < w->count; i++) {
                const struct aws_address *e = w->things[i]->is;
                struct cidr *c = &all.v[all.n];
                if (balancer_client(w, w->things[i]) && e && e->address &&
                        ip_parse(e->address, &c->ip)) {
                        c->bits = 32;
                        all.n++;
                }
        }
        return all;
}

static struct cidrs rule_sources(struct aws_run *w, const struct rule *r)
{
        const struct cloud_access *access = &w->config->access;
        const struct thing *vpc = thing_of(w, KIND_VPC, "vpc");
        const struct aws_network *n = vpc->is;
        struct cidrs one = { 1, arena_new(&w->arena, struct cidr) };
        switch (r->source) {
        case FROM_SSH:
                return access->ssh;
        case FROM_API:
                return access->api;
        case FROM_ADDRESSES:
                return rule_addresses(w);
        case FROM_NODE_PORTS:
                return access->node_ports;
        case FROM_VPC:
                if (n && n->cidr && cidr_parse(n->cidr, one.v, NULL))
                        return one;
                *one.v = w->config->vpc.cidr;
                return one;
        default:
                return (struct cidrs){ 0 };
        }
}

static bool rule_same(const struct aws_run *w, const struct rule *r, const struct aws_rule *is)
{
        long port = w->run->cluster->api.port;
        bool all = streq(r->protocol, "-1");
        return streq(is->protocol, r->protocol) &&
               (all || (is->from == (r->from ? r->from : port) &&
                               is->to == (r->to ? r->to : port)));
}

/* Whether the group lets this range (or group) through. */
static bool rule_is_there(
        struct aws_run *w, const struct aws_group *g, const struct rule *r, const char *source)
{
        const struct aws_rule *is = g ? g->ingress.v : NULL;
        for (size_t i = 0; g && i < g->ingress.n; i++) {
                const struct aws_range *ranges = is[i].ranges.v;
                const struct aws_peer *peers = is[i].groups.v;
                if (!rule_same(w, r, &is[i]))
                        continue;
                for (size_t k = 0; k < is[i].ranges.n; k++)
                        if (streq(ranges[k].cidr, source))
                                return true;
                for (size_t k = 0; k < is[i].groups.n; k++)
                        if (peers[k].group && streq(peers[k].group, source))
                                return true;
        }
        return false;
}

static void rule_put(const struct aws_run *w, struct args *a, size_t n, const struct rule *r,
        const char *source, bool group)
{
        const char *list = group ? "Groups" : "IpRanges", *key = group ? "GroupId" : "CidrIp";
        long port = w->run->cluster->api.port;
        arg_putf(a, r->protocol, "IpPermissions.%zu.IpProtocol", n);
        if (!streq(r->protocol, "-1")) {
                arg_putf(a, arena_printf(a->arena, "%ld", r->from ? r->from : port),
                        "IpPermissions.%zu.FromPort", n);
                arg_putf(a, arena_printf(a->arena, "%ld", r->to ? r->to : port),
                        "IpPermissions.%zu.ToPort", n);
        }
        arg_putf(a, source, "IpPermissions.%zu.%s.1.%s", n, list, key);
        arg_putf(a, OURS, "IpPermissions.%zu.%s.1.Description", n, list);
}

/* A range of an earlier row for the same port: AWS refuses it twice in one call. */
static bool rule_is_earlier(struct aws_run *w, const struct rule *r, const char *source)
{
        char text[IP_TEXT + 4];
        for (const struct rule *q = group_rules; q < r; q++) {
                if (!streq(q->group, r->group) || !streq(q->protocol, r->protocol) ||
                        q->from != r->from)
                        continue;
                struct cidrs ranges = rule_sources(w, q);
                for (size_t k = 0; k < ranges.n; k++)
                        if (streq(cidr_format(&ranges.v[k], text), source))
                                return true;
        }
        return false;
}

/* Puts what the group lacks into `a` (NULL: only counts); returns how many rules that are. */
static size_t rules_missing(struct aws_run *w, const struct thing *t, struct args *a)
{
        const struct aws_group *g = index_get(&w->lists[LIST_GROUPS].by_role, t->role);
        size_t n = 0;
        for (size_t i = 0; i < ARRAY_SIZE(group_rules); i++) {
                const struct rule *r = &group_rules[i];
                const struct thing *group = rule_source_group(w, r);
                struct cidrs ranges = rule_sources(w, r);
                if (!streq(r->group, t->role))
                        continue;
                if (group && (!group->id || !rule_is_there(w, g, r, group->id)) && ++n && a)
                        rule_put(w, a, n, r, group->id, true);
                for (size_t k = 0; k < ranges.n; k++) {
                        char text[IP_TEXT + 4];
                        cidr_format(&ranges.v[k], text);
                        if (ranges.v[k].ip.family == 4 && !rule_is_there(w, g, r, text) &&
                                !rule_is_earlier(w, r, text) && ++n && a)
                                rule_put(w, a, n, r, arena_strdup(a->arena, text), false);
                }
        }
        return n;
}

void rules_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        arg_put(a, "GroupId", thing_of(w, KIND_GROUP, t->role)->id);
        rules_missing(w, t, a);
}

/* An address that is not there yet will need a rule. */
bool rules_found(struct aws_run *w, struct thing *t)
{
        for (size_t i = 0; i < t->need_count; i++)
                if (t->needs[i]->kind == KIND_ADDRESS && !t->needs[i]->there)
                        return false;
        return rules_missing(w, t, NULL) == 0;
}

/* ---- rules that go ---- */

static bool rule_is_wanted(
        struct aws_run *w, const char *role, const struct aws_rule *is, const char *source)
{
        char text[IP_TEXT + 4];
        for (size_t i = 0; i < ARRAY_SIZE(group_rules); i++) {
                const struct rule *r = &group_rules[i];
                struct cidrs ranges = rule_sources(w, r);
                if (!streq(r->group, role) || !rule_same(w, r, is))
                        continue;
                for (size_t k = 0; k < ranges.n; k++)
                        if (streq(cidr_format(&ranges.v[k], text), source))
                                return true;
        }
        return false;
}

static void rule_gone_put(
        struct args *a, size_t n, const struct aws_rule *is, const char *source, bool group)
{
        arg_putf(a, is->protocol, "IpPermissions.%zu.IpProtocol", n);
        if (!streq(is->protocol, "-1")) {
                arg_putf(a, arena_printf(a->arena, "%" PRId64, is->from),
                        "IpPermissions.%zu.FromPort", n);
                arg_putf(a, arena_printf(a->arena, "%" PRId64, is->to), "IpPermissions.%zu.ToPort",
                        n);
        }
        if (group)
                arg_putf(a, OURS, "IpPermissions.%zu.Groups.1.Description", n);
        arg_putf(a, source, "IpPermissions.%zu.%s", n,
                group ? "Groups.1.GroupId" : "IpRanges.1.CidrIp");
}

/* Only ranges with our description, and the group of a bastion that the file does not want: other
 * groups of the cluster stay, and rules of others too. Puts them into `a` (NULL: only counts). */
static size_t rules_unwanted(struct aws_run *w, const struct thing *t, struct args *a)
{
        const struct aws_group *g = index_get(&w->lists[LIST_GROUPS].by_role, t->role);
        const struct aws_group *left = bastion_group_left(w);
        const struct aws_rule *is = g ? g->ingress.v : NULL;
        size_t n = 0;
        for (size_t i = 0; g && i < g->ingress.n; i++) {
                const struct aws_range *ranges = is[i].ranges.v;
                const struct aws_peer *peers = is[i].groups.v;
                for (size_t k = 0; left && k < is[i].groups.n; k++)
                        if (peers[k].group && streq(peers[k].group, left->id) && ++n && a)
                                rule_gone_put(a, n, &is[i], left->id, true);
                for (size_t k = 0; k < is[i].ranges.n; k++) {
                        const char *words = ranges[k].description;
                        if (!words || !streq(words, OURS) || !ranges[k].cidr ||
                                rule_is_wanted(w, t->role, &is[i], ranges[k].cidr))
                                continue;
                        n++;
                        if (a)
                                rule_gone_put(a, n, &is[i], ranges[k].cidr, false);
                }
        }
        return n;
}

void rules_gone_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        arg_put(a, "GroupId", thing_of(w, KIND_GROUP, t->role)->id);
        rules_unwanted(w, t, a);
}

bool rules_gone(struct aws_run *w, struct thing *t) { return rules_unwanted(w, t, NULL) == 0; }
