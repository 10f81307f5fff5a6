/* Authentication and keys: users, OIDC, certificates, encryption. */
#include "config/rules/rules.h"

static void user_name(const struct user *u, struct problems *p)
{
        if (!u->name)
                return;
        if (has_prefix(u->name, "system:"))
                problem_add(p, u->src, "name",
                        "choose another name, and bind roles to it with a RoleBinding",
                        "names that begin with system: are reserved for Kubernetes, got \"%s\"",
                        u->name);
        else if (streq(u->name, "kubernetes-admin") || streq(u->name, "kubernetes-super-admin"))
                problem_add(p, u->src, "name",
                        "use another name, with admin: true for an administrator",
                        "%s is the name of the cluster's own administrator (admin.conf)", u->name);
        else if (has_prefix(u->name, "slipway:"))
                problem_add(p, u->src, "name", "use another name",
                        "names that begin with slipway: are reserved for slipway's own clients, got \"%s\"",
                        u->name);
}

static void user_groups(const struct user *u, struct problems *p)
{
        const struct tree *list = tree_get(u->src, "groups");
        for (size_t i = 0; i < u->groups.n; i++) {
                const char *g = u->groups.v[i];
                if (g && streq(g, "system:masters"))
                        problem_add(p, rule_item(list, i), NULL,
                                "use admin: true, or the group kubeadm:cluster-admins, which has the same rights but can be revoked",
                                "a certificate of the group system:masters bypasses all authorization and cannot be revoked before it expires");
                else if (g && has_prefix(g, "system:"))
                        problem_add(p, rule_item(list, i), NULL,
                                "choose another group, and bind a role to it with a RoleBinding",
                                "groups that begin with system: are reserved for Kubernetes, got \"%s\"",
                                g);
        }
        rule_duplicates(p, list, &u->groups, "group");
}

static void auth_users(const struct cluster *c, struct problems *p)
{
        for (size_t i = 0; i < c->auth.users.n; i++) {
                const struct user *u = &c->auth.users.v[i];
                user_name(u, p);
                user_groups(u, p);
                if (u->lifetime && c->certificates.ca_lifetime &&
                        u->lifetime > c->certificates.ca_lifetime)
                        problem_add(p, u->src, "lifetime", "use a shorter one",
                                "the certificate would be valid longer than its CA (certificates.caLifetime)");
        }
}

static void auth_oidc(const struct cluster *c, struct problems *p)
{
        static const char *const algs[] = { "RS256", "RS384", "RS512", "ES256", "ES384", "ES512",
                "PS256", "PS384", "PS512" };
        const struct oidc *o = &c->auth.oidc;
        if (!o->issuer) {
                if (o->src && !rule_spoiled(p, "auth.oidc"))
                        problem_add(p, o->src, "issuer",
                                "set auth.oidc.issuer, such as https://login.example.net",
                                "OIDC needs the URL of the provider");
                return;
        }
        if (has_prefix(o->issuer, "http:"))
                rule_error(p, c, "auth.oidc.issuer",
                        "serve it with TLS, and set auth.oidc.caFile if its CA is not publicly trusted",
                        "the API server accepts only https issuers, got %s", o->issuer);
        else if (strpbrk(o->issuer, "?#"))
                rule_error(p, c, "auth.oidc.issuer", "leave out everything from ? or #",
                        "an issuer URL has neither query nor fragment, got %s", o->issuer);
        if (o->username_prefix && has_prefix(o->username_prefix, "system:"))
                rule_error(p, c, "auth.oidc.usernamePrefix",
                        "use another prefix, such as \"oidc:\"",
                        "with this prefix the provider could impersonate Kubernetes' own users");
        if (o->groups_prefix && has_prefix(o->groups_prefix, "system:"))
                rule_error(p, c, "auth.oidc.groupsPrefix", "use another prefix, such as \"oidc:\"",
                        "with this prefix the provider could impersonate Kubernetes' own groups");
        for (size_t i = 0; i < o->required_claims.n; i++)
                if (strchr(o->required_claims.v[i].value, ','))
                        rule_error(p, c, "auth.oidc.requiredClaims",
                                "write one claim per line, without commas",
                                "the API server treats a comma as the start of another claim, got %s",
                                o->required_claims.v[i].value);
        for (size_t i = 0; i < o->scopes.n; i++)
                if (o->scopes.v[i] && strpbrk(o->scopes.v[i], " ,\"\\"))
                        problem_add(p, rule_item(rule_find(c, "auth.oidc.scopes"), i), NULL,
                                "write a list: [email, groups]", "a scope is one word, got \"%s\"",
                                o->scopes.v[i]);
        for (size_t i = 0; i < o->signing_algs.n; i++) {
                bool known = false;
                for (size_t k = 0; o->signing_algs.v[i] && k < ARRAY_SIZE(algs); k++)
                        known |= streq(o->signing_algs.v[i], algs[k]);
                if (!known && o->signing_algs.v[i])
                        problem_add(p, rule_item(rule_find(c, "auth.oidc.signingAlgs"), i), NULL,
                                "use RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384 or PS512",
                                "unknown signature algorithm \"%s\"", o->signing_algs.v[i]);
        }
}

static void own_ca(
        const struct cluster *c, const char *path, const struct own_ca *ca, struct problems *p)
{
        if (ca->certificate && !ca->key)
                rule_error(p, c, path, "set its key too: slipway signs with it",
                        "the certificate is set, but its key is not");
        else if (ca->key && !ca->certificate)
                rule_error(p, c, path, "set its certificate too",
                        "the key is set, but its certificate is not");
}

static void certificates(const struct cluster *c, struct problems *p)
{
        const struct certificates *k = &c->certificates;
        if (k->lifetime && k->ca_lifetime && k->lifetime > k->ca_lifetime)
                rule_error(p, c,
                        rule_find(c, "certificates.lifetime") ? "certificates.lifetime"
                                                              : "certificates.caLifetime",
                        "set caLifetime to several times the lifetime",
                        "certificates would be valid longer than their CA (lifetime is longer than caLifetime)");
        else if (k->ca_lifetime && k->ca_lifetime < 3600)
                rule_error(p, c, "certificates.caLifetime", "use years, such as 3650d",
                        "a CA that is valid for less than an hour could expire before the cluster is up");
        own_ca(c, "certificates.ca", &k->ca, p);
        own_ca(c, "certificates.etcdCA", &k->etcd_ca, p);
        own_ca(c, "certificates.frontProxyCA", &k->front_proxy_ca, p);
}

static void auth_encryption(const struct cluster *c, struct problems *p)
{
        const struct encryption *e = &c->encryption;
        if (e->provider == ENCRYPTION_AESGCM)
                rule_warn(p, c, "encryption.provider", "use secretbox",
                        "aesgcm is safe only if its key is rotated every 200,000 writes");
        if (e->provider == ENCRYPTION_NONE && e->src && e->src->kind == TREE_MAP &&
                tree_get(e->src, "resources"))
                rule_error(p, c, "encryption.resources", "set encryption.provider: secretbox",
                        "nothing is encrypted: the provider is none");
        rule_duplicates(p, rule_find(c, "encryption.resources"), &e->resources, "resource");
}

void rules_auth(struct cluster *c, struct problems *p)
{
        auth_users(c, p);
        rules_dex(c, p);
        auth_oidc(c, p);
        certificates(c, p);
        auth_encryption(c, p);
}
