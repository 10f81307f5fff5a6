/* Rows into modules. A row is {module, when, resource|data|local|output, body|value}. In its texts
 * @NAME is the row of that name: within its module its address, from another module a variable,
 * for which that module gets an output and the root module passes it on. */
#include "base/error.h"
#include "base/str.h"
#include "deliver/terraform/terraform.h"

#define WRITTEN \
        "Written by `slipway export terraform`, which refuses to overwrite changes made here."
#define POOL "pool-"
#define ROOT "" /* the root module */

static const char *const module_names[] = { "network", "groups", "machines", "balancer", "dns" };

/* {key: {}} inside an object, made if it is not there. */
static json_t *object_at(json_t *o, const char *key)
{
        json_t *v = json_object_get(o, key);
        if (!v)
                json_object_set_new(o, key, v = json_object());
        return v;
}

static json_t *module_file(struct terraform *t, const char *module)
{
        json_t *file = json_object_get(t->modules, module), *needs, *source;
        const char *name;
        if (file)
                return file;
        json_object_set_new(t->modules, module, file = json_pack("{s:s}", "//", WRITTEN));
        needs = object_at(object_at(file, "terraform"), "required_providers");
        json_object_foreach(json_object_get(t->table, "providers"), name, source)
                json_object_set_new(needs, name,
                        json_pack("{s:O}", "source", json_object_get(source, "source")));
        return file;
}

static const char *row_text(const json_t *row, const char *key)
{
        return json_string_value(json_object_get(row, key));
}

/* ---- references ---- */

/* "data.TYPE.NAME", "TYPE.NAME" or "local.NAME"; NULL: an output. */
static const char *row_address(const struct terraform *t, const json_t *row)
{
        const char *resource = row_text(row, "resource"), *data = row_text(row, "data"),
                   *local = row_text(row, "local");
        return resource ? resource
               : data   ? arena_printf(t->arena, "data.%s", data)
               : local  ? arena_printf(t->arena, "local.%s", local)
                        : NULL;
}

/* Several rows may have the same name: one of the same module comes first. */
static const json_t *row_named(const struct terraform *t, const char *module, const char *name)
{
        const json_t *row, *other = NULL;
        size_t i;
        json_array_foreach(json_object_get(t->table, "rows"), i, row)
        {
                const char *address = row_address(t, row),
                           *dot = address ? strrchr(address, '.') : NULL;
                if (!dot || !streq(dot + 1, name) || !terraform_when(t, row_text(row, "when")))
                        continue;
                if (streq(row_text(row, "module"), module))
                        return row;
                other = row;
        }
        return other;
}

static void module_input(
        struct terraform *t, const char *module, const char *name, const char *from)
{
        object_at(object_at(module_file(t, module), "variable"), name);
        json_object_set_new(object_at(t->inputs, module), name, json_string(from));
}

static int add_reference(struct terraform *t, const char *module, const char *name, struct str *out,
        struct error *err)
{
        const json_t *row = row_named(t, module, name);
        const char *owner = row ? row_text(row, "module") : NULL;
        if (!row || (!streq(owner, module) && streq(owner, "machines")))
                return error_set(err, EINVAL, EXIT_INTERNAL,
                        "platform %s: a row of module %s refers to @%s, which it does not have",
                        t->platform->name, module, name);
        if (streq(owner, module)) {
                str_add(out, row_address(t, row));
                return 0;
        }
        json_object_set_new(object_at(module_file(t, owner), "output"), name,
                json_pack("{s:s}", "value", arena_printf(t->arena, "${%s}", row_address(t, row))));
        module_input(t, module, name, arena_printf(t->arena, "${module.%s.%s}", owner, name));
        str_addf(out, "var.%s", name);
        return 0;
}

/* Variables that the root module computes: all others are its own. */
static void add_variable(struct terraform *t, const char *module, const char *name)
{
        static const char *const computed[] = { "pool", "control_nodes", "endpoint" };
        for (size_t i = 0; i < ARRAY_SIZE(computed); i++)
                if (streq(name, computed[i])) {
                        object_at(object_at(module_file(t, module), "variable"), name);
                        return;
                }
        json_object_set_new(t->variables, name, json_true());
        module_input(t, module, name, arena_printf(t->arena, "${var.%s}", name));
}

