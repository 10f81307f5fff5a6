/* Pools: what each needs, and what all of them together need. */
#include "config/rules/rules.h"

static const char *pool_name(const struct pool *p)
{
        return p->name && *p->name ? p->name : "without a name";
}

static void pool_without_nodes(const struct cluster *c, const struct pool *pool, struct problems *p)
{
        if (c->provider.kind == PROVIDER_SSH)
                problem_add(p, pool->src, "hosts",
                        "list its machines, such as hosts: [192.0.2.21, 192.0.2.22]",
                        "pool %s has no hosts", pool_name(pool));
        else
                problem_add(p, pool->src, "count", "set the number of machines, such as count: 3",
                        "pool %s has no count", pool_name(pool));
}

/* Either a count or hosts, and the one that the provider can serve. */
static void pool_nodes(const struct cluster *c, const struct pool *pool, struct problems *p)
{
        const struct tree *count = tree_get(pool->src, "count"),
                          *hosts = tree_get(pool->src, "hosts");
        bool ssh = c->provider.kind == PROVIDER_SSH;
        const char *provider = provider_words[c->provider.kind];
        if (!count && !hosts)
                pool_without_nodes(c, pool, p);
        else if (hosts && hosts->kind == TREE_LIST && hosts->count == 0)
                problem_add(p, hosts, NULL, "list its machines, or remove the pool",
                        "pool %s has an empty list of hosts", pool_name(pool));
        else if (count && hosts)
                problem_add(p, count, NULL,
                        ssh ? "leave count out: the list of hosts determines the number of machines"
                            : "leave hosts out, or use provider ssh for existing machines",
                        "pool %s has both a count and hosts", pool_name(pool));
        else if (hosts && !ssh)
                problem_add(p, hosts, NULL,
                        "use provider: {ssh: {}} for existing machines, or count instead of hosts",
                        "provider %s%s creates its own machines", provider,
                        c->provider.src ? "" : " (the default)");
        else if (count && ssh)
                problem_add(p, count, NULL,
                        "list existing machines under hosts, or use provider local, which creates machines",
                        "provider ssh cannot create machines");
}

static void pool_without(const struct pool *pool, struct problems *p)
{
        const struct tree *without = tree_get(pool->src, "without");
        if (without && tree_get(pool->src, "hosts"))
                problem_add(p, without, NULL, "remove the host from the list instead",
                        "pool %s has hosts, which are not numbered", pool_name(pool));
}

static void pool_minimum(const struct pool *pool, struct problems *p)
{
        const struct tree *count = tree_get(pool->src, "count");
        if (!count || pool->count != 0 || pool->hosts.n || count->kind != TREE_SCALAR ||
                !streq(count->text, "0"))
                return;
        if (pool->roles & ROLE_CONTROL_PLANE)
                problem_add(p, count, NULL, "use 1, or 3 for high availability",
                        "a control-plane pool needs at least one machine, got 0");
        else if (pool->roles & ROLE_ETCD)
                problem_add(
                        p, count, NULL, "use 3", "an etcd pool needs at least one machine, got 0");
}

/* Whether a problem of some pool's `roles` was already reported. */
static bool roles_spoiled(const struct cluster *c, const struct problems *p)
{
        char path[64];
        for (size_t i = 0; i < c->pools.n; i++) {
                snprintf(path, sizeof(path), "pools[%zu].roles", i);
                if (rule_spoiled(p, path))
                        return true;
                snprintf(path, sizeof(path), "pools[%zu].role", i);
                if (rule_spoiled(p, path))
                        return true;
        }
        return false;
}

static const struct pool *pool_with(const struct cluster *c, unsigned role)
{
        for (size_t i = 0; i < c->pools.n; i++)
                if (c->pools.v[i].roles & role)
                        return &c->pools.v[i];
        return NULL;
}

