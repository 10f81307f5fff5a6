/* Who gets in, with what keys: users, OIDC and dex, certificates, encryption. */
#include "config/rules.h"

static void user_name(const struct user *u, struct problems *p)
{
        if (!u->name)
                return;
        if (has_prefix(u->name, "system:"))
                problem_add(p, u->src, "name", "use a name of your own; roles are bound to it with a RoleBinding",
                        "names that begin with system: belong to Kubernetes, got \"%s\"", u->name);
        else if (streq(u->name, "kubernetes-admin") || streq(u->name, "kubernetes-super-admin"))
                problem_add(p, u->src, "name", "use another name, with admin: true if it may do everything",
                        "%s is the cluster's own administrator, in admin.conf", u->name);
        else if (has_prefix(u->name, "slipway:"))
                problem_add(p, u->src, "name", "use another name", "names that begin with slipway: belong to slipway's own clients, got \"%s\"", u->name);
}

static void user_groups(const struct user *u, struct problems *p)
{
        const struct tree *list = tree_get(u->src, "groups");
        for (size_t i = 0; i < u->groups.n; i++) {
                const char *g = u->groups.v[i];
                if (g && streq(g, "system:masters"))
                        problem_add(p, rule_item(list, i), NULL, "use admin: true, or the group kubeadm:cluster-admins: it can do the same, and be taken away",
                                "a certificate in system:masters passes every check and cannot be taken back before it expires");
                else if (g && has_prefix(g, "system:"))
                        problem_add(p, rule_item(list, i), NULL, "use a group of your own, bound to a role with a RoleBinding",
                                "groups that begin with system: belong to Kubernetes, got \"%s\"", g);
        }
        rule_duplicates(p, list, &u->groups, "group");
}

static void users(const struct cluster *c, struct problems *p)
{
        for (size_t i = 0; i < c->auth.users.n; i++) {
                const struct user *u = &c->auth.users.v[i];
                user_name(u, p);
                user_groups(u, p);
                if (u->lifetime && c->certificates.ca_lifetime && u->lifetime > c->certificates.ca_lifetime)
                        problem_add(p, u->src, "lifetime", "use a shorter one",
                                "the certificate would outlive the authority that signs it (certificates.caLifetime)");
        }
}

/* Without the final slash: https://dex.example.net and https://dex.example.net/ are one provider to people, if not to OIDC. */
static size_t issuer_length(const char *s)
{
        size_t n = strlen(s);
        while (n && s[n - 1] == '/')
                n--;
        return n;
}

/* The identity provider in the cluster is the OIDC issuer; what is written under auth.oidc must agree with it. */
static void dex(struct cluster *c, struct problems *p)
{
        const struct dex *d = &c->services.dex;
        struct oidc *o = &c->auth.oidc;
        if (!d->host) {
                if (d->src && !rule_spoiled(p, "services.dex"))
                        problem_add(p, d->src, "host", "set services.dex.host, such as dex.example.net",
                                "the identity provider needs a name that people reach it by");
                return;
        }
        struct ip ip;
        char text[IP_TEXT + 2];
        const char *host = ip_parse(d->host, &ip) ? ip_host(&ip, text) : d->host;
        const char *url = d->port && d->port != 443 ? arena_printf(c->arena, "https://%s:%ld", host, d->port) : arena_printf(c->arena, "https://%s", host);
        if (!o->issuer && !rule_spoiled(p, "auth.oidc.issuer"))
                o->issuer = url;
        else if (o->issuer && (issuer_length(o->issuer) < strlen(url) || strncmp(o->issuer, url, strlen(url)) || !strchr("/", o->issuer[strlen(url)])))
                rule_error(p, c, "auth.oidc.issuer", "leave the issuer out: it follows from services.dex", "the issuer is %s, and services.dex is %s",
                        o->issuer, url);
        if (!o->client_id)
                o->client_id = "kubernetes";
}

