/* auth.bindings: whom each gives rights, and whether anybody can have that name. */
#include "config/rules/rules.h"

static const char *binding_name(const struct binding *b) { return b->group ? b->group : b->user; }

static bool binding_text_same(const char *a, const char *b)
{
        return a && b ? streq(a, b) : !a && !b;
}

static bool binding_same(const struct binding *a, const struct binding *b)
{
        return binding_text_same(a->group, b->group) && binding_text_same(a->user, b->user) &&
               binding_text_same(a->role, b->role) && binding_text_same(a->space, b->space);
}

static bool binding_subject(const struct binding *b, struct problems *p)
{
        const char *field = b->group ? "group" : "user", *name = binding_name(b);
        if (b->group && b->user)
                problem_add(p, b->src, "user", "write two bindings",
                        "a binding is for a group or for a user, not for both");
        else if (!name && !tree_get(b->src, "group") && !tree_get(b->src, "user"))
                problem_add(p, b->src, NULL, "set group or user",
                        "the binding does not say who gets the rights");
        else if (name && (has_prefix(name, "system:") || has_prefix(name, "slipway:")))
                problem_add(p, b->src, field,
                        "name a group or a user of people; Kubernetes' own get their rights from its own roles",
                        "names that begin with system: or slipway: are not of people, got \"%s\"",
                        name);
        else
                return name != NULL;
        return false;
}

static void binding_twice(const struct bindings *all, size_t at, struct problems *p)
{
        for (size_t i = 0; i < at; i++)
                if (binding_same(&all->v[i], &all->v[at])) {
                        problem_add(p, all->v[at].src, NULL, "remove one of them",
                                "the same binding is written %s too",
                                rule_where(p, all->v[i].src, all->v[at].src));
                        return;
                }
}

/* ---- can anybody have that name? ---- */

static bool binding_of_users(const struct cluster *c, const struct binding *b)
{
        for (size_t i = 0; i < c->auth.users.n; i++) {
                const struct user *u = &c->auth.users.v[i];
                if (b->user && u->name && streq(u->name, b->user))
                        return true;
                for (size_t k = 0; b->group && k < u->groups.n; k++)
                        if (u->groups.v[k] && streq(u->groups.v[k], b->group))
                                return true;
        }
        return b->group && streq(b->group, "kubeadm:cluster-admins");
}

static void binding_reach(const struct cluster *c, const struct binding *b, struct problems *p)
{
        const struct oidc *o = &c->auth.oidc;
        const char *word = b->group ? "group" : "user", *name = binding_name(b),
                   *prefix = !o->issuer ? NULL
                             : b->user  ? oidc_username_prefix(c->arena, o)
                                        : o->groups_prefix;
        if (binding_of_users(c, b) || rule_spoiled(p, "auth.oidc") || rule_spoiled(p, "auth.users"))
                return;
        if (!o->issuer)
                problem_warn(p, b->src, word,
                        b->group ? "add the group to a user of auth.users, or set auth.oidc"
                                 : "add the user to auth.users, or set auth.oidc",
                        "auth.users has no %s %s, and auth.oidc is not set: no certificate that slipway issues has this name",
                        word, name);
        else if (prefix && *prefix && !has_prefix(name, prefix))
                problem_warn(p, b->src, word,
                        arena_printf(c->arena, "write \"%s%s\" for the provider's %s", prefix, name,
                                word),
                        "auth.users has no %s %s, and %ss of the provider begin with %s", word,
                        name, word, prefix);
}

void rules_bindings(struct cluster *c, struct problems *p)
{
        const struct bindings *all = &c->auth.bindings;
        for (size_t i = 0; i < all->n; i++) {
                const char *path = arena_printf(c->arena, "auth.bindings[%zu]", i);
                if (!binding_subject(&all->v[i], p) || rule_spoiled(p, path))
                        continue;
                binding_twice(all, i, p);
                binding_reach(c, &all->v[i], p);
        }
}
