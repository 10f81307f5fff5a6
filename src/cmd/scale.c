/* scale and remove-node: edits of the file, then what `up` does. */
#include <limits.h>

#include "cmd/edited.h"
#include "config/edit.h"

#define COUNT_MAX 10000 /* as the schema has it */

/* What the file says now must be what was meant, and no more: `kept` nodes of before, `fresh` new ones. */
static int check_meant(const struct cluster *before, const struct cluster *after, size_t kept, size_t fresh, struct error *err)
{
        size_t same = 0;
        for (size_t i = 0; i < after->node_count; i++) {
                const struct node *old = cluster_node(before, after->nodes[i].name);
                same += old && streq(old->pool->name, after->nodes[i].pool->name);
        }
        if (same == kept && after->node_count == kept + fresh)
                return 0;
        error_set(err, EINVAL, EXIT_CONFIG, "to change the file in its place would change other nodes too");
        return error_hint(err, "a value is shared by an alias or a merge key: edit the file by hand, then run 'slipway up'; nothing was changed");
}

/* What would be left must still be a cluster. */
static int check_rest(const struct cluster *before, const struct cluster *after, struct error *err)
{
        static const struct {
                unsigned role;
                const char *what;
        } needs[] = { { ROLE_CONTROL_PLANE, "control-plane node" }, { ROLE_ETCD, "etcd member" } };
        for (size_t i = 0; i < ARRAY_SIZE(needs); i++)
                if (cluster_count(before, needs[i].role) && !cluster_count(after, needs[i].role)) {
                        error_set(err, EINVAL, EXIT_USAGE, "cluster %s would be left with no %s", before->name, needs[i].what);
                        return error_hint(err, "'slipway down' takes the whole cluster away; nothing was changed");
                }
        return 0;
}

static int finish(struct edit *e, const char *verb, const struct cluster *before, size_t kept, size_t fresh, struct error *err)
{
        struct problems problems = { .arena = e->arena };
        struct cluster *loose, *c;
        int r = edit_load(e, true, &loose, &problems, err);
        if (r == 0)
                r = check_rest(before, loose, err);
        if (r < 0)
                return r;
        problems = (struct problems){ .arena = e->arena };
        r = edit_load(e, false, &c, &problems, err);
        if (r < 0)
                return edit_refused(&problems, err);
        r = check_meant(before, c, kept, fresh, err);
        return r < 0 ? r : cmd_up_cluster(e->o, &(struct up_call){ .verb = verb, .accepted = edit_accepted, .arg = e }, e->arena, c, err);
}

/* ---- scale ---- */

static const struct pool *find_pool(const struct cluster *c, const char *name, struct error *err)
{
        const char **names = arena_array(c->arena, const char *, c->pools.n + 1);
        for (size_t i = 0; i < c->pools.n; i++) {
                names[i] = c->pools.v[i].name;
                if (streq(names[i], name))
                        return &c->pools.v[i];
        }
        const char *near = nearest(name, names, c->pools.n);
        error_set(err, EINVAL, EXIT_USAGE, "cluster %s has no pool '%s'", c->name, name);
        if (near)
                error_hint(err, "did you mean %s?", near);
        else
                error_hint(err, "its first pool is %s; the file lists them all", names[0]);
        return NULL;
}

static int parse_scale(struct arena *a, const char *word, const char **pool, long *count, struct error *err)
{
        const char *sign = strrchr(word, '=');
        char *end = NULL;
        errno = 0;
        *count = sign && sign[1] >= '0' && sign[1] <= '9' ? strtol(sign + 1, &end, 10) : -1;
        if (!end || *end || errno || *count > COUNT_MAX || sign == word) {
                error_set(err, EINVAL, EXIT_USAGE, "'%s' is not POOL=N", word);
                return error_hint(err, "such as: slipway scale worker=3");
        }
        *pool = arena_strndup(a, word, (size_t)(sign - word));
        return 0;
}

