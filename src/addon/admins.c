/* Rights of people, bound by name: a binding can be removed, a group in a certificate cannot. */
#include <jansson.h>

#include "addon/addon.h"

#define RBAC_GROUP "rbac.authorization.k8s.io"

static json_t *rights_subject(const char *kind, const char *name)
{
        return json_pack("{s:s, s:s, s:s}", "apiGroup", RBAC_GROUP, "kind", kind, "name", name);
}

/* In one namespace if `space` is not NULL. Takes the subjects. */
static json_t *rights_binding(
        const char *name, const char *space, const char *role, json_t *subjects)
{
        json_t *binding = json_pack("{s:s, s:s, s:{s:s}, s:{s:s, s:s, s:s}, s:o}", "apiVersion",
                RBAC_GROUP "/v1", "kind", space ? "RoleBinding" : "ClusterRoleBinding", "metadata",
                "name", name, "roleRef", "apiGroup", RBAC_GROUP, "kind", "ClusterRole", "name",
                role, "subjects", subjects);
        if (space)
                json_object_set_new(
                        json_object_get(binding, "metadata"), "namespace", json_string(space));
        return binding;
}

/* Without administrators the binding is applied empty, so that the last one is removed too. */
void addon_admins(const struct cluster *c, struct str *out)
{
        json_t *subjects = json_array();
        for (size_t i = 0; i < c->auth.users.n; i++)
                if (c->auth.users.v[i].admin)
                        json_array_append_new(
                                subjects, rights_subject("User", c->auth.users.v[i].name));
        json_t *binding = rights_binding(ADMINS_BINDING, NULL, "cluster-admin", subjects);
        char *text CLEANUP(free_p) = json_dumps(binding, 0);
        json_decref(binding);
        str_add(out, text ? text : "");
}

/* The binding of that role and namespace among those there are, or a new one. */
static json_t *rights_of(json_t *all, const struct binding *b)
{
        char *name CLEANUP(free_p) = xasprintf(BINDINGS_PREFIX "%s", b->role);
        json_t *binding;
        size_t i;
        json_array_foreach(all, i, binding)
        {
                const json_t *m = json_object_get(binding, "metadata");
                const char *space = json_string_value(json_object_get(m, "namespace"));
                if (streq(json_string_value(json_object_get(m, "name")), name) &&
                        (space && b->space ? streq(space, b->space) : space == b->space))
                        return binding;
        }
        binding = rights_binding(name, b->space, b->role, json_array());
        json_object_set_new(json_object_get(binding, "metadata"), "labels",
                json_pack("{s:s}", BINDINGS_LABEL, BINDINGS_VALUE));
        json_array_append_new(all, binding);
        return binding;
}

json_t *addon_bindings(const struct cluster *c)
{
        json_t *all = json_array();
        for (size_t i = 0; i < c->auth.bindings.n; i++) {
                const struct binding *b = &c->auth.bindings.v[i];
                json_array_append_new(json_object_get(rights_of(all, b), "subjects"),
                        b->group ? rights_subject("Group", b->group)
                                 : rights_subject("User", b->user));
        }
        return all;
}
