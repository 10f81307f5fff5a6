/* What a cluster needs in AWS, as a list of things with their needs. */
#include "config/fabric.h"
#include "provider/aws/impl.h"

#define PER_VPC \
        16 /* parts that the range of a VPC is divided into; the first is for public subnets */

struct thing *thing_of(const struct aws_run *w, enum kind_id kind, const char *role)
{
        char key[512];
        snprintf(key, sizeof(key), "%d %s", kind, role);
        return index_get(&w->by_role, key);
}

struct thing *node_thing(const struct aws_run *w, enum kind_id kind, const struct node *n)
{
        char role[300];
        snprintf(role, sizeof(role), "node/%s", n->name);
        return thing_of(w, kind, role);
}

static struct thing *thing_add(struct aws_run *w, enum kind_id kind, const char *role)
{
        struct thing *t = arena_new(&w->arena, struct thing);
        *t = (struct thing){ .kind = kind, .role = arena_strdup(&w->arena, role) };
        if (w->count == w->cap) {
                size_t cap = w->cap ? 2 * w->cap : 64;
                struct thing **v = arena_array(&w->arena, struct thing *, cap);
                if (w->count)
                        memcpy(v, w->things, w->count * sizeof(*v));
                w->things = v;
                w->cap = cap;
        }
        w->things[w->count++] = t;
        index_put(&w->by_role, arena_printf(&w->arena, "%d %s", kind, role), t);
        return t;
}

static void thing_needs(struct aws_run *w, struct thing *t, struct thing *need)
{
        if (!need)
                return;
        struct thing **v = arena_array(&w->arena, struct thing *, t->need_count + 1);
        if (t->need_count)
                memcpy(v, t->needs, t->need_count * sizeof(*v));
        v[t->need_count++] = need;
        t->needs = v;
}

/* ---- the network ---- */

/* The n-th /bits of the network. */
static const char *range_nth(struct aws_run *w, const struct cidr *net, unsigned bits, size_t n)
{
        struct cidr c = { .bits = (uint8_t)bits };
        char text[IP_TEXT + 4];
        if (!cidr_nth(net, (uint64_t)n << (32 - bits), &c.ip))
                return NULL;
        return arena_strdup(&w->arena, cidr_format(&c, text));
}

static bool range_is_taken(const struct aws_run *w, const char *range)
{
        const struct aws_subnet *s;
        for (size_t i = 0; (s = list_row(w, LIST_SUBNETS, i)); i++)
                if (s->cidr && streq(s->cidr, range))
                        return true;
        for (size_t i = 0; i < w->count; i++)
                if (w->things[i]->with && streq(w->things[i]->with, range))
                        return true;
        return false;
}

/* The range of the zone's place in the file, or the next one that is free. */
static const char *subnet_range(struct aws_run *w, bool public, size_t zone)
{
        const struct cidr *net = &w->config->vpc.cidr;
        unsigned bits = net->bits + 4u;
        struct cidr first = { net->ip, (uint8_t)bits };
        for (size_t i = 0; i < PER_VPC; i++) {
                const char *range =
                        public ? range_nth(w, &first, bits + 4, (zone + i) % PER_VPC)
                               : range_nth(w, net, bits, 1 + (zone + i) % (PER_VPC - 1));
                if (range && !range_is_taken(w, range))
                        return range;
        }
        return NULL;
}

static struct thing *subnet_add(struct aws_run *w, const char *side, size_t zone)
{
        const char *name = w->config->zones.v[zone];
        struct thing *t = thing_add(w, KIND_SUBNET, arena_printf(&w->arena, "%s/%s", side, name));
        const struct aws_subnet *is = index_get(&w->lists[LIST_SUBNETS].by_role, t->role);
        t->zone = name;
        t->with = is && is->cidr ? is->cidr : subnet_range(w, *side == 'p' && side[1] == 'u', zone);
        thing_needs(w, t, thing_of(w, KIND_VPC, "vpc"));
        thing_needs(w, t, thing_of(w, KIND_VPC_NAMES, "vpc"));
        return t;
}

static struct thing *table_add(struct aws_run *w, const char *role, struct thing *to)
{
        struct thing *t = thing_add(w, KIND_TABLE, role);
        thing_needs(w, t, thing_of(w, KIND_VPC, "vpc"));
        if (!to)
                return t;
        struct thing *r = thing_add(w, KIND_ROUTE, role);
        thing_needs(w, r, t);
        thing_needs(w, r, to);
        return t;
}

