/* token: bootstrap tokens, which are Secrets of a known form, through the API. */
#include <time.h>

#include "cluster/outsiders.h"
#include "cmd/reach.h"
#include "config/scalar.h"

#define SECRETS     "/api/v1/namespaces/kube-system/secrets"
#define TOKENS      SECRETS "?fieldSelector=type%3Dbootstrap.kubernetes.io%2Ftoken"
#define GROUP       "system:bootstrappers:kubeadm:default-node-token"
#define TTL_DEFAULT "24h"
#define TTL_MAX     (INT64_C(10) * 365 * 86400)

/* ---- create ---- */

static json_t *token_secret(const char *id, const char *secret, const char *expiration, const char *user)
{
        json_t *o = json_pack("{s:s, s:s, s:{s:s+, s:s}, s:s, s:{s:s, s:s, s:s, s:s, s:s, s:s, s:s}}", "apiVersion", "v1", "kind", "Secret", "metadata", "name",
                "bootstrap-token-", id, "namespace", "kube-system", "type", "bootstrap.kubernetes.io/token", "stringData", "token-id", id, "token-secret",
                secret, "expiration", expiration, "usage-bootstrap-authentication", "true", "usage-bootstrap-signing", "true", "auth-extra-groups", GROUP,
                "description", "made by slipway token create");
        if (user)
                json_object_set_new(json_object_get(o, "metadata"), "labels", json_pack("{s:s}", USER_LABEL, user));
        return o;
}

static void print_created(const struct reach *r, const struct options *o, const char *token, const char *expiration, const char *hash)
{
        const struct cluster *c = r->cluster;
        const char *host = cluster_endpoint_host(c);
        struct ip ip;
        bool v6 = host && ip_parse(host, &ip) && ip.family == 6;
        char *endpoint CLEANUP(free_p) = xasprintf(v6 ? "[%s]:%ld" : "%s:%ld", host ? host : "", cluster_endpoint_port(c));
        char *join CLEANUP(free_p) = xasprintf("kubeadm join %s --token %s --discovery-token-ca-cert-hash %s", endpoint, token, hash);
        if (!o->output || !streq(o->output, "json")) {
                printf("%s\n", join);
                return;
        }
        json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:s}", "token", token, "expires", expiration, "endpoint", endpoint, "caCertHash", hash, "join", join);
        char *text CLEANUP(free_p) = json_dumps(j, JSON_INDENT(2));
        printf("%s\n", text ? text : "{}");
        json_decref(j);
}

static int check_user(const struct cluster *c, const char *user, struct error *err)
{
        for (size_t i = 0; i < c->auth.users.n; i++)
                if (streq(c->auth.users.v[i].name, user))
                        return 0;
        error_set(err, ENOENT, EXIT_USAGE, "--user: there is no '%s' in auth.users", user);
        return error_hint(err, "add them to auth.users and run slipway up, or leave --user out");
}

static int create(struct reach *r, const struct options *o, struct error *err)
{
        const char *ttl = o->ttl ? o->ttl : TTL_DEFAULT;
        int64_t seconds;
        char id[7], secret[17], expiration[32];
        struct tm tm;
        if (!duration_parse(ttl, false, &seconds) || seconds <= 0 || seconds > TTL_MAX) {
                error_set(err, EINVAL, EXIT_USAGE, "--ttl: '%s' is not a time of at most ten years", ttl);
                return error_hint(err, "write it as 30m, 24h or 7d");
        }
        if (o->user && check_user(r->cluster, o->user, err) < 0)
                return -err->code;
        char *hash CLEANUP(free_p) = identity_ca_hash(&r->site.identity, err);
        if (!hash)
                return -err->code;
        time_t end = time(NULL) + seconds;
        strftime(expiration, sizeof(expiration), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&end, &tm));
        token_random(id, secret);
        json_t *object = token_secret(id, secret, expiration, o->user);
        char *body CLEANUP(free_p) = json_dumps(object, 0), *token CLEANUP(free_p) = xasprintf("%s.%s", id, secret);
        json_decref(object);
        int e = kube_do(r->site.kube, "POST", SECRETS, body, NULL, NULL, err);
        if (e < 0)
                return error_wrap(err, "making the token");
        print_created(r, o, token, expiration, hash);
        return EXIT_OK;
}

/* ---- list ---- */

/* A value of a Secret's data, which is base64; only what a token holds: short ASCII. */
static const char *decoded(const json_t *secret, const char *key, char out[256])
{
        static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const char *in = json_string_value(json_object_get(json_object_get(secret, "data"), key));
        unsigned bits = 0, value = 0;
        size_t n = 0;
        for (const char *p; in && *in && *in != '=' && (p = strchr(letters, *in)) && n < 255; in++) {
                value = value << 6 | (unsigned)(p - letters);
                bits += 6;
                if (bits >= 8) {
                        char c = (char)(value >> (bits -= 8) & 0xff);
                        out[n++] = c >= 0x20 && c < 0x7f ? c : '?';
                }
        }
        out[n] = 0;
        return out;
}