static void oidc(const struct cluster *c, struct problems *p)
{
        static const char *const algs[] = { "RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512" };
        const struct oidc *o = &c->auth.oidc;
        if (!o->issuer) {
                if (o->src && !rule_spoiled(p, "auth.oidc"))
                        problem_add(p, o->src, "issuer", "set auth.oidc.issuer, such as https://login.example.net", "OIDC needs the address of its provider");
                return;
        }
        if (has_prefix(o->issuer, "http:"))
                rule_error(p, c, "auth.oidc.issuer", "serve it with TLS, and give its authority as auth.oidc.caFile if nobody else knows it",
                        "the API server takes only issuers with https, got %s", o->issuer);
        else if (strpbrk(o->issuer, "?#"))
                rule_error(p, c, "auth.oidc.issuer", "leave out everything from ? or #", "an issuer has neither query nor fragment, got %s", o->issuer);
        if (o->username_prefix && has_prefix(o->username_prefix, "system:"))
                rule_error(p, c, "auth.oidc.usernamePrefix", "use a prefix of your own, such as \"oidc:\"",
                        "the prefix would let the provider name Kubernetes' own users");
        if (o->groups_prefix && has_prefix(o->groups_prefix, "system:"))
                rule_error(p, c, "auth.oidc.groupsPrefix", "use a prefix of your own, such as \"oidc:\"",
                        "the prefix would let the provider name Kubernetes' own groups");
        for (size_t i = 0; i < o->required_claims.n; i++)
                if (strchr(o->required_claims.v[i].value, ','))
                        rule_error(p, c, "auth.oidc.requiredClaims", "one claim a line, without commas",
                                "the API server reads a comma as the beginning of another claim, got %s", o->required_claims.v[i].value);
        for (size_t i = 0; i < o->signing_algs.n; i++) {
                bool known = false;
                for (size_t k = 0; o->signing_algs.v[i] && k < ARRAY_SIZE(algs); k++)
                        known |= streq(o->signing_algs.v[i], algs[k]);
                if (!known && o->signing_algs.v[i])
                        problem_add(p, rule_item(rule_find(c, "auth.oidc.signingAlgs"), i), NULL,
                                "use RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384 or PS512", "the API server knows no signature \"%s\"",
                                o->signing_algs.v[i]);
        }
}

static void own_ca(const struct cluster *c, const char *path, const struct own_ca *ca, struct problems *p)
{
        if (ca->certificate && !ca->key)
                rule_error(p, c, path, "give its key too: slipway signs with it", "there is a certificate and no key");
        else if (ca->key && !ca->certificate)
                rule_error(p, c, path, "give its certificate too", "there is a key and no certificate");
}

static void certificates(const struct cluster *c, struct problems *p)
{
        const struct certificates *k = &c->certificates;
        if (k->lifetime && k->ca_lifetime && k->lifetime > k->ca_lifetime)
                rule_error(p, c, rule_find(c, "certificates.lifetime") ? "certificates.lifetime" : "certificates.caLifetime",
                        "use a caLifetime of several lifetimes",
                        "certificates would outlive the authority that signs them (lifetime is longer than caLifetime)");
        else if (k->ca_lifetime && k->ca_lifetime < 3600)
                rule_error(p, c, "certificates.caLifetime", "use years, such as 3650d",
                        "an authority that lives less than an hour expires before the cluster is up");
        own_ca(c, "certificates.ca", &k->ca, p);
        own_ca(c, "certificates.etcdCA", &k->etcd_ca, p);
        own_ca(c, "certificates.frontProxyCA", &k->front_proxy_ca, p);
}

static void encryption(const struct cluster *c, struct problems *p)
{
        const struct encryption *e = &c->encryption;
        if (e->provider == ENCRYPTION_AESGCM)
                rule_warn(p, c, "encryption.provider", "use secretbox",
                        "aesgcm is safe only while its key is changed every 200,000 writes, which nobody does by hand");
        if (e->provider == ENCRYPTION_NONE && e->src && e->src->kind == TREE_MAP && tree_get(e->src, "resources"))
                rule_error(p, c, "encryption.resources", "set encryption.provider: secretbox", "nothing is encrypted: the provider is none");
        rule_duplicates(p, rule_find(c, "encryption.resources"), &e->resources, "resource");
}

void rules_auth(struct cluster *c, struct problems *p)
{
        users(c, p);
        dex(c, p);
        oidc(c, p);
        certificates(c, p);
        encryption(c, p);
}
