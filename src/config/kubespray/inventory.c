#include "config/kubespray/inventory.h"

void inventory_init(struct inventory *inv, struct arena *a)
{
        *inv = (struct inventory){ .arena = a };
        inv->hosts_end = &inv->hosts;
}

void inventory_release(struct inventory *inv)
{
        for (struct inventory_group *g = inv->groups; g; g = g->next)
                index_release(&g->by_name);
        index_release(&inv->host_index);
        index_release(&inv->group_index);
        *inv = (struct inventory){ 0 };
}

static int check_name(
        const char *name, const char *what, size_t count, size_t max, struct error *err)
{
        if (count >= max)
                return error_set(
                        err, E2BIG, EXIT_CONFIG, "the inventory has more than %zu %ss", max, what);
        if (!*name || strlen(name) > INVENTORY_MAX_NAME)
                return error_set(err, EINVAL, EXIT_CONFIG, "a %s's name in the inventory is %s",
                        what, *name ? "longer than a DNS name can be" : "empty");
        return 0;
}

struct inventory_group *inventory_group(struct inventory *inv, const char *name, struct error *err)
{
        struct inventory_group *g = index_get(&inv->group_index, name);
        if (g)
                return g;
        if (check_name(name, "group", inv->group_count, INVENTORY_MAX_GROUPS, err) < 0)
                return NULL;
        g = arena_new(inv->arena, struct inventory_group);
        g->name = arena_strdup(inv->arena, name);
        g->next = inv->groups;
        inv->groups = g;
        inv->group_count++;
        index_put(&inv->group_index, g->name, g);
        return g;
}

struct inventory_host *inventory_host(struct inventory *inv, const char *name, struct error *err)
{
        struct inventory_host *h = index_get(&inv->host_index, name);
        if (h)
                return h;
        if (check_name(name, "host", inv->host_count, INVENTORY_MAX_HOSTS, err) < 0)
                return NULL;
        h = arena_new(inv->arena, struct inventory_host);
        h->name = arena_strdup(inv->arena, name);
        *inv->hosts_end = h;
        inv->hosts_end = &h->next;
        inv->host_count++;
        index_put(&inv->host_index, h->name, h);
        return h;
}

static int link_to(struct inventory *inv, struct inventory_link **list, struct inventory_group *g,
        struct error *err)
{
        if (inv->links++ >= INVENTORY_MAX_LINKS)
                return error_set(err, E2BIG, EXIT_CONFIG,
                        "the inventory's groups have more than %d entries", INVENTORY_MAX_LINKS);
        if (*list && (*list)->group == g)
                return 0;
        struct inventory_link *l = arena_new(inv->arena, struct inventory_link);
        *l = (struct inventory_link){ g, *list };
        *list = l;
        return 0;
}

int inventory_join(struct inventory *inv, struct inventory_group *child,
        struct inventory_group *parent, struct error *err)
{
        return link_to(inv, &child->parents, parent, err);
}

void inventory_set(struct inventory *inv, struct inventory_var **vars, const char *name,
        const struct tree *value)
{
        struct inventory_var *v = arena_new(inv->arena, struct inventory_var);
        *v = (struct inventory_var){ name, value, *vars };
        *vars = v;
}

void inventory_set_map(struct inventory *inv, struct inventory_var **vars, const struct tree *map)
{
        if (map && map->kind == TREE_MAP)
                tree_each (c, map)
                        inventory_set(inv, vars, c->key, c);
}

/* ---- host patterns ---- */

struct range {
        bool letters;
        unsigned long from, to, step;
        int width; /* of numbers with leading zeros */
};

