/* Hosts entries, files and commands that the user adds to nodes. */
#include "base/paths.h"
#include "config/rules/rules.h"

static void extras_pools(const struct cluster *c, const struct tree *src,
        const struct strings *pools, struct problems *p)
{
        const struct tree *list = tree_get(src, "pools");
        const char **names = arena_array(p->arena, const char *, c->pools.n + 1);
        for (size_t i = 0; i < c->pools.n; i++)
                names[i] = c->pools.v[i].name;
        const struct strings known = { c->pools.n, names };
        for (size_t i = 0; i < pools->n; i++) {
                if (!pools->v[i] || strings_contain(&known, pools->v[i]))
                        continue;
                const char *near = nearest(pools->v[i], names, c->pools.n);
                problem_add(p, rule_item(list, i), NULL,
                        near ? arena_printf(p->arena, "did you mean %s?", near) : NULL,
                        "there is no pool \"%s\"", pools->v[i]);
        }
}

/* Whether a node could get both. */
static bool pools_meet(const struct strings *a, const struct strings *b)
{
        if (!a->n || !b->n)
                return true;
        for (size_t i = 0; i < a->n; i++)
                if (strings_contain(b, a->v[i]))
                        return true;
        return false;
}

/* ---- files ---- */

static bool mode_valid(const char *mode)
{
        size_t n = strlen(mode);
        return (n == 3 || n == 4) && strspn(mode, "01234567") == n;
}

static bool owner_valid(const char *owner)
{
        size_t colons = 0;
        for (const char *c = owner; *c; c++)
                if (*c == ':')
                        colons++;
                else if (!strchr("_-.@", *c) && !(*c >= '0' && *c <= '9') &&
                         !((*c | 0x20) >= 'a' && (*c | 0x20) <= 'z'))
                        return false;
        return *owner && *owner != '-' && *owner != ':' && colons <= 1;
}

static void extras_content(const struct node_file *f, struct problems *p)
{
        const struct tree *text = tree_get(f->src, "content"),
                          *file = tree_get(f->src, "contentFile");
        if (text && file)
                problem_add(p, f->src, "contentFile", "keep one of them",
                        "content and contentFile exclude each other");
        else if (!text && !file)
                problem_add(p, f->src, NULL,
                        "set content or contentFile; content: \"\" makes an empty file",
                        "this file has no content");
        if (f->mode && !mode_valid(f->mode))
                problem_add(p, f->src, "mode", "write three or four octal digits, such as \"0644\"",
                        "\"%.20s\" is not a mode", f->mode);
        else if (f->mode && f->secret && strtoul(f->mode, NULL, 8) & 07)
                problem_add(p, f->src, "mode", "use \"0600\", or \"0640\" with an owner",
                        "every user of the node could read this secret");
        if (f->owner && !owner_valid(f->owner))
                problem_add(p, f->src, "owner", "write USER or USER:GROUP",
                        "\"%.60s\" is not an owner", f->owner);
}

/* Data directories that the file names are a program's own, as the usual ones are. */
static bool extras_in_data(const struct cluster *c, const char *path, const char **dir)
{
        const char *const dirs[] = { c->etcd.data_dir, c->runtime.data_dir };
        for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
                char *clean CLEANUP(free_p) = dirs[i] ? path_clean(dirs[i]) : NULL;
                *dir = dirs[i];
                if (clean && path_within(clean, path))
                        return true;
        }
        return false;
}

static void extras_path(const struct cluster *c, const struct node_file *f, struct problems *p)
{
        static const char hint[] = "use a path of your own, such as /etc/example.conf";
        char *clean CLEANUP(free_p) = path_clean(f->path);
        const char *of = NULL, *why = path_refused(clean, PATH_FILE, &of);
        if (*f->path != '/')
                return;
        if (!streq(clean, f->path))
                problem_add(p, f->src, "path", arena_printf(p->arena, "write %s", clean),
                        "the path has superfluous slashes");
        else if (streq(clean, "/etc/hosts"))
                problem_add(
                        p, f->src, "path", "use os.hosts", "/etc/hosts has lines of others too");
        else if (why && of)
                problem_add(p, f->src, "path", hint, "%s is in %s: %s", clean, of, why);
        else if (why)
                problem_add(p, f->src, "path", hint, "%s %s", clean, why);
        else if (extras_in_data(c, clean, &of))
                problem_add(p, f->src, "path", hint,
                        "%s is in %s: another program of the cluster keeps its files there", clean,
                        of);
}