static int scale_one(struct edit *e, const char *name, long count, struct error *err)
{
        struct problems problems = { .arena = e->arena };
        struct str text CLEANUP(str_release) = { 0 };
        const struct tree_file *file;
        struct cluster *c;
        int r = edit_load(e, true, &c, &problems, err);
        const struct pool *pool = r == 0 ? find_pool(c, name, err) : NULL;
        if (!pool)
                return -err->code;
        if (tree_get(pool->src, "hosts")) {
                error_set(err, EINVAL, EXIT_USAGE, "pool %s has hosts, and no count", name);
                return error_hint(err, "add the host to its list and run 'slipway up', or take one out with 'slipway remove-node'; nothing was changed");
        }
        if (pool->count == count)
                return 0;
        r = edit_count(pool, count, &file, &text, err);
        if (r == 0)
                edit_keep(e, file, &text);
        return r;
}

int cmd_scale(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct edit e;
        struct cluster *c;
        edit_begin(&e, o, &a);
        const char **names = arena_array(&a, const char *, o->args.n);
        long *counts = arena_array(&a, long, o->args.n);
        for (size_t i = 0; i < o->args.n; i++)
                if (parse_scale(&a, o->args.v[i], &names[i], &counts[i], err) < 0)
                        return -err->code;
        int r = edit_before(&e, &c, err);
        size_t kept = r == 0 ? c->node_count : 0, fresh = 0;
        for (size_t i = 0; r == 0 && i < o->args.n; i++) {
                const struct pool *pool = find_pool(c, names[i], err);
                for (size_t k = 0; pool && k < i; k++)
                        if (streq(names[k], names[i])) {
                                error_set(err, EINVAL, EXIT_USAGE, "pool %s is given twice", names[i]);
                                return -err->code;
                        }
                r = pool ? scale_one(&e, names[i], counts[i], err) : -err->code;
                if (r == 0 && counts[i] > pool->count)
                        fresh += (size_t)(counts[i] - pool->count);
                else if (r == 0)
                        kept -= (size_t)(pool->count - counts[i]);
        }
        return r < 0 ? r : finish(&e, "scale", c, kept, fresh, err);
}

/* ---- remove-node ---- */

static int no_node(const struct cluster *c, const char *name, struct error *err)
{
        const char **names = arena_array(c->arena, const char *, c->node_count + 1);
        for (size_t i = 0; i < c->node_count; i++)
                names[i] = c->nodes[i].name;
        const char *near = nearest(name, names, c->node_count);
        error_set(err, EINVAL, EXIT_USAGE, "cluster %s has no node '%s'", c->name, name);
        return near ? error_hint(err, "did you mean %s?", near) : error_hint(err, "'slipway status' lists its nodes");
}

static int remove_one(struct edit *e, const char *name, struct error *err)
{
        struct problems problems = { .arena = e->arena };
        struct str text CLEANUP(str_release) = { 0 };
        const struct tree_file *file;
        struct cluster *c;
        int r = edit_load(e, true, &c, &problems, err);
        const struct node *n = r == 0 ? cluster_node(c, name) : NULL;
        if (!n)
                return r < 0 ? r : no_node(c, name, err);
        r = edit_remove(c, n, &file, &text, err);
        if (r == 0)
                edit_keep(e, file, &text);
        return r;
}

int cmd_remove_node(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct edit e;
        struct cluster *c;
        size_t removed = 0;
        edit_begin(&e, o, &a);
        int r = edit_before(&e, &c, err);
        for (size_t i = 0; r == 0 && i < o->args.n; i++)
                r = cluster_node(c, o->args.v[i]) ? 0 : no_node(c, o->args.v[i], err);
        /* from the last to the first, so that the numbers at a pool's end need not be kept out */
        for (size_t i = r == 0 ? c->node_count : 0; r == 0 && i-- > 0;)
                if (strings_contain(&o->args, c->nodes[i].name)) {
                        r = remove_one(&e, c->nodes[i].name, err);
                        removed++;
                }
        return r < 0 ? r : finish(&e, "remove-node", c, c->node_count - removed, 0, err);
}
