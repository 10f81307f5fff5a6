/* Only the variables in spec.env are used: the list shows what a file depends on, and other ${...}
 * in scripts, flags or chart values stay unchanged. */
#include "base/utf8.h"
#include "config/env.h"

#define VALUE_MAX ((size_t)1 << 20)  /* of one variable */
#define ADDED_MAX ((size_t)32 << 20) /* by all replacements of a document */
#define WORD      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

struct variable {
        const char *name;
        const struct tree *at; /* where the list names it */
        const char *value;     /* NULL: not set */
        bool used, broken;
};

struct env {
        struct arena *arena;
        struct problems *p;
        const struct tree *list;
        struct variable *v;
        size_t count, added;
};

static bool env_name_valid(const char *s)
{
        return *s && !s[strspn(s, WORD)] && !(*s >= '0' && *s <= '9');
}

static bool env_value_valid(const char *s, size_t len)
{
        uint32_t cp;
        for (size_t i = 0, n; i < len; i += n)
                if (!(n = utf8_decode(s + i, len - i, &cp)))
                        return false;
        return true;
}

static void env_add_name(struct env *e, const struct tree *t)
{
        struct variable v = { .name = t->text, .at = t };
        if (t->kind != TREE_SCALAR) /* the schema says so */
                return;
        if (!env_name_valid(t->text)) {
                problem_add(e->p, t, NULL, "use letters, digits and _, such as ADMIN_KEY",
                        "\"%.80s\" is not the name of an environment variable", t->text);
                return;
        }
        v.value = getenv(v.name);
        size_t len = v.value ? strnlen(v.value, VALUE_MAX + 1) : 0;
        v.broken = len > VALUE_MAX || !env_value_valid(v.value, len);
        if (v.broken)
                problem_add(e->p, t, NULL, NULL, "the value of the environment variable %s is %s",
                        v.name, len > VALUE_MAX ? "longer than 1 MiB" : "not UTF-8 text");
        e->v[e->count++] = v;
}

static void env_names(struct env *e)
{
        e->v = arena_array(
                e->arena, struct variable, e->list->kind == TREE_LIST ? e->list->count : 1);
        if (e->list->kind == TREE_SCALAR)
                env_add_name(e, e->list);
        tree_each (t, e->list)
                env_add_name(e, t);
}

/* The listed variable whose name begins here, or NULL. */
static struct variable *env_find(const struct env *e, const char *at)
{
        size_t n = strspn(at, WORD);
        for (size_t i = 0; i < e->count; i++)
                if (strlen(e->v[i].name) == n && strncmp(e->v[i].name, at, n) == 0)
                        return &e->v[i];
        return NULL;
}

/* Appends the value of the reference at `p` ("${NAME"). Returns the text after it; NULL:
 * not a reference. */
static const char *env_refer(
        struct env *e, const struct tree *t, struct variable *v, const char *p, struct str *out)
{
        const char *rest = p + 2 + strlen(v->name), *end = strchr(rest, '}');
        bool fallback = has_prefix(rest, ":-");
        v->used = true;
        if (!end || (*rest != '}' && !fallback)) {
                problem_add(e->p, t, NULL,
                        arena_printf(e->arena, "write ${%s} or ${%s:-DEFAULT}", v->name, v->name),
                        "${%s is not a complete reference", v->name);
                return NULL;
        }
        if (v->value && (*v->value || !fallback)) {
                str_add(out, v->value);
        } else if (fallback) {
                str_addn(out, rest + 2, (size_t)(end - rest - 2));
        } else {
                problem_add(e->p, t, NULL,
                        arena_printf(e->arena,
                                "set it: %s=VALUE slipway …; or write a default: ${%s:-DEFAULT}",
                                v->name, v->name),
                        "the environment variable %s is not set", v->name);
                return NULL;
        }
        return end + 1;
}

static void env_replace(struct env *e, struct tree *t, const struct str *text)
{
        if ((e->added += text->len) > ADDED_MAX) {
                problem_add(e->p, t, NULL, "use fewer references, or shorter values",
                        "the values from the environment make more than %zu MiB", ADDED_MAX >> 20);
                return;
        }
        t->written = t->text;
        t->text = arena_strdup(e->arena, str_text(text));
        if (t->plain && tree_null_word(t->text))
                t->kind = TREE_NULL;
}

/* $${NAME} becomes ${NAME}. */
static void env_scalar(struct env *e, struct tree *t)
{
        struct str out CLEANUP(str_wipe_release) = { 0 };
        bool any = false;
        for (const char *p = t->text; *p;) {
                bool escaped = has_prefix(p, "$${");
                struct variable *v =
                        escaped || has_prefix(p, "${") ? env_find(e, p + 2 + escaped) : NULL;
                if (!v) {
                        str_addc(&out, *p++);
                        continue;
                }
                any = true;
                if (escaped) {
                        str_add(&out, "${");
                        p += 3;
                } else if (v->broken || !(p = env_refer(e, t, v, p, &out))) {
                        return;
                }
        }
        if (any && e->added <= ADDED_MAX)
                env_replace(e, t, &out);
}

/* Depth is bounded by TREE_MAX_DEPTH, so this may call itself. */
static void env_walk(struct env *e, struct tree *t)
{
        if (t == e->list)
                return;
        if (t->kind == TREE_SCALAR && strstr(t->text, "${"))
                env_scalar(e, t);
        for (struct tree *c = t->kind >= TREE_LIST ? t->first : NULL; c; c = c->next)
                env_walk(e, c);
}

void env_expand(
        struct arena *a, struct tree *document, struct sha256 *digest, struct problems *problems)
{
        struct env e = {
                .arena = a, .p = problems, .list = tree_get(tree_get(document, "spec"), "env")
        };
        if (!e.list)
                return;
        env_names(&e);
        for (size_t i = 0; i < e.count; i++)
                if (e.v[i].value && !e.v[i].broken)
                        problem_mask(problems, e.v[i].name, e.v[i].value);
        env_walk(&e, document);
        for (size_t i = 0; i < e.count; i++) {
                const struct variable *v = &e.v[i];
                if (!v->used)
                        problem_warn(problems, v->at, NULL, "remove it from the list, or use it",
                                "the file has no ${%s}", v->name);
                if (!v->used || !v->value)
                        continue;
                sha256_add(digest, v->name, strlen(v->name) + 1);
                sha256_add(digest, v->value, strlen(v->value) + 1);
        }
}
