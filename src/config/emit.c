/* The schema table as JSON: JSON Schema, or the "structural" schema of a CustomResourceDefinition,
 * in which a value has one type and there are neither references nor defaults. */
#include "config/emit.h"

struct emit {
        struct arena arena;
        bool crd;
        json_t *defs; /* JSON Schema only: each sub-schema once */
};

static json_t *field_value(struct emit *e, const struct field *f, enum field_type type);

#define LABEL       "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
#define LABEL_VALUE "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
#define TAINT       "^[^=:]+(=[^=:]*)?:(NoSchedule|PreferNoSchedule|NoExecute)$"

/* Types that are strings of a form. A NULL pattern takes every string. */
static const struct {
        enum field_type type;
        const char *pattern;
        int max_length;
} string_types[] = {
        { T_STRING, NULL, 0 },
        { T_DURATION, "^([0-9]+[wdhms])+$", 0 },
        { T_MILLIS, "^([0-9]+(w|d|h|m|s|ms))+$", 0 },
        { T_VERSION, "^v?[0-9]+\\.[0-9]+\\.[0-9]+$", 0 },
        { T_SIZE, "^[0-9]+([KMGT]i?B?|k)$", 0 },
        { T_NAME, "^" LABEL "$", 63 },
        { T_HOST, "^[A-Za-z0-9:._%-]+$", 253 },
        { T_HOSTPORT, "^(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9:._-]+)(:[0-9]+)?$", 0 },
        { T_ADDRESS, "^[0-9A-Fa-f:.]+$", 0 },
        { T_CIDR, "^[0-9A-Fa-f:.]+/[0-9]{1,3}$", 0 },
        { T_URL, "^https?://[^ ]+$", 0 },
        { T_PATH, NULL, 0 },
        { T_ABSPATH, "^/", 0 },
        { T_TEXT, NULL, 0 },
};

static void set(json_t *o, const char *key, json_t *v) { json_object_set_new(o, key, v); }
static void set_text(json_t *o, const char *key, const char *v)
{
        json_object_set_new(o, key, json_string(v));
}

static json_t *typed(const char *type)
{
        json_t *o = json_object();
        set_text(o, "type", type);
        return o;
}

/* A value of either of two forms: JSON Schema says which, a structural schema can only leave it
 * open. Both arguments are taken. */
static json_t *either(struct emit *e, json_t *a, json_t *b)
{
        json_t *o = json_object();
        if (e->crd) {
                json_decref(a);
                json_decref(b);
                set(o, "x-kubernetes-preserve-unknown-fields", json_true());
        } else
                set(o, "anyOf", json_pack("[o, o]", a, b));
        return o;
}

static json_t *int_or_string(struct emit *e, const char *pattern, int64_t min)
{
        json_t *text = typed("string");
        set_text(text, "pattern", pattern);
        if (!e->crd) {
                json_t *number = typed("integer");
                set(number, "minimum", json_integer(min));
                return either(e, number, text);
        }
        json_object_del(text, "type");
        set(text, "x-kubernetes-int-or-string", json_true());
        return text;
}

static json_t *list_of(json_t *item)
{
        json_t *o = typed("array");
        set(o, "items", item);
        return o;
}

static json_t *map_of(json_t *value)
{
        json_t *o = typed("object");
        set(o, "additionalProperties", value);
        return o;
}

static json_t *enum_of(const char *const *names)
{
        json_t *o = typed("string"), *all = json_array();
        for (; *names; names++)
                json_array_append_new(all, json_string(*names));
        set(o, "enum", all);
        return o;
}

static json_t *string_value(const struct field *f, enum field_type type)
{
        if (f->names)
                return enum_of(f->names);
        json_t *o = typed("string");
        for (size_t i = 0; i < ARRAY_SIZE(string_types); i++) {
                if (string_types[i].type != type)
                        continue;
                if (string_types[i].pattern)
                        set_text(o, "pattern", string_types[i].pattern);
                else if (!(f->flags & F_EMPTY))
                        set(o, "minLength", json_integer(1));
                if (string_types[i].max_length)
                        set(o, "maxLength", json_integer(string_types[i].max_length));
        }
        return o;
}

static json_t *int_value(const struct field *f)
{
        json_t *o = typed("integer");
        if (f->min || f->max) {
                set(o, "minimum", json_integer(f->min));
                set(o, "maximum", json_integer(f->max));
        }
        return o;
}