static void table_use(struct aws_run *w, struct thing *table, struct thing *subnet)
{
        struct thing *t = thing_add(w, KIND_TABLE_ON, subnet->role);
        thing_needs(w, t, table);
        thing_needs(w, t, subnet);
}

static struct thing *nat_add(struct aws_run *w, size_t zone)
{
        const char *name = w->config->zones.v[zone];
        struct thing *address = thing_add(w, KIND_ADDRESS, arena_printf(&w->arena, "nat/%s", name)),
                     *t = thing_add(w, KIND_NAT, address->role);
        thing_needs(w, t, address);
        thing_needs(w, t, thing_of(w, KIND_SUBNET, arena_printf(&w->arena, "public/%s", name)));
        thing_needs(w, t, thing_of(w, KIND_GATEWAY_ON, "gateway"));
        return t;
}

/* The zone of the one NAT gateway is the one it is in, whatever the file lists first. */
static size_t nat_zone(const struct aws_run *w)
{
        for (size_t i = 0; i < w->config->zones.n; i++) {
                char role[300];
                snprintf(role, sizeof(role), "nat/%s", w->config->zones.v[i]);
                if (index_get(&w->lists[LIST_NATS].by_role, role))
                        return i;
        }
        return 0;
}

static void vpc_add(struct aws_run *w)
{
        const struct strings *zones = &w->config->zones;
        struct thing *vpc = thing_add(w, KIND_VPC, "vpc"),
                     *names = thing_add(w, KIND_VPC_NAMES, "vpc"),
                     *gateway = thing_add(w, KIND_GATEWAY, "gateway"),
                     *on = thing_add(w, KIND_GATEWAY_ON, "gateway"), *nat = NULL;
        thing_needs(w, names, vpc);
        thing_needs(w, on, gateway);
        thing_needs(w, on, vpc);
        struct thing *public = table_add(w, "public", on);
        for (size_t i = 0; i < zones->n; i++)
                table_use(w, public, subnet_add(w, "public", i));
        if (w->config->nat == AWS_NAT_ONE)
                nat = nat_add(w, nat_zone(w));
        struct thing *private =
                w->config->nat == AWS_NAT_PER_ZONE ? NULL : table_add(w, "private", nat);
        for (size_t i = 0; i < zones->n; i++) {
                struct thing *subnet = subnet_add(w, "private", i), *table = private;
                if (!table)
                        table = table_add(w, subnet->role, nat_add(w, i));
                table_use(w, table, subnet);
        }
}

/* ---- an existing VPC ---- */

static struct thing *thing_given(
        struct aws_run *w, enum kind_id kind, const char *role, const char *id)
{
        struct thing *t = thing_add(w, kind, role);
        t->given = t->there = true;
        t->id = id;
        return t;
}

static void subnets_given(struct aws_run *w, const char *side, const struct strings *ids)
{
        const struct aws_subnet *s;
        for (size_t i = 0; (s = list_row(w, LIST_SUBNETS, i)); i++) {
                const char *role = arena_printf(&w->arena, "%s/%s", side, s->zone ? s->zone : "");
                if (!strings_contain(ids, s->id) || thing_of(w, KIND_SUBNET, role))
                        continue;
                struct thing *t = thing_given(w, KIND_SUBNET, role, s->id);
                t->is = s;
                t->zone = s->zone;
        }
}

static void vpc_use(struct aws_run *w)
{
        const struct aws_vpc *v = &w->config->vpc;
        struct thing *vpc = thing_given(w, KIND_VPC, "vpc", v->id);
        vpc->is = list_row(w, LIST_VPCS, 0);
        subnets_given(w, "private", &v->subnets);
        subnets_given(w, "public", v->public_subnets.n ? &v->public_subnets : &v->subnets);
}

/* ---- groups, profiles, the balancer ---- */

static void rules_add(struct aws_run *w, const char *role)
{
        struct thing *rules = thing_add(w, KIND_RULES, role);
        for (size_t i = 0; i < w->count; i++)
                if (w->things[i]->kind == KIND_GROUP ||
                        (streq(role, AWS_BALANCE) && balancer_client(w, w->things[i])))
                        thing_needs(w, rules, w->things[i]);
        thing_needs(w, thing_add(w, KIND_RULES_GONE, role), rules);
}

