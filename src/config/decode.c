/* Trees into structs by the table: values, defaults, missing, unknown and duplicate fields. */
#include "base/index.h"
#include "config/decode.h"

#define ENTRIES_MAX 100000 /* of one list: an entry is up to a kilobyte */

static void decode_struct(const struct schema *s, const struct tree *t, void *out, struct arena *a,
        struct problems *p);
static bool decode_substruct(struct decoder *d, const struct tree *t, void *out);
static bool decode_structs(struct decoder *d, const struct tree *t, void *out);
static bool decode_any(struct decoder *d, const struct tree *t, void *out);

static decode_fn *const decoders[] = {
        [T_STRING] = decode_string,
        [T_BOOL] = decode_bool,
        [T_INT] = decode_int,
        [T_DURATION] = decode_duration,
        [T_MILLIS] = decode_duration,
        [T_SIZE] = decode_size,
        [T_ENUM] = decode_enum,
        [T_AMOUNT] = decode_amount,
        [T_VERSION] = decode_version,
        [T_NAME] = decode_string,
        [T_HOST] = decode_string,
        [T_HOSTPORT] = decode_string,
        [T_ADDRESS] = decode_address,
        [T_CIDR] = decode_cidr,
        [T_CIDRS] = decode_cidrs,
        [T_IPS] = decode_ips,
        [T_URL] = decode_string,
        [T_PATH] = decode_string,
        [T_ABSPATH] = decode_string,
        [T_TEXT] = decode_lines,
        [T_PAIRS] = decode_pairs,
        [T_LABELS] = decode_pairs,
        [T_GATES] = decode_pairs,
        [T_STRINGS] = decode_strings,
        [T_NUMBERS] = decode_numbers,
        [T_ROLES] = decode_roles,
        [T_TAINTS] = decode_taints,
        [T_ANY] = decode_any,
        [T_STRUCT] = decode_substruct,
        [T_STRUCTS] = decode_structs,
};

static bool decode_any(struct decoder *d, const struct tree *t, void *out)
{
        *(const struct tree **)out = t;
        return true;
}

static const struct field *find_field(const struct schema *s, const char *name)
{
        for (size_t i = 0; i < s->count; i++)
                if (streq(s->fields[i].name, name))
                        return &s->fields[i];
        return NULL;
}

/* Keeps the rules of refused options tested: only tests set this. */
static bool field_refused(const struct field *f)
{
        return f->later && !getenv("SLIPWAY_TEST_LATER");
}

bool schema_refused(const char *path)
{
        const struct schema *s = &cluster_schema;
        char word[64];
        while (s && *path) {
                size_t n = strcspn(path, ".");
                snprintf(word, sizeof(word), "%.*s", (int)n, path);
                const struct field *f = find_field(s, word);
                if (!f || field_refused(f))
                        return f != NULL;
                s = f->sub;
                path += n + (path[n] == '.');
        }
        return false;
}

/* Where below this struct a field of that name is, as "api.vip"; false when nowhere. */
static bool find_below(const struct schema *s, const char *name, struct str *path)
{
        for (size_t i = 0; i < s->count; i++) {
                const struct field *f = &s->fields[i];
                if (f->type != T_STRUCT || f->later)
                        continue;
                size_t len = path->len;
                str_addf(path, "%s.", f->name);
                if (find_field(f->sub, name)) {
                        str_add(path, name);
                        return true;
                }
                if (find_below(f->sub, name, path))
                        return true;
                str_truncate(path, len);
        }
        return false;
}

static void unknown_field(struct decoder *d, const struct tree *t)
{
        struct str hint CLEANUP(str_release) = { 0 };
        const char *names[64];
        size_t n = 0;
        if (decode_gone(d, t, t->key, NULL))
                return;
        for (; n < d->schema->count && n < ARRAY_SIZE(names); n++)
                names[n] = d->schema->fields[n].name;
        const char *near = nearest(t->key, names, n);
        str_add(&hint, "did you mean ");
        /* every other thing has a name */
        if (!streq(t->key, "name") && find_below(d->schema, t->key, &hint)) {
                str_addc(&hint, '?');
        } else if (near) {
                str_addf(&hint, "%s?", near);
        } else {
                str_truncate(&hint, 0);
                str_add(&hint, n == 1 ? "the only field here is " : "the fields here are ");
                for (size_t i = 0; i < n; i++)
                        str_addf(&hint, "%s%s", i ? ", " : "", names[i]);
        }
        problem_add_key(d->p, t, str_text(&hint), "unknown field \"%.80s\"", t->key);
}

