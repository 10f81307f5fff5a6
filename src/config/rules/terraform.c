/* provider.terraform: variables that the platform has, and what its machines cannot be made
 * without. */
#include "config/platform.h"
#include "config/rules/rules.h"

static const char *nearest_variable(const struct platform *row, const char *name)
{
        const char *names[64];
        const struct platform_variable *v;
        size_t n = 0;
        while (n < ARRAY_SIZE(names) && (v = platform_variable_at(row, n)))
                names[n++] = v->name;
        return nearest(name, names, n);
}

static const char *value_fault(const struct platform_variable *v, const char *value)
{
        static const char *const ranges[] = { "cidr", "ssh_from", "api_from", "node_ports_from" };
        struct arena a CLEANUP(arena_release) = { 0 };
        struct strings words = platform_list(&a, value);
        struct cidr net;
        if (v->type == VARIABLE_NUMBER && (!*value || value[strspn(value, "0123456789")]))
                return "is a whole number";
        if (streq(v->name, "public") && !streq(value, "all") && !streq(value, "control-plane") &&
                !streq(value, "none"))
                return "is all, control-plane or none";
        for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
                for (size_t k = 0; streq(v->name, ranges[i]) && k < words.n; k++)
                        if (!cidr_parse(words.v[k], &net, NULL) || net.ip.family != 4)
                                return "has IPv4 ranges, such as 192.0.2.0/24";
        return NULL;
}

/* "size" of "worker.size", if there is such a pool and a pool can have it. */
static const char *pool_part(const struct cluster *c, const char *name)
{
        const char *dot = strchr(name, '.');
        for (size_t i = 0; dot && i < c->pools.n; i++)
                if (c->pools.v[i].name && strlen(c->pools.v[i].name) == (size_t)(dot - name) &&
                        has_prefix(name, c->pools.v[i].name) && platform_pool_variable(dot + 1))
                        return dot + 1;
        return name;
}

static void terraform_variables(
        const struct cluster *c, const struct platform *row, struct problems *p)
{
        const struct provider_terraform *t = &c->provider.terraform;
        const struct tree *at = tree_get(t->ssh.src, "variables");
        for (size_t i = 0; i < t->variables.n; i++) {
                const char *name = t->variables.v[i].key, *value = t->variables.v[i].value;
                const struct platform_variable *v = platform_variable(row, pool_part(c, name));
                const char *near = nearest_variable(row, name), *why;
                if (!v)
                        problem_add_key(p, tree_get(at, name),
                                near ? arena_printf(p->arena, "did you mean %s?", near)
                                     : "docs/terraform.md lists the variables of each platform",
                                "the platform %s has no variable \"%s\"", row->name, name);
                else if (value && (why = value_fault(v, value)))
                        problem_add(p, tree_get(at, name), NULL, NULL,
                                "the variable %s %s, got \"%s\"", name, why, value);
        }
}

/* A variable that slipway itself needs, because it is part of other values. */
static void terraform_needs(const struct cluster *c, const char *name, const char *example,
        const char *what, struct problems *p)
{
        bool all = true;
        for (size_t i = 0; i < c->pools.n; i++) {
                const char *value = terraform_pool_variable(c, &c->pools.v[i], name);
                all = all && value && *value;
        }
        if (!all)
                rule_error(p, c, "provider.terraform.variables",
                        arena_printf(
                                p->arena, "set it, such as variables: {%s: %s}", name, example),
                        "the variable %s is not set: %s", name, what);
}

static void terraform_shapes(
        const struct cluster *c, const struct platform *row, struct problems *p)
{
        for (size_t i = 0; i < c->pools.n; i++) {
                const struct pool *pool = &c->pools.v[i];
                bool shaped = pool->machine.cpus && pool->machine.memory;
                if (!(row->has & PLATFORM_SHAPES) && pool->machine.src)
                        problem_add_key(p, pool->machine.src,
                                "set the size by its name: provider.terraform.variables.size",
                                "machine has no effect on the platform %s", row->name);
                else if (!(row->has & PLATFORM_SIZES) && !shaped)
                        problem_add(p, pool->src, "machine",
                                "set it, such as machine: {cpus: 4, memory: 8GiB}",
                                "the platform %s has no named sizes, so a pool needs machine.cpus and machine.memory",
                                row->name);
                rule_user_data(pool, c->provider.terraform.user_data, p);
        }
}

void rules_terraform(struct cluster *c, struct problems *p)
{
        const struct provider_terraform *t = &c->provider.terraform;
        const struct platform *row = platform_row((enum platform_kind)t->platform);
        if (rule_spoiled(p, "provider.terraform.platform"))
                return;
        terraform_variables(c, row, p);
        terraform_needs(c, "image", "debian-12", "machines are made from an image", p);
        if (row->has & PLATFORM_SIZES)
                terraform_needs(c, "size", "m1.large", "machines have a size", p);
        if (row->has & PLATFORM_ZONED)
                terraform_needs(
                        c, "zones", "\"a, b\"", "on this platform every machine is in a zone", p);
        terraform_shapes(c, row, p);
        if (row->has & PLATFORM_KEYS && !c->os.authorized_keys.n &&
                !rule_spoiled(p, "os.authorizedKeys"))
                rule_error(p, c, "os.authorizedKeys",
                        "set the public key that logs in, such as authorizedKeys: [\"ssh-ed25519 AAAA… me\"]",
                        "%s makes no machine without an ssh key", row->label);
        else if (!c->os.authorized_keys.n && !terraform_variable(c, "key_pair") &&
                 !rule_spoiled(p, "os.authorizedKeys"))
                rule_warn(p, c, "os.authorizedKeys",
                        "set the public key that logs in, such as authorizedKeys: [\"ssh-ed25519 AAAA… me\"]",
                        "the machines get no ssh key, so only a key that the image has can log in");
        if (c->api.load_balancer && tree_get(t->ssh.src, "loadBalancer") && t->load_balancer)
                rule_error(p, c, "provider.terraform.loadBalancer",
                        "leave it out, or leave api.loadBalancer out",
                        "the exported files have no load balancer if api.loadBalancer names another one");
}
