/* Lists, maps of strings, networks. */
#include "config/decode.h"
#include "config/scalar.h"

static bool parse_cidr(struct decoder *d, const struct tree *t, const char *s, struct cidr *out)
{
        bool host_bits;
        struct ip ip;
        char buf[IP_TEXT + 4];
        if (cidr_parse(s, out, &host_bits) && !host_bits)
                return true;
        if (cidr_parse(s, out, &host_bits))
                problem_add(d->p, t, NULL,
                        arena_printf(d->arena, "did you mean %s?", cidr_format(out, buf)),
                        "%s is an address inside a network, not the network's first address", s);
        else if (ip_parse(s, &ip))
                problem_add(d->p, t, NULL,
                        arena_printf(d->arena, "add the prefix length, like %s/%d", s,
                                ip.family == 4 ? 24 : 64),
                        "expected a network, got the address %s", s);
        else
                problem_add(d->p, t, NULL, "write it like 10.0.0.0/16 or fd00::/56",
                        "\"%.60s\" is not a network", s);
        *out = (struct cidr){ 0 };
        return false;
}

bool decode_cidr(struct decoder *d, const struct tree *t, void *out)
{
        const char *s = decode_text(d, t, "a network", false);
        return s && parse_cidr(d, t, s, out);
}

/* "a,b" in one string, as Kubernetes' own flags have it. */
static bool split_cidrs(struct decoder *d, const struct tree *t, struct cidrs *out)
{
        const char *s = decode_text(d, t, "a network", false);
        if (!s)
                return false;
        size_t n = 1;
        for (const char *p = s; (p = strchr(p, ',')); p++)
                n++;
        out->v = arena_array(d->arena, struct cidr, n);
        for (size_t i = 0; i < n; i++) {
                size_t len = strcspn(s, ","), skip = strspn(s, " ");
                const char *part = arena_strndup(
                        d->arena, s + (skip < len ? skip : 0), len - (skip < len ? skip : 0));
                if (!parse_cidr(d, t, part, &out->v[i]))
                        return false;
                s += len + (s[len] == ',');
        }
        out->n = n;
        return true;
}

bool decode_cidrs(struct decoder *d, const struct tree *t, void *out)
{
        struct cidrs c = { 0 };
        bool good = true;
        if (t->kind == TREE_SCALAR) {
                good = split_cidrs(d, t, &c);
        } else if (t->kind == TREE_LIST) {
                c.v = arena_array(d->arena, struct cidr, t->count);
                tree_each (e, t)
                        good &= decode_cidr(d, e, &c.v[c.n++]);
        } else {
                return decode_wrong(d, t, "a network or a list of them");
        }
        if (good)
                *(struct cidrs *)out = c;
        return good;
}

static bool parse_ip(struct decoder *d, const struct tree *t, void *out)
{
        struct ip *ip = out;
        const char *s = decode_text(d, t, "an address", false);
        if (s && !ip_parse(s, ip))
                problem_add(d->p, t, NULL,
                        strchr(s, '/') ? "remove the / and everything after it" : NULL,
                        "\"%.60s\" is not an IP address", s);
        return s && ip->family;
}

/* A list of values, or a single one in its place. `what` is expected if it is a map. */
static bool decode_each(struct decoder *d, const struct tree *t, const char *what, decode_fn *one,
        size_t size, void **v, size_t *n)
{
        bool good = true;
        if (t->kind == TREE_MAP)
                return decode_wrong(d, t, what);
        char *at = *v = arena_alloc(d->arena, size * (t->kind == TREE_LIST ? t->count : 1));
        if (t->kind == TREE_SCALAR)
                good = one(d, t, at + size * (*n)++);
        tree_each (e, t)
                good &= one(d, e, at + size * (*n)++);
        return good;
}

bool decode_ips(struct decoder *d, const struct tree *t, void *out)
{
        size_t n = 0;
        void *v;
        bool good = decode_each(
                d, t, "an address or a list of them", parse_ip, sizeof(struct ip), &v, &n);
        if (good)
                *(struct ips *)out = (struct ips){ .v = v, .n = n };
        return good;
}

static bool decode_item(struct decoder *d, const struct tree *t, void *out)
{
        const char **word = out;
        *word = decode_word(d, t, d->field->item ? d->field->item : T_STRING);
        return *word && (d->field->names || !decode_gone(d, t, d->field->name, *word));
}

bool decode_strings(struct decoder *d, const struct tree *t, void *out)
{
        size_t n = 0;
        void *v;
        bool good =
                decode_each(d, t, "a list of strings", decode_item, sizeof(const char *), &v, &n);
        if (good)
                *(struct strings *)out = (struct strings){ .v = v, .n = n };
        return good;
}

bool decode_numbers(struct decoder *d, const struct tree *t, void *out)
{
        size_t n = 0;
        void *v;
        bool good = decode_each(d, t, "a list of whole numbers", decode_int, sizeof(long), &v, &n);
        if (good)
                *(struct numbers *)out = (struct numbers){ .v = v, .n = n };
        return good;
}

bool decode_roles(struct decoder *d, const struct tree *t, void *out)
{
        unsigned bits = 0;
        bool good = true;
        if (t->kind == TREE_MAP)
                return decode_wrong(d, t, "a list of roles");
        if (t->kind == TREE_SCALAR) {
                int i = decode_name(d, t);
                good = i >= 0;
                bits = good ? 1u << i : 0;
        }
        tree_each (e, t) {
                int i = decode_name(d, e);
                good &= i >= 0;
                if (i >= 0 && bits & 1u << i)
                        problem_add(d->p, e, NULL, "remove one of them",
                                "the role %s is listed twice", e->text);
                bits |= i >= 0 ? 1u << i : 0;
        }
        if (good && !bits) {
                problem_add(d->p, t, NULL, "leave the field out for workers",
                        "expected at least one role, got an empty list");
                return false;
        }
        *(unsigned *)out = bits; /* a wrong one beside good ones does not take them away */
        return good;
}

