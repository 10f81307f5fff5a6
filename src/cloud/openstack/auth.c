#include "cloud/openstack/auth.h"

/* {"id"} or {"name", "domain"}; NULL when it is not said. */
static json_t *os_named(const char *id, const char *name, const char *domain_id, const char *domain)
{
        if (id)
                return json_pack("{s:s}", "id", id);
        if (!name)
                return NULL;
        return domain_id ? json_pack("{s:s, s:{s:s}}", "name", name, "domain", "id", domain_id)
                         : json_pack("{s:s, s:{s:s}}", "name", name, "domain", "name",
                                   domain ? domain : "Default");
}

static json_t *os_scope(const struct os_cloud *c)
{
        json_t *p = os_named(
                c->project_id, c->project_name, c->project_domain_id, c->project_domain_name);
        if (p)
                return json_pack("{s:o}", "project", p);
        if (c->domain_id || c->domain_name)
                return json_pack("{s:{s:s}}", "domain", c->domain_id ? "id" : "name",
                        c->domain_id ? c->domain_id : c->domain_name);
        return c->system_scope ? json_pack("{s:{s:b}}", "system", "all", 1) : NULL;
}

static json_t *os_identity(const struct os_cloud *c)
{
        json_t *user = os_named(c->user_id, c->username, c->user_domain_id, c->user_domain_name);
        json_t *j = NULL;
        switch (c->auth) {
        case OS_PASSWORD:
                json_object_set_new(user, "password", json_string(c->password));
                return json_pack(
                        "{s:[s], s:{s:o}}", "methods", "password", "password", "user", user);
        case OS_TOKEN:
                j = json_pack("{s:[s], s:{s:s}}", "methods", "token", "token", "id", c->token);
                break;
        case OS_APPLICATION_CREDENTIAL:
                j = json_pack("{s:s}", "secret", c->credential_secret);
                json_object_set_new(j, c->credential_id ? "id" : "name",
                        json_string(c->credential_id ? c->credential_id : c->credential_name));
                if (!c->credential_id && user)
                        json_object_set(j, "user", user);
                j = json_pack("{s:[s], s:o}", "methods", "application_credential",
                        "application_credential", j);
        }
        json_decref(user);
        return j;
}

json_t *os_token_body(const struct os_cloud *c)
{
        json_t *auth = json_pack("{s:o}", "identity", os_identity(c));
        json_t *scope = c->auth == OS_APPLICATION_CREDENTIAL ? NULL : os_scope(c);
        if (scope)
                json_object_set_new(auth, "scope", scope);
        return json_pack("{s:o}", "auth", auth);
}