static void groups_add(struct aws_run *w)
{
        const char *roles[4];
        const struct strings *own = &w->config->security_groups;
        size_t n = 0;
        if (own->n == 1 && streq(own->v[0], "managed")) {
                roles[n++] = "nodes";
                roles[n++] = "control";
        }
        if (w->bastion.wanted)
                roles[n++] = AWS_BASTION;
        size_t machines = n;
        if (balancer_group_wanted(w))
                roles[n++] = AWS_BALANCE;
        for (size_t i = 0; i < n; i++)
                thing_needs(w, thing_add(w, KIND_GROUP, roles[i]), thing_of(w, KIND_VPC, "vpc"));
        for (size_t i = 0; i < machines; i++)
                rules_add(w, roles[i]);
}

static void profile_add(struct aws_run *w, const char *role, const char *choice)
{
        if (!choice || !streq(choice, "managed"))
                return;
        struct thing *r = thing_add(w, KIND_ROLE, role), *policy = thing_add(w, KIND_POLICY, role),
                     *profile = thing_add(w, KIND_PROFILE, role),
                     *on = thing_add(w, KIND_PROFILE_ROLE, role);
        thing_needs(w, policy, r);
        thing_needs(w, on, profile);
        thing_needs(w, on, policy);
}

static void balancer_add(struct aws_run *w)
{
        bool internal = w->config->load_balancer == AWS_LB_NLB_INTERNAL;
        struct thing *group = thing_add(w, KIND_TARGET_GROUP, "api"),
                     *settings = thing_add(w, KIND_TARGET_SETTINGS, "api"),
                     *balancer = thing_add(w, KIND_BALANCER, "api"),
                     *listener = thing_add(w, KIND_LISTENER, "api");
        thing_needs(w, group, thing_of(w, KIND_VPC, "vpc"));
        thing_needs(w, settings, group);
        for (size_t i = 0; i < w->count; i++)
                if (w->things[i]->kind == KIND_SUBNET &&
                        has_prefix(w->things[i]->role, internal ? "private/" : "public/"))
                        thing_needs(w, balancer, w->things[i]);
        thing_needs(w, balancer, thing_of(w, KIND_GATEWAY_ON, "gateway"));
        thing_needs(w, balancer, thing_of(w, KIND_GROUP, AWS_BALANCE));
        thing_needs(w, listener, balancer);
        thing_needs(w, listener, group);
        thing_needs(w, listener, settings);
}

/* After the nodes: what leads to the API servers' addresses, and who may use it. */
static void endpoints_add(struct aws_run *w)
{
        if (thing_of(w, KIND_GROUP, AWS_BALANCE))
                rules_add(w, AWS_BALANCE);
        bool balanced = w->config->load_balancer != AWS_LB_NONE;
        struct thing *targets = balanced ? thing_add(w, KIND_TARGETS, "api") : NULL, *record = NULL;
        if (targets)
                thing_needs(w, targets, thing_of(w, KIND_TARGET_GROUP, "api"));
        if (w->zone) {
                struct thing *zone = w->config->dns.private && !w->config->vpc.id
                                             ? thing_add(w, KIND_ZONE_VPC, "api")
                                             : NULL;
                if (zone)
                        thing_needs(w, zone, thing_of(w, KIND_VPC, "vpc"));
                record = thing_add(w, KIND_RECORD, "api");
                thing_needs(w, record, thing_of(w, KIND_BALANCER, "api"));
                thing_needs(w, record, zone);
        }
        const struct cluster *c = w->run->cluster;
        const struct node *n;
        for (size_t i = 0; (n = cluster_next(c, ROLE_CONTROL_PLANE, &i));) {
                if (targets)
                        thing_needs(w, targets, node_thing(w, KIND_INTERFACE, n));
                else if (record)
                        thing_needs(w, record, node_thing(w, KIND_INTERFACE, n));
        }
}

/* ---- nodes ---- */

const char *node_zone(const struct aws_run *w, const struct node *n)
{
        char role[300];
        snprintf(role, sizeof(role), "node/%s", n->name);
        const struct aws_interface *is = index_get(&w->lists[LIST_INTERFACES].by_role, role);
        const struct strings *zones =
                n->pool && n->pool->zones.n ? &n->pool->zones : &w->config->zones;
        if (is && is->zone)
                return is->zone;
        return zones->n ? zones->v[(n->index - 1) % zones->n] : "";
}