static void roles_present(const struct cluster *c, struct problems *p)
{
        const struct pool *control = pool_with(c, ROLE_CONTROL_PLANE),
                          *etcd = pool_with(c, ROLE_ETCD);
        if (roles_spoiled(c, p))
                return;
        if (!control && !etcd)
                rule_error(p, c, "pools", "give one pool roles: [control-plane, etcd]",
                        "no pool has the roles control-plane and etcd");
        else if (!control)
                rule_error(p, c, "pools", "give one pool roles: [control-plane]",
                        "no pool has the role control-plane");
        else if (!etcd)
                problem_add(p, control->src, "roles",
                        "use roles: [control-plane, etcd] to run etcd on the control-plane nodes",
                        "no pool has the role etcd, which stores the cluster's state");
        else if (!pool_with(c, ROLE_WORKER))
                problem_warn(p, control->src, "roles",
                        "add a pool of workers, or the role worker here",
                        "no pool has the role worker, so only the control plane can run");
}

/* "control 1, etcd 3" */
static const char *members_by_pool(const struct cluster *c, struct problems *p)
{
        struct str s CLEANUP(str_release) = { 0 };
        for (size_t i = 0; i < c->pools.n; i++) {
                const struct pool *pool = &c->pools.v[i];
                if (pool->roles & ROLE_ETCD)
                        str_addf(&s, "%s%s %zu", s.len ? ", " : "", pool_name(pool),
                                pool->hosts.n ? pool->hosts.n
                                              : (size_t)(pool->count > 0 ? pool->count : 0));
        }
        return arena_strdup(p->arena, str_text(&s));
}

static const char *odd_hint(size_t members, struct problems *p)
{
        if (members == 2)
                return "use 1 or 3; two members stop as soon as one of them fails";
        return arena_printf(p->arena,
                "use %zu or %zu; %zu members tolerate no more failures than %zu", members - 1,
                members + 1, members, members - 1);
}

static void pools_etcd_members(const struct cluster *c, struct problems *p)
{
        size_t members = 0, pools = 0;
        const struct pool *last = NULL;
        for (size_t i = 0; i < c->node_count; i++)
                members += !!(c->nodes[i].pool->roles & ROLE_ETCD);
        for (size_t i = 0; i < c->pools.n; i++)
                if (c->pools.v[i].roles & ROLE_ETCD) {
                        pools++;
                        last = &c->pools.v[i];
                }
        if (!last || !members)
                return;
        const char *field = last->hosts.n ? "hosts" : "count";
        if (members > 9)
                problem_add(p, last->src, field,
                        "use 3 or 5; further control-plane nodes go into a pool without the role etcd",
                        "etcd can have at most 9 members, got %zu: each write waits for a majority of them",
                        members);
        else if (members % 2 == 0 && pools == 1)
                problem_add(p, last->src, field, odd_hint(members, p),
                        "an etcd pool needs an odd count, got %zu", members);
        else if (members % 2 == 0)
                problem_add(p, last->src, field, odd_hint(members, p),
                        "the etcd pools together need an odd count, got %zu (%s)", members,
                        members_by_pool(c, p));
        else if (members > 5)
                problem_warn(p, last->src, field,
                        "use 5, which already tolerate two failures at the same time",
                        "%zu etcd members make every write slower", members);
}

/* Set by the kubelet or by Kubernetes itself: another value breaks what relies on it. */
static const struct {
        const char *key, *why;
} reserved_labels[] = {
        { "kubernetes.io/hostname", "the kubelet sets it to the node's name" },
        { "kubernetes.io/os", "the kubelet sets it to the machine's system" },
        { "kubernetes.io/arch", "the kubelet sets it to the machine's architecture" },
        { "slipway.dev/pool", "slipway sets it to the pool's name" },
};

