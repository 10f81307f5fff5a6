#include <limits.h>

#include "config/edit.h"
#include "cluster/plan/scale.h"
#include "provider/provider.h"

#define COUNT_MAX 10000 /* as in the schema */

/* The edited file must have exactly the intended nodes: `kept` existing ones and
 * `fresh` new ones. */
static int scale_check_meant(const struct cluster *before, const struct cluster *after, size_t kept,
        size_t fresh, struct error *err)
{
        size_t same = 0;
        for (size_t i = 0; i < after->node_count; i++) {
                const struct node *old = cluster_node(before, after->nodes[i].name);
                same += old && streq(old->pool->name, after->nodes[i].pool->name);
        }
        if (same == kept && after->node_count == kept + fresh)
                return 0;
        error_set(err, EINVAL, EXIT_CONFIG,
                "to change the file in its place would change other nodes too");
        return error_hint(err,
                "a value is shared by an alias or a merge key: edit the file by hand, then run 'slipway up'; nothing was changed");
}

/* The remaining nodes must still form a cluster. */
static int scale_check_rest(
        const struct cluster *before, const struct cluster *after, struct error *err)
{
        static const struct {
                unsigned role;
                const char *what;
        } needs[] = { { ROLE_CONTROL_PLANE, "control-plane node" }, { ROLE_ETCD, "etcd member" } };
        for (size_t i = 0; i < ARRAY_SIZE(needs); i++)
                if (cluster_count(before, needs[i].role) && !cluster_count(after, needs[i].role)) {
                        error_set(err, EINVAL, EXIT_USAGE, "cluster %s would be left with no %s",
                                before->name, needs[i].what);
                        return error_hint(err,
                                "'slipway down' removes the whole cluster; nothing was changed");
                }
        return 0;
}

static int scale_finish(
        struct edit *e, struct cluster **c, size_t kept, size_t fresh, struct error *err)
{
        const struct cluster *before = *c;
        struct problems problems = { .arena = e->arena };
        struct cluster *loose;
        int r = edit_load(e, true, &loose, &problems, err);
        if (r == 0)
                r = scale_check_rest(before, loose, err);
        if (r < 0)
                return r;
        problems = (struct problems){ .arena = e->arena };
        r = edit_load(e, false, c, &problems, err);
        return r < 0 ? edit_refused(&problems, err)
                     : scale_check_meant(before, *c, kept, fresh, err);
}

/* ---- counts ---- */

static const struct pool *scale_pool_find(
        const struct cluster *c, const char *name, struct error *err)
{
        const char **names = arena_array(c->arena, const char *, c->pools.n + 1);
        for (size_t i = 0; i < c->pools.n; i++) {
                names[i] = c->pools.v[i].name;
                if (streq(names[i], name))
                        return &c->pools.v[i];
        }
        const char *near = nearest(name, names, c->pools.n);
        error_set(err, EINVAL, EXIT_USAGE, "cluster %s has no pool '%s'", c->name, name);
        struct str all CLEANUP(str_release) = { 0 };
        for (size_t i = 0; i < c->pools.n; i++)
                str_addf(&all, "%s%s", i ? ", " : "", names[i]);
        if (near)
                error_hint(err, "did you mean %s?", near);
        else
                error_hint(err, "its pools are: %s", str_text(&all));
        return NULL;
}

int scale_parse(struct arena *a, const char *word, struct scale_count *out, struct error *err)
{
        const char *sign = strrchr(word, '=');
        char *end = NULL;
        errno = 0;
        out->count = sign && sign[1] >= '0' && sign[1] <= '9' ? strtol(sign + 1, &end, 10) : -1;
        if (!end || *end || errno || out->count > COUNT_MAX || sign == word) {
                error_set(err, EINVAL, EXIT_USAGE, "'%s' is not POOL=N", word);
                return error_hint(err, "such as: slipway scale worker=3");
        }
        out->pool = arena_strndup(a, word, (size_t)(sign - word));
        return 0;
}