const char *node_subnet(const struct aws_run *w, const struct node *n, bool public)
{
        char role[300];
        snprintf(role, sizeof(role), "%s/%s", public ? "public" : "private", node_zone(w, n));
        const struct thing *t = thing_of(w, KIND_SUBNET, role);
        return t ? t->id : NULL;
}

static struct thing *node_thing_add(struct aws_run *w, enum kind_id kind, const struct node *n)
{
        struct thing *t = thing_add(w, kind, arena_printf(&w->arena, "node/%s", n->name));
        t->node = n;
        return t;
}

static struct thing *node_address_add(
        struct aws_run *w, const struct node *n, struct thing *interface)
{
        struct thing *address = node_thing_add(w, KIND_ADDRESS, n),
                     *on = node_thing_add(w, KIND_ADDRESS_ON, n);
        thing_needs(w, on, address);
        thing_needs(w, on, interface);
        thing_needs(w, on, thing_of(w, KIND_GATEWAY_ON, "gateway"));
        return on;
}

static void node_volumes_add(struct aws_run *w, const struct node *n, struct thing *instance)
{
        for (size_t i = 0; i < n->pool->volumes.n; i++) {
                const char *role = arena_printf(&w->arena, "volume/%s/%zu", n->name, i + 1);
                struct thing *v = thing_add(w, KIND_VOLUME, role),
                             *on = thing_add(w, KIND_VOLUME_ON, role);
                v->node = on->node = n;
                v->nth = on->nth = i;
                thing_needs(w, instance, v); /* its user-data has the volume's id */
                thing_needs(w, on, v);
                thing_needs(w, on, instance);
        }
}

static void node_add(struct aws_run *w, const struct node *n)
{
        const struct cluster *c = w->run->cluster;
        bool bastion = n == &w->bastion.node,
             forward = !bastion && (!cluster_fabric(c)->backends ||
                                           c->network.fabric.backend == BACKEND_HOST_GW);
        char role[300];
        snprintf(role, sizeof(role), "%s/%s", n->pool->public_ip ? "public" : "private",
                node_zone(w, n));
        struct thing *interface = node_thing_add(w, KIND_INTERFACE, n),
                     *forwarding = forward ? node_thing_add(w, KIND_FORWARDING, n) : NULL,
                     *on = n->pool->public_ip ? node_address_add(w, n, interface) : NULL,
                     *instance = node_thing_add(w, KIND_INSTANCE, n);
        thing_needs(w, interface, thing_of(w, KIND_SUBNET, role));
        thing_needs(w, interface, thing_of(w, KIND_RULES, bastion ? AWS_BASTION : "nodes"));
        thing_needs(w, interface, bastion ? NULL : thing_of(w, KIND_RULES, "control"));
        if (forwarding)
                thing_needs(w, forwarding, interface);
        thing_needs(w, instance, interface);
        thing_needs(w, instance, forwarding);
        thing_needs(w, instance, on);
        thing_needs(w, instance,
                bastion ? NULL
                        : thing_of(w, KIND_PROFILE_ROLE,
                                  n->pool->roles & ROLE_CONTROL_PLANE ? "control" : "worker"));
        node_volumes_add(w, n, instance);
}

/* ---- all ---- */

void things_find(struct aws_run *w)
{
        for (size_t i = 0; i < w->count; i++)
                w->things[i]->there |= thing_find(w, w->things[i]);
        /* a step without a list was done when something that needs it exists */
        for (size_t i = w->count; i-- > 0;)
                for (size_t k = 0; w->things[i]->there && k < w->things[i]->need_count; k++)
                        if (!kinds[w->things[i]->needs[k]->kind].list)
                                w->things[i]->needs[k]->there = true;
}

int things_build(struct aws_run *w, struct error *err)
{
        const struct node *n;
        if (w->config->vpc.id)
                vpc_use(w);
        else
                vpc_add(w);
        groups_add(w);
        profile_add(w, "control", w->config->iam.control);
        profile_add(w, "worker", w->config->iam.worker);
        if (w->config->load_balancer != AWS_LB_NONE)
                balancer_add(w);
        for (size_t i = 0; (n = aws_node(w, i)); i++)
                node_add(w, n);
        endpoints_add(w);
        things_find(w);
        return 0;
}