static bool in_name(char c) { return (c >= 'a' && c <= 'z') || c == '_'; }

static int expand_text(struct terraform *t, const char *module, const char *text, struct str *out,
        struct error *err)
{
        int r = 0;
        for (const char *at = text; r == 0 && *at;) {
                bool variable = has_prefix(at, "var.") && (at == text || !in_name(at[-1]));
                size_t skip = variable ? strlen("var.") : *at == '@', n = skip;
                while (skip && in_name(at[n]))
                        n++;
                if (n == skip) {
                        str_addc(out, *at++);
                        continue;
                }
                const char *name = arena_strndup(t->arena, at + skip, n - skip);
                if (variable) {
                        add_variable(t, module, name);
                        str_addn(out, at, n);
                } else
                        r = add_reference(t, module, name, out, err);
                at += n;
        }
        return r;
}

/* A copy with every text expanded; NULL with err set. */
static json_t *expand(struct terraform *t, const char *module, const json_t *v, struct error *err)
{
        json_t *out = json_is_object(v)  ? json_object()
                      : json_is_array(v) ? json_array()
                                         : NULL,
               *copy;
        const char *key;
        const json_t *one;
        size_t i;
        if (json_is_string(v)) {
                struct str text CLEANUP(str_release) = { 0 };
                return expand_text(t, module, json_string_value(v), &text, err) < 0
                               ? NULL
                               : json_string(str_text(&text));
        }
        if (!out)
                return json_deep_copy(v);
        json_object_foreach((json_t *)(uintptr_t)v, key, copy)
        {
                copy = expand(t, module, copy, err);
                if (!copy || json_object_set_new(out, key, copy) < 0)
                        goto failed;
        }
        json_array_foreach(v, i, one)
        {
                copy = expand(t, module, one, err);
                if (!copy || json_array_append_new(out, copy) < 0)
                        goto failed;
        }
        return out;
failed:
        json_decref(out);
        return NULL;
}

/* ---- rows ---- */

static int row_write(struct terraform *t, const json_t *row, struct error *err)
{
        const char *module = row_text(row, "module"), *address = row_address(t, row),
                   *output = row_text(row, "output"), *local = row_text(row, "local");
        bool value = output || local;
        json_t *file = module_file(t, module),
               *body = expand(t, module, json_object_get(row, value ? "value" : "body"), err);
        if (!body)
                return -err->code;
        if (output) {
                json_object_set_new(
                        object_at(file, "output"), output, json_pack("{s:o}", "value", body));
                return 0;
        }
        if (local) {
                json_object_set_new(object_at(file, "locals"), local, body);
                return 0;
        }
        bool data = row_text(row, "data");
        const char *type = data ? address + strlen("data.") : address, *dot = strchr(type, '.');
        json_t *kind = object_at(file, data ? "data" : "resource");
        json_object_set_new(object_at(kind, arena_strndup(t->arena, type, (size_t)(dot - type))),
                dot + 1, body);
        return 0;
}

/* ---- the root module ---- */

/* "merge(module.pool-a.nodes, module.pool-b.nodes)" of the pools with any of the roles. */
static const char *nodes_of(const struct terraform *t, unsigned roles)
{
        struct str s CLEANUP(str_release) = { 0 };
        for (size_t i = 0; i < t->cluster->pools.n; i++)
                if (t->cluster->pools.v[i].roles & roles)
                        str_addf(&s, "%smodule." POOL "%s.nodes", s.len ? ", " : "",
                                t->cluster->pools.v[i].name);
        return arena_printf(t->arena, "merge(%s)", str_text(&s));
}

static void root_value(json_t *call, const char *name, const char *value)
{
        json_object_set_new(call, name, json_string(value));
}