static void extras_files(const struct cluster *c, struct problems *p)
{
        const struct node_files *all = &c->os.files;
        for (size_t i = 0; i < all->n; i++) {
                const struct node_file *f = &all->v[i];
                extras_path(c, f, p);
                extras_content(f, p);
                extras_pools(c, f->src, &f->pools, p);
                for (size_t k = 0; k < i && i < 1000; k++)
                        if (*f->path && streq(all->v[k].path, f->path) &&
                                pools_meet(&all->v[k].pools, &f->pools)) {
                                problem_add(p, f->src, "path",
                                        "remove one of them, or give them different pools",
                                        "%s is already listed %s", f->path,
                                        rule_where(p, all->v[k].src, f->src));
                                break;
                        }
        }
}

/* ---- commands ---- */

static bool same_command(const struct node_command *a, const struct node_command *b)
{
        bool same = a->argv.n == b->argv.n && !a->shell == !b->shell &&
                    (!a->shell || streq(a->shell, b->shell));
        for (size_t i = 0; same && i < a->argv.n; i++)
                same = a->argv.v[i] && b->argv.v[i] && streq(a->argv.v[i], b->argv.v[i]);
        return same;
}

static void extras_commands(const struct cluster *c, struct problems *p)
{
        const struct node_commands *all = &c->os.commands;
        for (size_t i = 0; i < all->n; i++) {
                const struct node_command *x = &all->v[i];
                extras_pools(c, x->src, &x->pools, p);
                if (x->shell && x->argv.n)
                        problem_add(p, x->src, "argv", "keep one of them",
                                "shell and argv exclude each other");
                else if (!x->shell && !x->argv.n && x->src && x->src->kind == TREE_MAP)
                        problem_add(p, x->src, NULL, "set shell or argv", "this command is empty");
                for (size_t k = 0; k < i && i < 1000 && (x->shell || x->argv.n); k++)
                        if (same_command(&all->v[k], x) &&
                                pools_meet(&all->v[k].pools, &x->pools)) {
                                problem_add(p, x->src, NULL,
                                        "remove one of them: a command runs once",
                                        "this command is already listed %s",
                                        rule_where(p, all->v[k].src, x->src));
                                break;
                        }
        }
}

#define NAMES_MAX 2000                /* more are a DNS server's */
#define WORD_MAX  ((size_t)100 << 10) /* of an argument: Linux takes a little more */

static void extras_sizes(const struct cluster *c, struct problems *p)
{
        size_t names = 0;
        for (size_t i = 0; i < c->os.hosts.n; i++)
                names += c->os.hosts.v[i].names.n;
        if (names > NAMES_MAX)
                rule_error(p, c, "os.hosts", "use a DNS server for so many",
                        "os.hosts has at most %d names, got %zu", NAMES_MAX, names);
        for (size_t i = 0; i < c->os.commands.n; i++) {
                const struct node_command *x = &c->os.commands.v[i];
                size_t longest = x->shell ? strlen(x->shell) : 0, all = longest;
                for (size_t k = 0; k < x->argv.n; k++) {
                        size_t n = x->argv.v[k] ? strlen(x->argv.v[k]) : 0;
                        longest = n > longest ? n : longest;
                        all += n + 1;
                }
                if (longest > WORD_MAX || all > 4 * WORD_MAX)
                        problem_add(p, x->src, NULL,
                                "put it into a file with os.files, and run that",
                                "this command is too long");
        }
}

void rules_extras(struct cluster *c, struct problems *p)
{
        for (size_t i = 0; i < c->os.hosts.n; i++)
                extras_pools(c, c->os.hosts.v[i].src, &c->os.hosts.v[i].pools, p);
        extras_files(c, p);
        extras_commands(c, p);
        extras_sizes(c, p);
}
