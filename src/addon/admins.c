/* Who may do everything, by name: a binding can be taken back, a group in a certificate cannot. Without any it stays, empty, so that the last one goes too. */
#include <jansson.h>

#include "addon/addon.h"

void addon_admins(const struct cluster *c, struct str *out)
{
        static const char group[] = "rbac.authorization.k8s.io";
        json_t *subjects = json_array();
        for (size_t i = 0; i < c->auth.users.n; i++)
                if (c->auth.users.v[i].admin)
                        json_array_append_new(subjects, json_pack("{s:s, s:s, s:s}", "apiGroup", group, "kind", "User", "name", c->auth.users.v[i].name));
        json_t *binding = json_pack("{s:s+, s:s, s:{s:s}, s:{s:s, s:s, s:s}, s:o}", "apiVersion", group, "/v1", "kind", "ClusterRoleBinding", "metadata",
                "name", ADMINS_BINDING, "roleRef", "apiGroup", group, "kind", "ClusterRole", "name", "cluster-admin", "subjects", subjects);
        char *text CLEANUP(free_p) = json_dumps(binding, 0);
        json_decref(binding);
        str_add(out, text ? text : "");
}