static json_t *pairs_value(struct emit *e, const struct field *f)
{
        if (!(f->flags & F_LOOSE))
                return map_of(typed("string"));
        json_t *value = json_object();
        if (e->crd)
                set(value, "x-kubernetes-preserve-unknown-fields", json_true());
        else
                set(value, "type", json_pack("[s, s, s]", "string", "number", "boolean"));
        return map_of(value);
}

static json_t *labels_value(void)
{
        json_t *value = typed("string");
        set_text(value, "pattern", LABEL_VALUE);
        set(value, "maxLength", json_integer(63));
        return map_of(value);
}

static json_t *taint_value(struct emit *e)
{
        static const char *const effects[] = { "NoSchedule", "PreferNoSchedule", "NoExecute",
                NULL };
        json_t *text = typed("string"), *map = typed("object"), *fields = json_object();
        set_text(text, "pattern", TAINT);
        set(fields, "key", typed("string"));
        set(fields, "value", typed("string"));
        set(fields, "effect", enum_of(effects));
        set(map, "properties", fields);
        set(map, "required", json_pack("[s, s]", "key", "effect"));
        set(map, "additionalProperties", json_false());
        return either(e, text, map);
}

/* A default or example as it would be written, as JSON: text stays text in fields
 * that hold text. */
static json_t *written(struct emit *e, const struct field *f, const char *text)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct str json CLEANUP(str_release) = { 0 };
        struct tree *t;
        if (tree_parse(&e->arena, f->name, text, strlen(text), &t, &err) < 0)
                return json_string(text);
        bool scalar = t->kind == TREE_SCALAR;
        if (scalar && f->type != T_BOOL && f->type != T_INT && f->type != T_AMOUNT)
                return json_string(t->text);
        tree_json(&json, t);
        json_t *v = json_loads(str_text(&json), JSON_DECODE_ANY, NULL);
        return v ? v : json_string(text);
}

/* The default, unless it only stands for "not given" (a count of -1). */
bool emit_has_default(const struct field *f)
{
        if (!f->def)
                return false;
        return f->type != T_INT || (!f->min && !f->max) || strtol(f->def, NULL, 10) >= f->min;
}

static json_t *field_schema(struct emit *e, const struct schema *s, const struct field *f)
{
        json_t *o = json_object();
        if (f->later)
                set(o, "description",
                        json_sprintf("%s Not implemented yet: refused.", schema_help(s, f)));
        else
                set_text(o, "description", schema_help(s, f));
        if (f->later && !e->crd) { /* a structural schema has no way to say this */
                set(o, "not", json_object());
                return o;
        }
        json_t *value = field_value(e, f, f->type);
        /* the field's help is more specific than its struct's */
        json_object_update_missing(o, value);
        json_decref(value);
        if (!e->crd && emit_has_default(f))
                set(o, "default", written(e, f, f->def));
        if (!e->crd && f->example)
                set(o, "examples", json_pack("[o]", written(e, f, f->example)));
        return o;
}

static json_t *struct_body(struct emit *e, const struct schema *s)
{
        json_t *o = typed("object"), *fields = json_object(), *required = json_array();
        bool one_of = false;
        set_text(o, "description", schema_help(s, NULL));
        for (const struct field *f = s->fields; f < s->fields + s->count; f++) {
                set(fields, f->name, field_schema(e, s, f));
                one_of |= f->flags & F_ONE_OF;
                if (f->flags & F_REQUIRED && !f->later)
                        json_array_append_new(required, json_string(f->name));
        }
        set(o, "properties", fields);
        if (json_array_size(required))
                set(o, "required", required);
        else
                json_decref(required);
        if (one_of)
                set(o, "maxProperties", json_integer(1));
        if (!e->crd)
                set(o, "additionalProperties", json_false());
        return o;
}

static const struct field *shorthand_field(const struct schema *s)
{
        for (const struct field *f = s->fields; s->shorthand && f < s->fields + s->count; f++)
                if (streq(f->name, s->shorthand))
                        return f;
        return NULL;
}