/* Strings that other code expects are never NULL. */
static void never_null(const struct field *f, void *out)
{
        switch (f->type) {
        case T_STRING:
        case T_NAME:
        case T_HOST:
        case T_HOSTPORT:
        case T_ADDRESS:
        case T_URL:
        case T_PATH:
        case T_ABSPATH:
        case T_TEXT:
                if ((f->flags & F_REQUIRED || f->def) && !*(const char **)out)
                        *(const char **)out = "";
                break;
        case T_VERSION:
                if (!((struct version *)out)->text)
                        ((struct version *)out)->text = "";
                break;
        default:
                break;
        }
}

/* A default is decoded like a written value. Only lists and quoted text need the YAML parser. */
static void decode_default(struct decoder *d, void *out)
{
        const char *def = d->field->def;
        struct tree scalar = { .kind = TREE_SCALAR,
                .text = def,
                .plain = d->field->type == T_BOOL || d->field->type == T_INT ||
                         d->field->type == T_AMOUNT || d->field->type == T_DURATION };
        struct tree *t = &scalar;
        struct error err CLEANUP(error_release) = { 0 };
        if (*def && strchr("[{\"'", *def) &&
                tree_parse(d->arena, "default", def, strlen(def), &t, &err) < 0) {
                problem_add(d->p, NULL, d->field->name, NULL, "the default of %s is broken: %s",
                        d->field->name, err.message);
                return;
        }
        d->is_default = true;
        decoders[d->field->type](d, t, out);
        d->is_default = false;
}

/* `t` is the value, or NULL if it is not written; `in` is the map without it. */
static void decode_field(struct decoder *d, const struct tree *in, const struct tree *t, void *out)
{
        const struct field *f = d->field;
        bool written = t && (t->kind != TREE_NULL || f->flags & F_ONE_OF);
        if (!written && f->flags & F_REQUIRED && !field_refused(f) && in)
                problem_add(d->p, in, f->name,
                        f->example ? arena_printf(d->arena, "add %s: %s", f->name, f->example)
                                   : NULL,
                        "this field is required");
        if (written)
                decoders[f->type](d, t, out);
        else if (f->type == T_STRUCT)
                decode_struct(f->sub, NULL, out, d->arena, d->p);
        else if (f->def)
                decode_default(d, out);
        never_null(f, out);
}

/* Only one of the marked fields may be written: the first is used. */
static void decode_one_of(struct decoder *d, const struct tree *t)
{
        const struct tree *first = NULL;
        tree_each (c, t) {
                const struct field *f = find_field(d->schema, c->key);
                if (!f || !(f->flags & F_ONE_OF))
                        continue;
                if (first)
                        problem_add_key(d->p, c, "keep one of them",
                                "%s and %s exclude each other; %s is on line %u", first->key,
                                c->key, first->key, first->key_line);
                else
                        first = c;
        }
}

static void decode_map(struct decoder *d, const struct tree *t, char *out)
{
        const struct tree *values[64] = { 0 };
        const struct schema *s = d->schema;
        bool exclusive = false;
        tree_each (c, t) {
                const struct field *f = find_field(s, c->key);
                if (!f)
                        unknown_field(d, c);
                else if (field_refused(f) && c->kind != TREE_NULL) /* null is not written */
                        problem_add_key(d->p, c, f->later,
                                "this option is not implemented yet, and therefore refused");
                else if (f - s->fields < (ptrdiff_t)ARRAY_SIZE(values))
                        values[f - s->fields] = c;
        }
        for (size_t i = 0; i < s->count && i < ARRAY_SIZE(values); i++) {
                d->field = &s->fields[i];
                exclusive |= d->field->flags & F_ONE_OF;
                decode_field(d, t, values[i], out + d->field->offset);
        }
        if (exclusive)
                decode_one_of(d, t);
}

/* A scalar as a short form for one field; the others get their defaults. */
static void decode_shorthand(struct decoder *d, const struct tree *t, char *out)
{
        for (size_t i = 0; i < d->schema->count; i++) {
                d->field = &d->schema->fields[i];
                decode_field(d, NULL, streq(d->field->name, d->schema->shorthand) ? t : NULL,
                        out + d->field->offset);
        }
}

