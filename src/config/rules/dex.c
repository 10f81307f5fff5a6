/* The identity provider in the cluster, and what of auth.oidc is derived from it. */
#include "config/dex.h"
#include "config/rules/rules.h"

#define DERIVED "leave it out: it is derived from services.dex"

/* ---- auth.oidc ---- */

/* Without the final slash: https://dex.example.net and https://dex.example.net/ are one provider to
 * people, if not to OIDC. */
static size_t issuer_length(const char *s)
{
        size_t n = strlen(s);
        while (n && s[n - 1] == '/')
                n--;
        return n;
}

static const char *dex_url(const struct cluster *c)
{
        const struct dex *d = &c->services.dex;
        struct ip ip;
        char text[IP_TEXT + 2];
        const char *host = ip_parse(d->host, &ip) ? ip_host(&ip, text) : d->host;
        return d->port && d->port != 443 ? arena_printf(c->arena, "https://%s:%ld", host, d->port)
                                         : arena_printf(c->arena, "https://%s", host);
}

static void dex_issuer(struct cluster *c, struct problems *p)
{
        struct oidc *o = &c->auth.oidc;
        const char *url = dex_url(c);
        if (!o->issuer && !rule_spoiled(p, "auth.oidc.issuer"))
                o->issuer = url;
        else if (o->issuer &&
                 (issuer_length(o->issuer) < strlen(url) || strncmp(o->issuer, url, strlen(url)) ||
                         !strchr("/", o->issuer[strlen(url)])))
                rule_error(p, c, "auth.oidc.issuer",
                        "leave the issuer out: it is derived from services.dex",
                        "the issuer is %s, but services.dex is %s", o->issuer, url);
}

static bool lists(const struct strings *s, const char *word)
{
        for (size_t i = 0; i < s->n; i++)
                if (s->v[i] && streq(s->v[i], word))
                        return true;
        return false;
}

/* The provider's subjects are no names that anybody knows, but e-mail addresses are; and without a
 * prefix a group of a directory could be one of Kubernetes' own. */
static void dex_oidc(struct cluster *c, struct problems *p)
{
        struct oidc *o = &c->auth.oidc;
        dex_issuer(c, p);
        if (!o->client_id)
                o->client_id = "kubernetes";
        if (!rule_find(c, "auth.oidc.usernameClaim"))
                o->username_claim = "email";
        if (!rule_find(c, "auth.oidc.usernamePrefix"))
                o->username_prefix = "oidc:";
        if (!rule_find(c, "auth.oidc.groupsPrefix"))
                o->groups_prefix = "oidc:";
        if (o->ca_file)
                rule_error(p, c, "auth.oidc.caFile", DERIVED,
                        "the certificate of services.dex is issued by the cluster's own CA");
        if (o->signing_algs.n && !lists(&o->signing_algs, "RS256"))
                rule_error(p, c, "auth.oidc.signingAlgs", "add RS256, or leave it out",
                        "services.dex signs with RS256, which is not listed");
}

/* ---- connectors, clients, configuration ---- */

static const char *scalar_of(const struct tree *map, const char *key)
{
        const struct tree *t = tree_get(map, key);
        return t && t->kind == TREE_SCALAR && *t->text ? t->text : NULL;
}

static void dex_field(const struct tree *at, void *arg)
{
        struct problems *p = arg;
        const struct dex_file *row = dex_secret_of(at->key);
        if (row && at->kind == TREE_SCALAR) {
                problem_hide(p, at);
                problem_add(p, at, NULL,
                        arena_printf(p->arena,
                                "write it to a file (mode 0600), and name it: %s: ./%s", row->key,
                                row->field),
                        "a secret must not be in the file itself");
        } else if (at->kind == TREE_SCALAR && at->text[0] == '$' && at->text[1] &&
                   strspn(at->text + 1, "{ABCDEFGHIJKLMNOPQRSTUVWXYZ_") >= 2)
                problem_warn(p, at, NULL,
                        "write the value; a secret goes into a file, such as clientSecretFile",
                        "Dex gets this as it is: it replaces no variables of an environment here");
}

/* Maps with these fields, and no `id` twice. */
static void dex_list(const struct cluster *c, const char *path, const struct tree *list,
        const char *const *fields, struct problems *p)
{
        if (!list || list->kind == TREE_NULL)
                return;
        if (list->kind != TREE_LIST) {
                rule_error(p, c, path, "write a list, as in Dex's own configuration",
                        "this is not a list");
                return;
        }
        tree_each (one, list) {
                for (const char *const *f = fields; *f; f++)
                        if (!scalar_of(one, *f))
                                problem_add(p, one, NULL, "write it as in Dex's own configuration",
                                        "%s is missing", *f);
                const char *id = scalar_of(one, "id");
                for (const struct tree *o = list->first; id && o != one; o = o->next)
                        if (scalar_of(o, "id") && streq(scalar_of(o, "id"), id))
                                problem_add(p, one, "id", "give it another id",
                                        "the id \"%s\" is already used %s", id,
                                        rule_where(p, o, one));
        }
        dex_each(list, dex_field, p);
}