/* A reference to the sub-schema, or the sub-schema itself where references are not allowed. */
static json_t *struct_value(struct emit *e, const struct schema *s)
{
        const struct field *brief = shorthand_field(s);
        if (e->crd) {
                json_t *body = struct_body(e, s);
                /* a map or a scalar: no type, but the fields are still checked where it is a map */
                if (brief) {
                        json_object_del(body, "type");
                        set(body, "x-kubernetes-preserve-unknown-fields", json_true());
                }
                return body;
        }
        if (!json_object_get(e->defs, s->name)) {
                /* the place is taken before what it refers to */
                set(e->defs, s->name, json_null());
                set(e->defs, s->name, struct_body(e, s));
        }
        json_t *ref = json_object();
        set(ref, "$ref", json_sprintf("#/$defs/%s", s->name));
        return brief ? either(e, field_value(e, brief, brief->type), ref) : ref;
}

static json_t *field_value(struct emit *e, const struct field *f, enum field_type type)
{
        switch (type) {
        case T_BOOL:
                return typed("boolean");
        case T_INT:
                return int_value(f);
        case T_AMOUNT:
                return int_or_string(e, "^[0-9]+%?$", f->min);
        case T_ENUM:
                return enum_of(f->names);
        case T_CIDRS:
                return either(e, typed("string"), list_of(string_value(f, T_CIDR)));
        case T_IPS:
                return either(e, string_value(f, T_ADDRESS), list_of(string_value(f, T_ADDRESS)));
        case T_STRINGS:
                return either(e, string_value(f, f->item), list_of(string_value(f, f->item)));
        case T_NUMBERS:
                return either(e, int_value(f), list_of(int_value(f)));
        case T_ROLES:
                return either(e, enum_of(f->names), list_of(enum_of(f->names)));
        case T_PAIRS:
                return pairs_value(e, f);
        case T_LABELS:
                return labels_value();
        case T_GATES:
                return map_of(typed("boolean"));
        case T_TAINTS:
                return either(e, taint_value(e), list_of(taint_value(e)));
        case T_ANY:
                return e->crd ? either(e, NULL, NULL) : json_object();
        case T_STRUCT:
                return struct_value(e, f->sub);
        case T_STRUCTS:
                return list_of(struct_value(e, f->sub));
        default:
                return string_value(f, type);
        }
}

/* The object around the spec. */
static const char json_head[] =
        "{ \"$schema\": \"https://json-schema.org/draft/2020-12/schema\","
        "  \"$id\": \"https://slipway.dev/schema/v1alpha1/cluster.json\","
        "  \"title\": \"Cluster\", \"description\": \"A Kubernetes cluster managed by slipway.\", \"type\": \"object\","
        "  \"required\": [\"apiVersion\", \"kind\", \"metadata\", \"spec\"], \"additionalProperties\": false,"
        "  \"properties\": {"
        "    \"apiVersion\": {\"const\": \"slipway.dev/v1alpha1\"},"
        "    \"kind\": {\"const\": \"Cluster\"},"
        "    \"metadata\": {"
        "      \"type\": \"object\", \"required\": [\"name\"],"
        "      \"properties\": {"
        "        \"name\": {\"description\": \"The cluster's name, also of its state directory and kubeconfig context.\", \"type\": \"string\","
        "                  \"pattern\": \"^" LABEL "$\", \"maxLength\": 63},"
        "        \"namespace\": {\"type\": \"string\"},"
        "        \"labels\": {\"description\": \"Not implemented yet: refused.\", \"not\": {}},"
        "        \"annotations\": {\"type\": \"object\", \"additionalProperties\": {\"type\": \"string\"}}}},"
        "    \"spec\": {},"
        "    \"status\": {\"description\": \"Written by the controller; not needed in a file.\", \"type\": \"object\"}}}";

json_t *emit_spec(bool crd, json_t *defs)
{
        struct emit e = { .crd = crd, .defs = defs };
        json_t *spec = struct_body(&e, &cluster_schema);
        arena_release(&e.arena);
        return spec;
}

void schema_json(struct str *out)
{
        json_t *root = json_loads(json_head, 0, NULL), *defs = json_object();
        set(json_object_get(root, "properties"), "spec", emit_spec(false, defs));
        set(root, "$defs", defs);
        char *text CLEANUP(free_p) = json_dumps(root, JSON_INDENT(2));
        str_add(out, text);
        str_addc(out, '\n');
        json_decref(root);
}