static void labels(
        const struct tree *src, const struct pairs *l, const struct pool *pool, struct problems *p)
{
        const struct tree *at = tree_get(src, "labels");
        for (size_t i = 0; i < l->n; i++) {
                const char *key = l->v[i].key;
                for (size_t k = 0; key && k < ARRAY_SIZE(reserved_labels); k++)
                        if (streq(key, reserved_labels[k].key))
                                problem_add_key(p, tree_get(at, key), "leave it out",
                                        "the label %s cannot be chosen: %s", key,
                                        reserved_labels[k].why);
                if (key && streq(key, "node-role.kubernetes.io/control-plane") &&
                        !(pool->roles & ROLE_CONTROL_PLANE))
                        problem_add_key(p, tree_get(at, key),
                                "add the role control-plane to the pool, or leave the label out",
                                "this label is for control-plane nodes, but pool %s does not have that role",
                                pool_name(pool));
        }
}

static void taints(const struct tree *src, const struct taints *t, struct problems *p)
{
        const struct tree *list = tree_get(src, "taints");
        for (size_t i = 0; i < t->n && i < 1000; i++) {
                if (!t->v[i].key || !t->v[i].effect)
                        continue;
                if (has_prefix(t->v[i].key, "node.kubernetes.io/"))
                        problem_add(p, rule_item(list, i), NULL, "use another key",
                                "Kubernetes itself sets and removes the taint %s, depending on the node's condition",
                                t->v[i].key);
                for (size_t j = 0; j < i; j++)
                        if (t->v[j].key && t->v[j].effect && streq(t->v[i].key, t->v[j].key) &&
                                streq(t->v[i].effect, t->v[j].effect)) {
                                problem_add(p, rule_item(list, i), NULL, "remove one of them",
                                        "the taint %s:%s is listed twice", t->v[i].key,
                                        t->v[i].effect);
                                break;
                        }
        }
}

/* A number of workers that can be reached, or none at all. */
void rules_readiness(struct cluster *c, struct problems *p)
{
        static const char *const words[] = { "all", "percent", "count" };
        const struct readiness *r = &c->readiness;
        long workers = 0;
        if (rule_spoiled(p, "readiness"))
                return;
        for (size_t i = 0; i < c->node_count; i++)
                workers += c->nodes[i].pool->roles == ROLE_WORKER;
        if (r->type == READINESS_ALL && r->value >= 0)
                rule_error(p, c, "readiness.value",
                        "set type: count or type: percent, or leave it out",
                        "with type all every worker must be Ready, so a value has no effect");
        else if (r->type != READINESS_ALL && r->value < 0)
                rule_error(p, c, "readiness.value",
                        r->type == READINESS_PERCENT ? "set it, such as value: 90"
                                                     : "set it, such as value: 1",
                        "type %s needs a value", words[r->type]);
        else if (r->type == READINESS_PERCENT && r->value > 100)
                rule_error(p, c, "readiness.value", NULL, "must be between 0 and 100, got %ld",
                        r->value);
        else if (r->type == READINESS_COUNT && r->value > workers)
                rule_error(p, c, "readiness.value", "use a smaller number, or type: all",
                        "the cluster has %ld worker%s, got %ld", workers, workers == 1 ? "" : "s",
                        r->value);
}

void rules_pools(struct cluster *c, struct problems *p)
{
        if (!c->pools.n) /* said already */
                return;
        for (size_t i = 0; i < c->pools.n; i++) {
                const struct pool *pool = &c->pools.v[i];
                pool_nodes(c, pool, p);
                pool_minimum(pool, p);
                pool_without(pool, p);
                labels(pool->src, &pool->labels, pool, p);
                taints(pool->src, &pool->taints, p);
                for (size_t k = 0; k < pool->hosts.n; k++) {
                        labels(pool->hosts.v[k].src, &pool->hosts.v[k].labels, pool, p);
                        taints(pool->hosts.v[k].src, &pool->hosts.v[k].taints, p);
                }
        }
        roles_present(c, p);
        pools_etcd_members(c, p);
}
