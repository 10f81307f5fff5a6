/* services.dex: Dex on the control-plane nodes, with its state in the Kubernetes API. Its whole
 * configuration is in a Secret, because connectors have secrets in it. */
#include "addon/addon.h"
#include "base/sha256.h"
#include "config/dex.h"
#include "node/context.h"
#include "node/template.h"

#define TOKENS "1h" /* an ID token cannot be revoked, and kubelogin renews it */

/* ---- Dex's configuration ---- */

static json_t *dex_value(const struct dex *d, const struct tree *t);

static void dex_member(const struct dex *d, const struct tree *t, json_t *out)
{
        const struct dex_file *file = dex_file_of(t->key);
        const char *text = file ? dex_text(d, t) : NULL;
        struct str encoded CLEANUP(str_wipe_release) = { 0 };
        if (!text) {
                json_object_set_new_nocheck(out, t->key, dex_value(d, t));
                return;
        }
        if (!file->secret)
                str_add_base64(&encoded, text, strlen(text));
        json_put(out, file->field, file->secret ? text : str_text(&encoded));
}

/* With the texts of files in place of their names. */
static json_t *dex_value(const struct dex *d, const struct tree *t)
{
        if (t->kind < TREE_LIST)
                return json_from_tree(t);
        json_t *v = t->kind == TREE_MAP ? json_object() : json_array();
        tree_each (c, t) {
                if (t->kind == TREE_MAP)
                        dex_member(d, c, v);
                else
                        json_array_append_new(v, dex_value(d, c));
        }
        return v;
}

static json_t *addon_dex_list(const struct dex *d, const struct tree *list)
{
        return list && list->kind == TREE_LIST ? dex_value(d, list) : json_array();
}

/* A public client may return to any port of localhost; one with a secret only to those it names:
 * kubelogin's. */
static json_t *addon_dex_clients(const struct cluster *c)
{
        const struct oidc *o = &c->auth.oidc;
        json_t *list = addon_dex_list(&c->services.dex, c->services.dex.clients);
        json_t *own = json_pack("{s:s, s:s}", "id", o->client_id, "name", "kubectl");
        if (o->client_secret) {
                json_put(own, "secret", o->client_secret);
                json_object_set_new(own, "redirectURIs",
                        json_pack("[s, s]", "http://localhost:8000", "http://localhost:18000"));
        } else {
                json_object_set_new(own, "public", json_true());
        }
        json_array_insert_new(list, 0, own);
        return list;
}

static void addon_dex_config(const struct cluster *c, struct str *out)
{
        const struct dex *d = &c->services.dex;
        json_t *o = json_pack(
                "{s:s, s:{s:s, s:{s:b}}, s:{s:s, s:s, s:s}, s:{s:s}, s:{s:s}, s:{s:b}, s:o, s:o}",
                "issuer", c->auth.oidc.issuer, "storage", "type", "kubernetes", "config",
                "inCluster", 1, "web", "https", ":5556", "tlsCert", "/etc/dex/tls.crt", "tlsKey",
                "/etc/dex/tls.key", "telemetry", "http", ":5558", "expiry", "idTokens", TOKENS,
                "oauth2", "skipApprovalScreen", 1, "connectors", addon_dex_list(d, d->connectors),
                "staticClients", addon_dex_clients(c));
        if (d->config && d->config->kind == TREE_MAP) {
                json_t *over = json_from_tree(d->config);
                json_overlay(o, over);
                json_decref(over);
        }
        if (d->passwords) {
                json_object_set_new(o, "enablePasswordDB", json_true());
                json_object_set_new(o, "staticPasswords", json_from_tree(d->passwords));
        }
        char *text = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS);
        json_decref(o);
        str_add(out, text);
        explicit_bzero(text, strlen(text));
        free(text);
}

/* ---- its objects ---- */

/* As Dex calls them. */
static json_t *dex_resources(void)
{
        static const char *const kinds[][3] = {
                { "AuthCode", "authcodes", "authcode" },
                { "AuthRequest", "authrequests", "authrequest" },
                { "Connector", "connectors", "connector" },
                { "DeviceRequest", "devicerequests", "devicerequest" },
                { "DeviceToken", "devicetokens", "devicetoken" },
                { "OAuth2Client", "oauth2clients", "oauth2client" },
                { "OfflineSessions", "offlinesessionses", "offlinesessions" },
                { "Password", "passwords", "password" },
                { "RefreshToken", "refreshtokens", "refreshtoken" },
                { "SigningKey", "signingkeies", "signingkey" },
        };
        json_t *list = json_array();
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                char *name CLEANUP(free_p) = xasprintf("%s.dex.coreos.com", kinds[i][1]),
                           *lists CLEANUP(free_p) = xasprintf("%sList", kinds[i][0]);
                json_array_append_new(list,
                        json_pack("{s:s, s:s, s:s, s:s, s:s}", "name", name, "kind", kinds[i][0],
                                "listKind", lists, "plural", kinds[i][1], "singular", kinds[i][2]));
        }
        return list;
}

/* The API's Service. Older versions of Dex put brackets around every address, and Go has stopped
 * accepting those around IPv4: this form of it is valid there, and the same address. */
static char *dex_api_host(const struct cluster *c)
{
        struct ip ip;
        char text[IP_TEXT];
        if (!c->network.services.n || !cidr_nth(&c->network.services.v[0], 1, &ip) ||
                ip.family != 4)
                return NULL;
        return xasprintf("::ffff:%s", ip_format(&ip, text));
}

static void dex_exposed(const struct dex *d, json_t *v)
{
        static const char *const types[] = { [DEX_HOST_PORT] = "ClusterIP",
                [DEX_NODE_PORT] = "NodePort",
                [DEX_LOAD_BALANCER] = "LoadBalancer" };
        json_put(v, "serviceType", types[d->expose]);
        /* only a pod of the level privileged may have a port of its node */
        json_put(v, "podSecurity", d->expose == DEX_HOST_PORT ? "privileged" : "restricted");
        json_object_set_new(v, "port", json_integer(d->port));
        json_object_set_new(
                v, "hostPort", d->expose == DEX_HOST_PORT ? json_integer(d->port) : json_false());
        json_object_set_new(
                v, "nodePort", d->expose == DEX_NODE_PORT ? json_integer(d->port) : json_false());
}

void addon_dex(const struct cluster *c, const struct identity *id, struct str *out)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct catalogue catalogue;
        struct sha256 sum;
        char digest[SHA256_HEX];
        json_t *v = json_object();
        char *host CLEANUP(free_p) = dex_api_host(c);
        struct str config CLEANUP(str_wipe_release) = { 0 };
        const char *cert = id->dex.cert ? id->dex.cert : "", *key = id->dex.key ? id->dex.key : "";
        catalogue_for(&a, &c->kubernetes, &catalogue);
        addon_dex_config(c, &config);
        /* The key is in it: nobody can guess at passwords with it. */
        sha256_init(&sum);
        sha256_add(&sum, str_text(&config), config.len + 1);
        sha256_add(&sum, cert, strlen(cert) + 1);
        sha256_add(&sum, key, strlen(key) + 1);
        sha256_end(&sum, digest);
        digest[16] = 0;
        json_put(v, "digest", digest);
        json_put(v, "config", str_text(&config));
        json_put(v, "cert", cert);
        json_put(v, "key", key);
        json_put(v, "image", catalogue.images[IMG_DEX].name);
        json_put(v, "apiHost", host);
        json_object_set_new(v, "resources", dex_resources());
        dex_exposed(&c->services.dex, v);
        template_render("dex.yaml", v, out);
        json_decref(v);
}