static bool range_number(const char *s, size_t n, unsigned long *out)
{
        if (n > 9)
                return false;
        *out = 0;
        for (size_t i = 0; i < n; i++) {
                if (s[i] < '0' || s[i] > '9')
                        return false;
                *out = *out * 10 + (unsigned long)(s[i] - '0');
        }
        return true;
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* The text between the brackets: FROM:TO or FROM:TO:STEP. */
static bool range_parse(const char *s, size_t n, struct range *r)
{
        const char *colon = memchr(s, ':', n);
        size_t from = (size_t)(colon - s), rest = n - from - 1;
        const char *second = memchr(colon + 1, ':', rest);
        size_t to = second ? (size_t)(second - colon - 1) : rest;
        *r = (struct range){ .step = 1 };
        if (second && (!range_number(second + 1, rest - to - 1, &r->step) || !r->step))
                return false;
        if (from == 1 && to == 1 && is_letter(s[0]) && is_letter(colon[1])) {
                *r = (struct range){ .letters = true,
                        .from = (unsigned char)s[0],
                        .to = (unsigned char)colon[1],
                        .step = r->step };
                return r->from <= r->to;
        }
        if (!to || !range_number(s, from, &r->from) || !range_number(colon + 1, to, &r->to))
                return false;
        r->width = from > 1 && s[0] == '0' ? (int)from : 0;
        return r->from <= r->to;
}

static int add_host(struct inventory *inv, const char *name, struct inventory_group *in,
        struct inventory_var *vars, struct error *err)
{
        struct inventory_host *h = inventory_host(inv, name, err);
        if (!h)
                return -err->code;
        /* every mention costs, so that a short line with a wide range cannot stand there
         * a million times */
        inv->links += !in;
        /* laid over what it has: a copy, as the list is shared by all hosts of the pattern */
        if (vars) {
                struct inventory_var **end = &vars, *copy = NULL, **tail = &copy;
                for (; *end; end = &(*end)->next) {
                        if (inv->links++ >= INVENTORY_MAX_LINKS)
                                return error_set(err, E2BIG, EXIT_CONFIG,
                                        "the inventory's hosts have more than %d variables",
                                        INVENTORY_MAX_LINKS);
                        *tail = arena_new(inv->arena, struct inventory_var);
                        **tail = (struct inventory_var){ (*end)->name, (*end)->value, NULL };
                        tail = &(*tail)->next;
                }
                *tail = h->vars;
                h->vars = copy;
        }
        return in ? link_to(inv, &h->groups, in, err) : 0;
}

static int inventory_expand(struct inventory *inv, const char *pattern, int ranges,
        struct inventory_group *in, struct inventory_var *vars, struct error *err)
{
        const char *open = strchr(pattern, '['), *close = open ? strchr(open, ']') : NULL;
        if (!close || !memchr(open, ':', (size_t)(close - open)))
                return add_host(inv, pattern, in, vars, err);
        struct range r;
        if (ranges == INVENTORY_MAX_RANGES ||
                !range_parse(open + 1, (size_t)(close - open - 1), &r))
                return error_set(err, EINVAL, EXIT_CONFIG, "%.*s is not a range of hosts",
                        (int)(close - open + 1), open);
        for (unsigned long i = r.from; i <= r.to; i += r.step) {
                char *name CLEANUP(free_p) =
                        r.letters ? xasprintf("%.*s%c%s", (int)(open - pattern), pattern, (int)i,
                                            close + 1)
                                  : xasprintf("%.*s%0*lu%s", (int)(open - pattern), pattern,
                                            r.width, i, close + 1);
                int e = inventory_expand(inv, name, ranges + 1, in, vars, err);
                if (e < 0)
                        return e;
        }
        return 0;
}

/* Takes a :PORT off the end; an IPv6 address without brackets has no port. */
static const char *take_port(struct inventory *inv, char *pattern)
{
        char *close = strrchr(pattern, ']'), *colon = strchr(close ? close : pattern, ':');
        unsigned long port;
        if (!colon || strchr(colon + 1, ':') || !colon[1] ||
                !range_number(colon + 1, strlen(colon + 1), &port))
                return NULL;
        *colon = 0;
        return arena_printf(inv->arena, "%lu", port);
}

int inventory_pattern(struct inventory *inv, const char *pattern, struct inventory_group *in,
        struct inventory_var *vars, struct error *err)
{
        if (strlen(pattern) > INVENTORY_MAX_NAME)
                return error_set(
                        err, EINVAL, EXIT_CONFIG, "a host's name is longer than a DNS name can be");
        char *name = arena_strdup(inv->arena, pattern);
        const char *port = take_port(inv, name);
        if (port) {
                struct tree *t = arena_new(inv->arena, struct tree);
                *t = (struct tree){ .kind = TREE_SCALAR, .plain = true, .text = port };
                inventory_set(inv, &vars, "ansible_port", t);
        }
        size_t n = strlen(name);
        if (name[0] == '[' && n > 2 && name[n - 1] == ']' &&
                strchr(name, ':') != strrchr(name, ':') && !strpbrk(name, "ghijklmnopqrstuvwxyz")) {
                name[n - 1] = 0; /* [2001:db8::1] */
                return add_host(inv, name + 1, in, vars, err);
        }
        return inventory_expand(inv, name, 0, in, vars, err);
}

/* ---- YAML ---- */

static int at_tree(struct error *err, const struct tree *t)
{
        return error_wrap(err, "%s:%u:%u", t->file->name, t->line, t->col);
}

static int yaml_group(struct inventory *inv, const struct tree *t, struct inventory_group *parent,
        struct error *err);

static int yaml_hosts(struct inventory *inv, const struct tree *hosts, struct inventory_group *g,
        struct error *err)
{
        if (hosts->kind == TREE_SCALAR)
                return inventory_pattern(inv, hosts->text, g, NULL, err) < 0 ? at_tree(err, hosts)
                                                                             : 0;
        tree_each (c, hosts) {
                struct inventory_var *vars = NULL;
                const char *pattern = hosts->kind == TREE_MAP  ? c->key
                                      : c->kind == TREE_SCALAR ? c->text
                                                               : "";
                inventory_set_map(inv, &vars, c);
                if (inventory_pattern(inv, pattern, g, vars, err) < 0)
                        return at_tree(err, c);
        }
        return 0;
}

static int yaml_children(struct inventory *inv, const struct tree *children,
        struct inventory_group *g, struct error *err)
{
        if (children->kind == TREE_MAP)
                tree_each (c, children) {
                        int e = yaml_group(inv, c, g, err);
                        if (e < 0)
                                return e;
                }
        return 0;
}

static int yaml_group(struct inventory *inv, const struct tree *t, struct inventory_group *parent,
        struct error *err)
{
        struct inventory_group *g = inventory_group(inv, t->key, err);
        const struct tree *hosts = tree_get(t, "hosts"), *children = tree_get(t, "children");
        if (!g || (parent && inventory_join(inv, g, parent, err) < 0))
                return at_tree(err, t);
        inventory_set_map(inv, &g->vars, tree_get(t, "vars"));
        int e = hosts ? yaml_hosts(inv, hosts, g, err) : 0;
        return e < 0 || !children ? e : yaml_children(inv, children, g, err);
}

int inventory_yaml(struct inventory *inv, const struct tree *root, struct error *err)
{
        if (root->kind != TREE_MAP) {
                error_set(err, EINVAL, EXIT_CONFIG, "a YAML inventory must be a map of groups");
                return at_tree(err, root);
        }
        tree_each (c, root) {
                int e = yaml_group(inv, c, NULL, err);
                if (e < 0)
                        return e;
        }
        return 0;
}

/* ---- asking ---- */

#define DEPTH_BUSY (~0u)

/* The longest way up to `all`; a group that contains itself is cut where the circle closes. */
static unsigned group_depth(struct inventory_group *g)
{
        if (g->depth == DEPTH_BUSY)
                return 0;
        if (g->depth)
                return g->depth;
        unsigned depth = 1;
        g->depth = DEPTH_BUSY;
        for (struct inventory_link *l = g->parents; l; l = l->next) {
                unsigned up = group_depth(l->group) + 1;
                depth = up > depth ? up : depth;
        }
        return g->depth = depth;
}

void inventory_finish(struct inventory *inv)
{
        for (struct inventory_group *g = inv->groups; g; g = g->next) {
                group_depth(g);
                for (struct inventory_var *v = g->vars; v; v = v->next)
                        index_put(&g->by_name, v->name, (void *)(uintptr_t)v->value);
        }
        struct inventory_group *all = index_get(&inv->group_index, "all");
        if (all)
                all->depth = 0;
}

struct search {
        struct inventory *inv;
        const char *name;
        const struct tree *value;
        const struct inventory_group *from;
};

static const struct tree *find_var(const struct inventory_var *v, const char *name)
{
        for (; v; v = v->next)
                if (streq(v->name, name))
                        return v->value;
        return NULL;
}

static void search_group(struct search *s, const struct inventory_group *g)
{
        const struct tree *t = index_get(&g->by_name, s->name);
        if (!t)
                return;
        if (!s->from || g->depth > s->from->depth ||
                (g->depth == s->from->depth && strcmp(g->name, s->from->name) > 0)) {
                s->value = t;
                s->from = g;
        }
}

/* Every group above, each once. */
static void walk_up(struct inventory *inv, const struct inventory_link *l,
        void (*seen)(struct search *, const struct inventory_group *), struct search *s)
{
        for (; l; l = l->next) {
                if (l->group->mark == inv->mark)
                        continue;
                l->group->mark = inv->mark;
                seen(s, l->group);
                walk_up(inv, l->group->parents, seen, s);
        }
}

const struct tree *inventory_get(
        struct inventory *inv, const struct inventory_host *h, const char *name)
{
        const struct tree *own = find_var(h->vars, name);
        if (own)
                return own;
        struct search s = { inv, name, NULL, NULL };
        struct inventory_group *all = index_get(&inv->group_index, "all");
        inv->mark++;
        if (all) {
                all->mark = inv->mark;
                search_group(&s, all);
        }
        walk_up(inv, h->groups, search_group, &s);
        return s.value;
}

static void match_group(struct search *s, const struct inventory_group *g)
{
        if (streq(g->name, s->name))
                s->from = g;
}

bool inventory_in(struct inventory *inv, const struct inventory_host *h, const char *group)
{
        struct search s = { inv, group, NULL, NULL };
        inv->mark++;
        walk_up(inv, h->groups, match_group, &s);
        return s.from;
}