static json_t *root_call(const struct terraform *t, const char *module)
{
        json_t *call = json_deep_copy(json_object_get(t->inputs, module));
        call = call ? call : json_object();
        root_value(call, "source", arena_printf(t->arena, "./modules/%s", module));
        return call;
}

static const char *root_endpoint(const struct terraform *t)
{
        return terraform_when(t, "dns")                  ? "${var.name}.${var.dns_zone}"
               : json_object_get(t->modules, "balancer") ? "${module.balancer.endpoint}"
               : terraform_when(t, "vip")                ? "${var.vip}"
                                                         : NULL;
}

static void root_pools(const struct terraform *t, json_t *calls)
{
        for (size_t i = 0; i < t->cluster->pools.n; i++) {
                const char *pool = t->cluster->pools.v[i].name;
                json_t *call = root_call(t, "machines");
                root_value(call, "nodes",
                        arena_printf(t->arena,
                                "${{for k, v in var.nodes : k => v if v.pool == \"%s\"}}", pool));
                if (json_object_get(
                            json_object_get(json_object_get(t->modules, "machines"), "variable"),
                            "pool"))
                        root_value(call, "pool", pool);
                json_object_set_new(calls, arena_printf(t->arena, POOL "%s", pool), call);
        }
}

static json_t *root_outputs(struct terraform *t, struct error *err)
{
        json_t *said = json_pack("{s:{s:{s:s, s:s?, s:s}}}", "slipway", "value", "nodes",
                arena_printf(t->arena,
                        "${{for k, v in %s : k => {id = v.id, ip = v.ip, address = v.address, zone = v.zone}}}",
                        nodes_of(t, ~0u)),
                "endpoint", root_endpoint(t), "bastion", "${var.bastion}");
        json_t *out = expand(t, ROOT, said, err);
        json_decref(said);
        return out;
}

static json_t *root_modules(const struct terraform *t)
{
        json_t *calls = json_object(), *balancer, *dns;
        for (size_t i = 0; i < ARRAY_SIZE(module_names); i++)
                if (!streq(module_names[i], "machines") &&
                        json_object_get(t->modules, module_names[i]))
                        json_object_set_new(calls, module_names[i], root_call(t, module_names[i]));
        root_pools(t, calls);
        if ((balancer = json_object_get(calls, "balancer")) && terraform_when(t, "balancer"))
                root_value(balancer, "control_nodes",
                        arena_printf(t->arena, "${%s}", nodes_of(t, ROLE_CONTROL_PLANE)));
        if ((dns = json_object_get(calls, "dns")))
                root_value(
                        dns, "endpoint", balancer ? "${module.balancer.endpoint}" : "${var.vip}");
        return calls;
}

static int root_module(struct terraform *t, json_t *files, struct error *err)
{
        json_t *providers = json_object_get(t->table, "providers");
        json_t *configuration = expand(t, ROOT, json_object_get(t->table, "configuration"), err),
               *outputs = configuration ? root_outputs(t, err) : NULL;
        if (!outputs) {
                json_decref(configuration);
                return -err->code;
        }
        json_object_del(t->modules, ROOT); /* variables that it uses are its own */
        json_object_set_new(files, "main.tf.json",
                json_pack("{s:s, s:{s:s, s:O}, s:{s:o}, s:o, s:o}", "//", WRITTEN, "terraform",
                        "required_version", ">= 1.3.0", "required_providers", providers, "provider",
                        json_object_iter_key(json_object_iter(providers)), configuration, "module",
                        root_modules(t), "output", outputs));
        return 0;
}

int terraform_modules(struct terraform *t, json_t *files, struct error *err)
{
        const json_t *row;
        const char *name;
        json_t *file;
        size_t i;
        int r = 0;
        json_array_foreach(json_object_get(t->table, "rows"), i, row)
        {
                if (terraform_when(t, row_text(row, "when")) && (r = row_write(t, row, err)) < 0)
                        return r;
        }
        r = root_module(t, files, err);
        json_object_foreach(t->modules, name, file) json_object_set(
                files, arena_printf(t->arena, "modules/%s/main.tf.json", name), file);
        return r;
}
