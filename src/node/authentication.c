/* The API server's AuthenticationConfiguration: anonymous requests are allowed only for its health
 * endpoints and for cluster-info, which `kubeadm join` reads without credentials. The file excludes
 * the OIDC flags, so it has the OIDC settings too. */
#include "node/context.h"

static const char *const anonymous_paths[] = { "/livez", "/readyz", "/healthz",
        "/api/v1/namespaces/kube-public/configmaps/cluster-info" };

static bool apiserver_flag_given(const struct pairs *user, const char *name)
{
        for (size_t i = 0; i < user->n; i++)
                if (streq(flag_name(user->v[i].key), name))
                        return true;
        return false;
}

/* The file has no field for signing algorithms: with auth.oidc.signingAlgs there are flags instead,
 * and anonymous requests as in kubeadm. */
bool authentication_file(const struct context *x)
{
        const struct pairs *user = &x->cluster->components.apiserver.flags;
        return x->cluster->hardening == HARDENING_CIS &&
               !apiserver_flag_given(user, "anonymous-auth") &&
               !apiserver_flag_given(user, "authentication-config") &&
               !x->cluster->auth.oidc.signing_algs.n;
}

static json_t *authentication_anonymous(void)
{
        json_t *list = json_array();
        for (size_t i = 0; i < ARRAY_SIZE(anonymous_paths); i++)
                json_array_append_new(list, json_pack("{s:s}", "path", anonymous_paths[i]));
        return json_pack("{s:b, s:o}", "enabled", 1, "conditions", list);
}

static json_t *authentication_claim(const char *name, const char *prefix)
{
        return json_pack("{s:s, s:s}", "claim", name, "prefix", prefix ? prefix : "");
}

static json_t *authentication_jwt(const struct context *x, const struct oidc *o)
{
        const char *ca = identity_oidc_ca(x->in->identity, x->cluster);
        json_t *issuer = json_pack("{s:s, s:[s]}", "url", o->issuer, "audiences", o->client_id),
               *rules = json_array();
        json_t *mappings = json_pack("{s:o}", "username",
                authentication_claim(o->username_claim, oidc_username_prefix(x->arena, o)));
        if (ca)
                json_put(issuer, "certificateAuthority", ca);
        if (o->groups_claim && *o->groups_claim)
                json_object_set_new(mappings, "groups",
                        authentication_claim(o->groups_claim, o->groups_prefix));
        for (size_t i = 0; i < o->required_claims.n; i++)
                json_array_append_new(
                        rules, json_pack("{s:s, s:s}", "claim", o->required_claims.v[i].key,
                                       "requiredValue", o->required_claims.v[i].value));
        return json_pack("[{s:o, s:o, s:o}]", "issuer", issuer, "claimMappings", mappings,
                "claimValidationRules", rules);
}

void authentication_config(const struct context *x, struct str *out)
{
        const struct oidc *o = &x->cluster->auth.oidc;
        json_t *config = json_pack("{s:s, s:s, s:o}", "apiVersion", "apiserver.config.k8s.io/v1",
                "kind", "AuthenticationConfiguration", "anonymous", authentication_anonymous());
        if (o->issuer)
                json_object_set_new(config, "jwt", authentication_jwt(x, o));
        yaml_from_json(config, out);
        json_decref(config);
}