static void not_a_map(struct decoder *d, const struct tree *t)
{
        const struct field *f = t->kind == TREE_SCALAR ? find_field(d->schema, t->text) : NULL;
        const char *hint = f ? arena_printf(d->arena, "write %s: {%s: {}}",
                                       t->key ? t->key : d->schema->name, f->name)
                             : NULL;
        if (!hint && t->kind == TREE_LIST && t->count == 1 && t->first->kind == TREE_MAP)
                hint = "remove the -";
        d->field = NULL;
        problem_add(d->p, t, NULL, hint, "expected a map, got %s", decode_seen(d, t));
}

static void decode_struct(const struct schema *s, const struct tree *t, void *out, struct arena *a,
        struct problems *p)
{
        struct decoder d = { .arena = a, .p = p, .schema = s };
        *(const struct tree **)out = t;
        if (!t || t->kind == TREE_MAP || t->kind == TREE_NULL) {
                decode_map(&d, t, out);
        } else if (t->kind == TREE_SCALAR && s->shorthand) {
                decode_shorthand(&d, t, out);
        } else {
                not_a_map(&d, t);
                decode_map(&d, NULL, out);
        }
}

void schema_decode(const struct schema *s, const struct tree *t, void *out, struct arena *a,
        struct problems *p)
{
        decode_struct(s, t, out, a, p);
}

static bool decode_substruct(struct decoder *d, const struct tree *t, void *out)
{
        decode_struct(d->field->sub, t, out, d->arena, d->p);
        return true;
}

/* Elements must have different names: the second is reported. */
static void check_keys(
        struct decoder *d, const struct tree *t, const struct field *key, const char *v)
{
        struct index seen CLEANUP(index_release) = { 0 };
        const char *element = v;
        tree_each (e, t) {
                const char *name = *(const char *const *)(element + key->offset);
                const struct tree *first = name && *name ? index_put(&seen, name, (void *)e) : NULL;
                if (first)
                        problem_add(d->p, e, key->name,
                                arena_printf(d->arena, "give each its own %s", key->name),
                                "the %s \"%.80s\" is already used on line %u", key->name, name,
                                first->line);
                element += d->field->sub->size;
        }
}

static bool is_text(const struct field *f)
{
        return f->type == T_STRING || f->type == T_NAME || f->type == T_HOST;
}

static bool decode_structs(struct decoder *d, const struct tree *t, void *out)
{
        const struct schema *sub = d->field->sub;
        bool single = t->kind == TREE_SCALAR && sub->shorthand;
        if (t->kind != TREE_LIST && !single) {
                problem_add(d->p, t, NULL,
                        t->kind == TREE_MAP ? "put \"- \" before it, or [ ] around it" : NULL,
                        "expected a list, got %s", decode_seen(d, t));
                return false;
        }
        if (t->kind == TREE_LIST && t->count > ENTRIES_MAX) {
                problem_add(d->p, t, NULL, NULL, "at most %d entries are allowed, got %u",
                        ENTRIES_MAX, t->count);
                return false;
        }
        if (t->kind == TREE_LIST && !t->count && d->field->flags & F_REQUIRED)
                problem_add(d->p, t, NULL,
                        d->field->example ? arena_printf(d->arena, "for example %s: %s",
                                                    d->field->name, d->field->example)
                                          : NULL,
                        "expected at least one entry, got an empty list");
        size_t n = single ? 1 : t->count;
        char *v = arena_alloc(d->arena, n * sub->size), *element = v;
        if (single)
                decode_struct(sub, t, v, d->arena, d->p);
        tree_each (e, t) {
                decode_struct(sub, e->kind == TREE_NULL ? NULL : e, element, d->arena, d->p);
                if (e->kind == TREE_NULL) {
                        problem_add(d->p, e, NULL, "remove the entry, or give it a value",
                                "this entry of the list is empty");
                        *(const struct tree **)(void *)element = e;
                }
                element += sub->size;
        }
        for (size_t i = 0; i < sub->count; i++)
                if (is_text(&sub->fields[i]) &&
                        (sub->fields[i].flags & F_KEY ||
                                (d->field->flags & F_KEY && streq(sub->fields[i].name, "name"))))
                        check_keys(d, t, &sub->fields[i], v);
        *(size_t *)out = n;
        *(void **)((char *)out + offsetof(struct strings, v)) = v;
        return true;
}