static void dex_clients(const struct cluster *c, struct problems *p)
{
        static const char *const fields[] = { "id", "name", NULL };
        const struct tree *list = c->services.dex.clients;
        const char *own = c->auth.oidc.client_id;
        dex_list(c, "services.dex.clients", list, fields, p);
        tree_each (one, list) {
                const char *id = scalar_of(one, "id");
                if (id && own && streq(id, own))
                        problem_add(p, one, "id",
                                "leave it out, or set auth.oidc.clientID to another name",
                                "the client %s is kubectl's, and slipway adds it", id);
        }
}

static void dex_people(const struct cluster *c, struct problems *p)
{
        static const char *const fields[] = { "email", "hash", "userID", NULL };
        const struct dex *d = &c->services.dex;
        tree_each (one, d->passwords) {
                for (const char *const *f = fields; *f; f++)
                        if (!scalar_of(one, *f)) {
                                rule_error(p, c, "services.dex.passwordsFile",
                                        "each entry needs email, hash (htpasswd -nBC 10 NAME prints one) and userID",
                                        "entry %u of %s has no %s", one->index + 1,
                                        d->passwords_file, *f);
                                return;
                        }
        }
}

static const struct {
        const char *key, *hint;
} dex_own[] = {
        { "issuer", "set services.dex.host and port, or auth.oidc.issuer for a path behind them" },
        { "storage", "leave it out: Dex keeps its state in the Kubernetes API" },
        { "web", "leave it out: slipway sets the address and the certificate" },
        { "telemetry", "leave it out: Dex's health is checked there" },
        { "connectors", "use services.dex.connectors" },
        { "staticClients", "use services.dex.clients" },
        { "staticPasswords", "use services.dex.passwordsFile" },
        { "enablePasswordDB", "use services.dex.passwordsFile" },
};

static void dex_config(const struct cluster *c, struct problems *p)
{
        const struct tree *t = c->services.dex.config;
        if (t && t->kind != TREE_MAP && t->kind != TREE_NULL)
                rule_error(p, c, "services.dex.config", "write fields of Dex's own configuration",
                        "this is not a map");
        for (size_t i = 0; i < ARRAY_SIZE(dex_own); i++)
                if (tree_get(t, dex_own[i].key))
                        problem_add(p, t, dex_own[i].key, dex_own[i].hint,
                                "slipway sets this field of Dex's configuration");
        dex_each(t, dex_field, p);
}

/* ---- where it is reached ---- */

static void dex_port(const struct cluster *c, struct problems *p)
{
        const struct dex *d = &c->services.dex;
        static const char *const path = "services.dex.port", *const hint = "use 443 or 5556";
        bool node_port = d->port >= 30000 && d->port <= 32767;
        if (rule_spoiled(p, path))
                return;
        if (d->expose == DEX_HOST_PORT) {
                rule_port(c, path, d->port, hint, p);
                if (d->port == c->api.port || d->port == c->api.local_port)
                        rule_error(p, c, path, hint, "port %ld is used by the API", d->port);
        } else if (d->expose == DEX_NODE_PORT && !node_port) {
                rule_error(p, c, path,
                        "set services.dex.port to a port in 30000–32767, such as 32000",
                        "a node port is in 30000–32767, got %ld", d->port);
        }
}

static void dex_namespace(const struct cluster *c, struct problems *p)
{
        const struct services *s = &c->services;
        static const char *const hint = "choose another namespace";
        for (size_t i = 0; i < s->charts.n; i++)
                if (s->charts.v[i].namespace && streq(s->charts.v[i].namespace, DEX_NAMESPACE))
                        problem_add(p, s->charts.v[i].src, "namespace", hint,
                                "%s is the namespace of services.dex, and is deleted with it",
                                DEX_NAMESPACE);
        if (lists(&s->namespaces, DEX_NAMESPACE))
                rule_error(p, c, "services.namespaces", hint,
                        "%s is the namespace of services.dex, and is deleted with it",
                        DEX_NAMESPACE);
}

static bool dex_any(const struct tree *list)
{
        return list && list->kind == TREE_LIST && list->count;
}

void rules_dex(struct cluster *c, struct problems *p)
{
        static const char *const fields[] = { "type", "id", "name", NULL };
        const struct dex *d = &c->services.dex;
        if (!d->host) {
                if (d->src && !rule_spoiled(p, "services.dex"))
                        problem_add(p, d->src, "host",
                                "set services.dex.host, such as dex.example.net",
                                "the identity provider needs a DNS name");
                return;
        }
        dex_oidc(c, p);
        dex_list(c, "services.dex.connectors", d->connectors, fields, p);
        dex_clients(c, p);
        dex_people(c, p);
        dex_config(c, p);
        dex_port(c, p);
        dex_namespace(c, p);
        if (!dex_any(d->connectors) && !d->passwords_file && !rule_spoiled(p, "services.dex"))
                problem_add(p, d->src, NULL,
                        "add services.dex.connectors (LDAP, GitHub, OIDC …), or services.dex.passwordsFile",
                        "nobody could log in: the identity provider has neither connectors nor passwords");
}