static const char *user_of(const json_t *secret)
{
        return json_string_value(json_object_get(json_object_get(json_object_get(secret, "metadata"), "labels"), USER_LABEL));
}

static json_t *tokens_json(const json_t *list)
{
        json_t *all = json_array(), *secret;
        char id[256], expires[256], description[256];
        size_t i;
        json_array_foreach(json_object_get(list, "items"), i, secret) json_array_append_new(
                all, json_pack("{s:s, s:s, s:s?, s:s}", "id", decoded(secret, "token-id", id), "expires", decoded(secret, "expiration", expires), "user",
                             user_of(secret), "description", decoded(secret, "description", description)));
        return all;
}

static int list_tokens(struct reach *r, const struct options *o, struct error *err)
{
        json_t *list = NULL, *t;
        size_t i;
        int e = kube_get(r->site.kube, TOKENS, &list, err);
        if (e < 0)
                return error_wrap(err, "listing the tokens");
        json_t *all = tokens_json(list);
        json_decref(list);
        if (o->output && streq(o->output, "json")) {
                char *text CLEANUP(free_p) = json_dumps(all, JSON_INDENT(2));
                printf("%s\n", text ? text : "[]");
        } else {
                printf("%-8s%-22s%-16s%s\n", "ID", "EXPIRES", "USER", "DESCRIPTION");
                json_array_foreach(all, i, t)
                {
                        const char *expires = json_string_value(json_object_get(t, "expires")), *user = json_string_value(json_object_get(t, "user"));
                        printf("%-8s%-22s%-16s%s\n", json_string_value(json_object_get(t, "id")), *expires ? expires : "never", user ? user : "-",
                                json_string_value(json_object_get(t, "description")));
                }
        }
        json_decref(all);
        return EXIT_OK;
}

/* ---- delete ---- */

static int delete_token(struct reach *r, const struct options *o, struct error *err)
{
        const char *id = o->args.n > 1 ? o->args.v[1] : "";
        size_t n = strcspn(id, ".");
        int status = 0;
        if (n != 6 || strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789") != n) {
                error_set(err, EINVAL, EXIT_USAGE, *id ? "'%s' is not a token's ID, which is six small letters and digits" : "which token?%s", id);
                return error_hint(err, "slipway token list shows the IDs");
        }
        char *path CLEANUP(free_p) = xasprintf(SECRETS "/bootstrap-token-%.6s", id);
        if (kube_do(r->site.kube, "DELETE", path, NULL, &status, NULL, err) == 0) {
                printf("token %.6s is deleted\n", id);
                return EXIT_OK;
        }
        if (status != 404)
                return error_wrap(err, "deleting token %.6s", id);
        error_release(err);
        error_set(err, ENOENT, EXIT_USAGE, "there is no token %.6s", id);
        return error_hint(err, "slipway token list shows those there are");
}

int cmd_token(const struct options *o, struct error *err)
{
        static const struct {
                const char *name;
                int (*run)(struct reach *r, const struct options *o, struct error *err);
                size_t args;
        } actions[] = { { "create", create, 1 }, { "list", list_tokens, 1 }, { "delete", delete_token, 2 } };
        const char *names[ARRAY_SIZE(actions)];
        size_t i = 0;
        for (size_t j = 0; j < ARRAY_SIZE(actions); j++)
                names[j] = actions[j].name;
        while (i < ARRAY_SIZE(actions) && !streq(names[i], o->args.v[0]))
                i++;
        if (i == ARRAY_SIZE(actions)) {
                const char *near = nearest(o->args.v[0], names, ARRAY_SIZE(names));
                error_set(err, EINVAL, EXIT_USAGE, "'slipway token' cannot '%s'", o->args.v[0]);
                return near ? error_hint(err, "did you mean 'slipway token %s'?", near) : error_hint(err, "choose one of: create list delete");
        }
        if (o->args.n > actions[i].args)
                return error_set(err, EINVAL, EXIT_USAGE, "'slipway token %s' does not take '%s'", names[i], o->args.v[actions[i].args]);
        struct reach r CLEANUP(reach_release) = { 0 };
        int e = reach_open(&r, o, err);
        if (e == 0 && !r.site.identity.prefix) {
                error_set(err, ENOENT, EXIT_STATE, "cluster %s has not been made from this state directory", r.cluster->name);
                e = error_hint(err, "slipway up makes it; --state names another directory");
        }
        if (e == 0)
                e = site_kube(&r.site, err);
        return e < 0 ? e : actions[i].run(&r, o, err);
}
