/* What the user adds to a node: files, lines of /etc/hosts, commands. None of it is immutable, so
 * user-data has none of it: a changed line would require a new machine. */
#include "base/quote.h"
#include "base/sha256.h"
#include "node/context.h"

#define NAME_WORD 24 /* characters of a program's name in the name of its command */

static bool extras_wanted(const struct context *x, const struct strings *pools)
{
        return !pools->n || strings_contain(pools, x->node->pool->name);
}

static void extra_files_add(const struct context *x, struct nodespec *s)
{
        for (size_t i = 0; i < x->cluster->os.files.n; i++) {
                const struct node_file *f = &x->cluster->os.files.v[i];
                if (!extras_wanted(x, &f->pools) || !f->content)
                        continue;
                unsigned mode = f->mode ? (unsigned)strtoul(f->mode, NULL, 8) : 0644;
                struct spec_entry *e = file_add(x, s, f->secret ? CLASS_SECRET : CLASS_MUTABLE,
                        arena_strdup(&s->arena, f->path), f->secret && !f->mode ? 0600 : mode,
                        f->content, strlen(f->content));
                e->owner = f->owner ? arena_strdup(&s->arena, f->owner) : NULL;
        }
}

static void extra_hosts_add(const struct context *x, struct nodespec *s)
{
        struct str text CLEANUP(str_release) = { 0 };
        for (size_t i = 0; i < x->cluster->os.hosts.n; i++) {
                const struct hosts_line *l = &x->cluster->os.hosts.v[i];
                if (!extras_wanted(x, &l->pools))
                        continue;
                quote_line(&text, l->address);
                for (size_t k = 0; k < l->names.n; k++) {
                        str_addc(&text, k ? ' ' : '\t');
                        quote_line(&text, l->names.v[k]);
                }
                str_addc(&text, '\n');
        }
        if (!text.len)
                return;
        struct spec_entry *e = nodespec_add(s, SPEC_BLOCK, CLASS_MUTABLE);
        e->path = "/etc/hosts";
        e->mode = 0644;
        e->content = arena_strdup(&s->arena, str_text(&text));
        e->len = text.len;
}

/* Plans and logs show only the program, without arguments: "update-ca-certificates-1f0c9a2b". The
 * digest makes it another command when its text changes. */
static const char *command_name(struct nodespec *s, const char *program, const struct str *words)
{
        char digest[SHA256_HEX];
        struct str name CLEANUP(str_release) = { 0 };
        size_t n = strcspn(program, " \t");
        const char *slash = memrchr(program, '/', n), *end = program + n;
        sha256_hex(words->data, words->len, digest);
        for (const char *c = slash ? slash + 1 : program; c < end; c++)
                if (strchr("_-.", *c) || (*c >= '0' && *c <= '9') ||
                        ((*c | 0x20) >= 'a' && (*c | 0x20) <= 'z'))
                        str_addc(&name, *c);
                else { /* an assignment, or a shell operator */
                        str_truncate(&name, 0);
                        break;
                }
        if (!name.len || name.len > NAME_WORD || *name.data == '-')
                str_truncate(&name, 0);
        return arena_printf(&s->arena, "%s-%.8s", name.len ? name.data : "command", digest);
}

static void extra_commands_add(const struct context *x, struct nodespec *s)
{
        for (size_t i = 0; i < x->cluster->os.commands.n; i++) {
                const struct node_command *c = &x->cluster->os.commands.v[i];
                struct str words CLEANUP(str_release) = { 0 };
                const char *const shell[] = { "sh", "-c", c->shell };
                size_t n = c->shell ? ARRAY_SIZE(shell) : c->argv.n;
                if (!extras_wanted(x, &c->pools) || !n)
                        continue;
                for (size_t k = 0; k < n; k++) {
                        const char *word = c->shell ? shell[k] : c->argv.v[k];
                        str_addn(&words, word, strlen(word) + 1);
                }
                struct spec_entry *e = nodespec_add(s, SPEC_COMMAND, CLASS_MUTABLE);
                char *content = arena_alloc(&s->arena, words.len + 1);
                memcpy(content, words.data, words.len);
                e->content = content;
                e->len = words.len;
                e->name = command_name(s, c->shell ? c->shell : c->argv.v[0], &words);
                e->target = arena_printf(&s->arena, "%lld", (long long)c->timeout);
        }
}

void extras_add(const struct context *x, struct nodespec *s)
{
        if (x->immutable)
                return;
        extra_files_add(x, s);
        extra_hosts_add(x, s);
        extra_commands_add(x, s);
}

/* The rules of the file know only the directories of Kubernetes; here all paths of the
 * node are known. */
int extras_check(const struct context *x, const struct nodespec *s, struct error *err)
{
        for (size_t i = 0; !x->immutable && i < x->cluster->os.files.n; i++) {
                const struct node_file *f = &x->cluster->os.files.v[i];
                size_t same = 0;
                for (size_t k = 0; k < s->count; k++)
                        same += s->entries[k].path && s->entries[k].kind != SPEC_MOUNT &&
                                streq(s->entries[k].path, f->path);
                if (same < 2 || !extras_wanted(x, &f->pools))
                        continue;
                error_set(err, EEXIST, EXIT_CONFIG, "os.files: slipway itself writes %s on node %s",
                        f->path, x->node->name);
                return error_hint(err,
                        "use another path; a unit of slipway's takes settings from UNIT.d/NAME.conf beside it");
        }
        return 0;
}