static bool decode_list_key_fault(struct decoder *d, const struct tree *t)
{
        uint32_t cp;
        const char *fault = control_in(t->key, &cp)      ? "it contains a control character"
                            : d->field->type == T_LABELS ? label_key_fault(t->key)
                                                         : NULL;
        if (fault)
                problem_add_key(d->p, t, NULL, "\"%.80s\" cannot be a %s: %s", t->key,
                        d->field->type == T_LABELS ? "label" : "key", fault);
        return fault || decode_gone(d, t, d->field->name, t->key);
}

static const char *pair_value(struct decoder *d, const struct tree *t)
{
        enum tree_type type = tree_type(t);
        if (d->field->type == T_GATES) {
                bool on;
                return decode_bool(d, t, &on) ? (on ? "true" : "false") : NULL;
        }
        if (d->field->flags & F_LOOSE && t->kind <= TREE_SCALAR && type != TREE_STRING)
                return type == TREE_NIL ? "" : t->text;
        const char *s = decode_text(d, t, "a string", true),
                   *fault = s && d->field->type == T_LABELS ? label_value_fault(s) : NULL;
        if (fault)
                problem_add(
                        d->p, t, NULL, NULL, "\"%.80s\" cannot be a label's value: %s", s, fault);
        return fault ? NULL : s;
}

bool decode_pairs(struct decoder *d, const struct tree *t, void *out)
{
        struct pairs pairs = { 0 };
        bool good = true;
        if (t->kind != TREE_MAP)
                return decode_wrong(d, t, "a map");
        pairs.v = arena_array(d->arena, struct pair, t->count);
        tree_each (c, t) {
                const char *value = decode_list_key_fault(d, c) ? NULL : pair_value(d, c);
                good &= value != NULL;
                pairs.v[pairs.n++] = (struct pair){ c->key, value };
        }
        if (good)
                *(struct pairs *)out = pairs;
        return good;
}

/* A taint as a map, the way Kubernetes has it. */
struct taint_map {
        const struct tree *src;
        const char *key, *value, *effect;
};

static const char *const effects[] = { "NoSchedule", "PreferNoSchedule", "NoExecute", NULL };
static const struct field taint_fields[] = {
        { "key", T_STRING, F_REQUIRED, offsetof(struct taint_map, key), .example = "gpu" },
        { "value", T_STRING, F_EMPTY, offsetof(struct taint_map, value), .def = "" },
        { "effect", T_STRING, F_REQUIRED, offsetof(struct taint_map, effect), .names = effects,
                .example = "NoSchedule" },
};
static const struct schema taint_schema = { .name = "taint",
        .fields = taint_fields,
        .count = ARRAY_SIZE(taint_fields),
        .size = sizeof(struct taint_map) };

static bool taint_text(struct decoder *d, const struct tree *t, struct taint *out)
{
        const char *s = decode_text(d, t, "a taint", false), *colon = s ? strrchr(s, ':') : NULL;
        if (!s)
                return false;
        if (!colon) {
                problem_add(d->p, t, NULL, "write key=value:NoSchedule or key:NoSchedule",
                        "the taint \"%.80s\" has no effect", s);
                return false;
        }
        const char *left = arena_strndup(d->arena, s, (size_t)(colon - s)), *eq = strchr(left, '=');
        out->key = eq ? arena_strndup(d->arena, left, (size_t)(eq - left)) : left;
        out->value = eq ? eq + 1 : "";
        out->effect = colon + 1;
        for (size_t i = 0; effects[i]; i++)
                if (streq(effects[i], out->effect))
                        return true;
        const char *near = nearest(out->effect, effects, ARRAY_SIZE(effects) - 1);
        problem_add(d->p, t, NULL, near ? arena_printf(d->arena, "did you mean %s?", near) : NULL,
                "the effect of a taint is NoSchedule, PreferNoSchedule or NoExecute, got \"%.40s\"",
                out->effect);
        return false;
}

static bool decode_taint(struct decoder *d, const struct tree *t, struct taint *out)
{
        if (t->kind == TREE_MAP) {
                struct taint_map m = { 0 };
                size_t before = d->p->errors;
                schema_decode(&taint_schema, t, &m, d->arena, d->p);
                *out = (struct taint){ m.key, m.value, m.effect };
                if (d->p->errors != before)
                        return false;
        } else if (!taint_text(d, t, out)) {
                return false;
        }
        const char *fault = label_key_fault(out->key);
        if (fault)
                problem_add(d->p, t, NULL, NULL, "\"%.80s\" cannot be a taint's key: %s", out->key,
                        fault);
        else if ((fault = label_value_fault(out->value)))
                problem_add(d->p, t, NULL, NULL, "\"%.80s\" cannot be a taint's value: %s",
                        out->value, fault);
        return !fault;
}

bool decode_taints(struct decoder *d, const struct tree *t, void *out)
{
        struct taints taints = { 0 };
        bool good = true;
        taints.v = arena_array(d->arena, struct taint, t->kind == TREE_LIST ? t->count : 1);
        if (t->kind != TREE_LIST)
                good = decode_taint(d, t, &taints.v[taints.n++]);
        else
                tree_each (e, t)
                        good &= decode_taint(d, e, &taints.v[taints.n++]);
        if (good)
                *(struct taints *)out = taints;
        return good;
}
