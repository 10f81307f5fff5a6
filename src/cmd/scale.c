/* scale and remove-node: edits of the file, then what `up` does. The file is written when the plan was approved and before the first change, so a run that is
 * killed goes on with `up`, and one that is refused has changed nothing. */
#include <limits.h>
#include <sys/stat.h>

#include "base/file.h"
#include "cmd/operate.h"
#include "config/edit.h"

#define COUNT_MAX 10000 /* as the schema has it */

struct text { /* of a file that is changed */
        struct tree_file now;
        const char *before;
        size_t before_len;
};

struct edit {
        const struct options *o;
        struct arena *arena;
        const char *const *files;
        size_t file_count;
        struct text *texts; /* one a file of -f, at most */
        size_t count;
};

static const char *const usual[] = { "cluster.yaml" };

static void edit_begin(struct edit *e, const struct options *o, struct arena *a)
{
        *e = (struct edit){ .o = o, .arena = a, .files = o->files.n ? o->files.v : usual, .file_count = o->files.n ? o->files.n : 1 };
        e->texts = arena_array(a, struct text, e->file_count);
}

/* The file as it is after the edits so far. */
static int edit_load(const struct edit *e, bool loose, struct cluster **out, struct problems *p, struct error *err)
{
        struct tree_file *instead = arena_array(e->arena, struct tree_file, e->file_count);
        for (size_t i = 0; i < e->count; i++)
                instead[i] = e->texts[i].now;
        return cluster_load_instead(e->arena, e->files, e->file_count, instead, e->count, loose, out, p, err);
}

static void edit_keep(struct edit *e, const struct tree_file *file, struct str *text)
{
        struct text *t = NULL;
        for (size_t i = 0; i < e->count; i++)
                if (streq(e->texts[i].now.name, file->name))
                        t = &e->texts[i];
        if (!t) {
                t = &e->texts[e->count++];
                *t = (struct text){ .now = *file, .before = file->text, .before_len = file->len };
        }
        t->now.len = text->len;
        t->now.text = arena_strndup(e->arena, str_text(text), text->len);
}

/* ---- written ---- */

static int write_text(const struct text *t, struct error *err)
{
        static const char mark[] = "\xef\xbb\xbf";
        struct str there CLEANUP(str_release) = { 0 };
        struct stat st;
        char *real CLEANUP(free_p) = realpath(t->now.name, NULL); /* a link stays one */
        if (!real || stat(real, &st) < 0)
                return error_set(err, errno, EXIT_CONFIG, "%s: %s", t->now.name, strerror(errno));
        int r = file_read(real, TREE_MAX_FILE, &there, err);
        if (r < 0)
                return r;
        size_t skip = there.len >= 3 && memcmp(there.data, mark, 3) == 0 ? 3 : 0;
        if (there.len - skip != t->before_len || memcmp(str_text(&there) + skip, t->before, t->before_len)) {
                error_set(err, EAGAIN, EXIT_CONFIG, "%s was changed by somebody else meanwhile", t->now.name);
                return error_hint(err, "run it again; nothing was changed");
        }
        str_truncate(&there, skip);
        str_addn(&there, t->now.text, t->now.len);
        r = file_write(real, str_text(&there), there.len, st.st_mode & 07777, FILE_SYNC, NULL, err);
        if (r == 0 && lchown(real, st.st_uid, st.st_gid) < 0 && geteuid() == 0)
                r = error_set(err, errno, EXIT_INTERNAL, "%s cannot be given back to its owner: %s", real, strerror(errno));
        return r;
}

/* The plan was approved. */
static int accepted(struct site *s, struct error *err)
{
        const struct edit *e = s->accepted_arg;
        int r = 0;
        for (size_t i = 0; r == 0 && i < e->count; i++)
                r = write_text(&e->texts[i], err);
        return r;
}

static int refused(const struct problems *p, struct error *err)
{
        const struct problem *one = p->first;
        while (one && one->warning)
                one = one->next;
        error_release(err);
        *err = (struct error){ 0 };
        error_set(err, EINVAL, EXIT_CONFIG, "%s", one ? one->message : "the file would not be valid any more");
        return one && one->hint ? error_hint(err, "%s; nothing was changed", one->hint) : error_hint(err, "nothing was changed");
}

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
                return refused(&problems, err);
        r = check_meant(before, c, kept, fresh, err);
        return r < 0 ? r : cmd_up_cluster(e->o, verb, e->arena, c, accepted, e, err);
}

/* The file as it is on disk, with everything in order: what is changed must have been right before. */
static int load_before(struct edit *e, struct cluster **out, struct error *err)
{
        if (strings_contain(&e->o->files, "-")) {
                error_set(err, EINVAL, EXIT_USAGE, "the cluster's file is standard input, which cannot be written");
                return error_hint(err, "name a file with -f");
        }
        return cmd_load(e->o, e->arena, out, err);
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
        int r = load_before(&e, &c, err);
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
        int r = load_before(&e, &c, err);
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