static int scale_one(struct edit *e, const char *name, long count, struct error *err)
{
        struct problems problems = { .arena = e->arena };
        struct str text CLEANUP(str_release) = { 0 };
        const struct tree_file *file;
        struct cluster *c;
        int r = edit_load(e, true, &c, &problems, err);
        const struct pool *pool = r == 0 ? scale_pool_find(c, name, err) : NULL;
        if (!pool)
                return -err->code;
        if (tree_get(pool->src, "hosts")) {
                error_set(err, EINVAL, EXIT_USAGE, "pool %s has hosts, and no count", name);
                return error_hint(err,
                        "add the host to its list and run 'slipway up', or take one out with 'slipway remove-node'; nothing was changed");
        }
        if (pool->count == count)
                return 0;
        const struct provider_ops *ops = provider_for(c);
        if (count > pool->count && ops && ops->missing) {
                error_set(err, EINVAL, EXIT_USAGE,
                        "with provider %s slipway does not create machines itself", ops->name);
                return error_hint(err,
                        "set the count of pool %s in the file, %s, then 'slipway up'; nothing was changed",
                        name, ops->missing);
        }
        r = edit_count(pool, count, &file, &text, err);
        if (r == 0)
                edit_keep(e, file, &text);
        return r;
}

static int scale_check_twice(const struct scale_count *v, size_t i, struct error *err)
{
        for (size_t k = 0; k < i; k++)
                if (streq(v[k].pool, v[i].pool))
                        return error_set(
                                err, EINVAL, EXIT_USAGE, "pool %s is given twice", v[i].pool);
        return 0;
}

int scale_pools(struct edit *e, const struct scale_count *v, size_t n, struct cluster **c,
        struct error *err)
{
        size_t kept = (*c)->node_count, fresh = 0;
        for (size_t i = 0; i < n; i++) {
                const struct pool *pool = scale_pool_find(*c, v[i].pool, err);
                if (!pool)
                        return -err->code;
                int r = scale_check_twice(v, i, err);
                if (r == 0)
                        r = scale_one(e, v[i].pool, v[i].count, err);
                if (r < 0)
                        return r;
                if (v[i].count > pool->count)
                        fresh += (size_t)(v[i].count - pool->count);
                else
                        kept -= (size_t)(pool->count - v[i].count);
        }
        return scale_finish(e, c, kept, fresh, err);
}

/* ---- nodes ---- */

static int scale_no_node(const struct cluster *c, const char *name, struct error *err)
{
        const char **names = arena_array(c->arena, const char *, c->node_count + 1);
        for (size_t i = 0; i < c->node_count; i++)
                names[i] = c->nodes[i].name;
        const char *near = nearest(name, names, c->node_count);
        error_set(err, EINVAL, EXIT_USAGE, "cluster %s has no node '%s'", c->name, name);
        return near ? error_hint(err, "did you mean %s?", near)
                    : error_hint(err, "'slipway status' lists its nodes");
}

static int scale_remove_one(struct edit *e, const char *name, struct error *err)
{
        struct problems problems = { .arena = e->arena };
        struct str text CLEANUP(str_release) = { 0 };
        const struct tree_file *file;
        struct cluster *c;
        int r = edit_load(e, true, &c, &problems, err);
        const struct node *n = r == 0 ? cluster_node(c, name) : NULL;
        if (!n)
                return r < 0 ? r : scale_no_node(c, name, err);
        r = edit_remove(c, n, &file, &text, err);
        if (r == 0)
                edit_keep(e, file, &text);
        return r;
}

int scale_remove(struct edit *e, const struct strings *names, struct cluster **c, struct error *err)
{
        size_t removed = 0;
        int r = 0;
        for (size_t i = 0; r == 0 && i < names->n; i++)
                r = cluster_node(*c, names->v[i]) ? 0 : scale_no_node(*c, names->v[i], err);
        /* from last to first: nodes at the end of a pool are removed by lowering its count */
        for (size_t i = r == 0 ? (*c)->node_count : 0; r == 0 && i-- > 0;)
                if (strings_contain(names, (*c)->nodes[i].name)) {
                        r = scale_remove_one(e, (*c)->nodes[i].name, err);
                        removed++;
                }
        return r < 0 ? r : scale_finish(e, c, (*c)->node_count - removed, 0, err);
}
