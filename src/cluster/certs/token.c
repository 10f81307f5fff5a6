#include <time.h>

#include "base/file.h"
#include "cluster/certs/handover.h"
#include "cluster/certs/token.h"
#include "cluster/plan/outsiders.h"
#include "config/scalar.h"

#define SECRETS     "/api/v1/namespaces/kube-system/secrets"
#define TOKENS      SECRETS "?fieldSelector=type%3Dbootstrap.kubernetes.io%2Ftoken"
#define TTL_DEFAULT "24h"
#define TTL_MAX     (INT64_C(10) * 365 * 86400)
#define ID_CHARS    "abcdefghijklmnopqrstuvwxyz0123456789"
#define TOKEN_MAX   64 /* maximum size of a file with a token */

/* ---- create ---- */

/* A value in a Secret's data (base64); only short ASCII, as in a token. */
static const char *token_value(const json_t *secret, const char *key, char out[256])
{
        static const char letters[] =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const char *in = json_string_value(json_object_get(json_object_get(secret, "data"), key));
        unsigned bits = 0, value = 0;
        size_t n = 0;
        for (const char *p; in && *in && *in != '=' && (p = strchr(letters, *in)) && n < 255;
                in++) {
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

static json_t *token_secret(
        const char *id, const char *secret, const char *expiration, const char *user)
{
        json_t *o = json_pack(
                "{s:s, s:s, s:{s:s+, s:s}, s:s, s:{s:s, s:s, s:s, s:s, s:s, s:s, s:s}}",
                "apiVersion", "v1", "kind", "Secret", "metadata", "name", "bootstrap-token-", id,
                "namespace", "kube-system", "type", "bootstrap.kubernetes.io/token", "stringData",
                "token-id", id, "token-secret", secret, "expiration", expiration,
                "usage-bootstrap-authentication", "true", "usage-bootstrap-signing", "true",
                "auth-extra-groups", TOKEN_GROUP, "description", "made by slipway token create");
        if (user)
                json_object_set_new(json_object_get(o, "metadata"), "labels",
                        json_pack("{s:s}", USER_LABEL, user));
        return o;
}

static int token_check_user(const struct cluster *c, const char *user, struct error *err)
{
        for (size_t i = 0; i < c->auth.users.n; i++)
                if (streq(c->auth.users.v[i].name, user))
                        return 0;
        error_set(err, ENOENT, EXIT_USAGE, "--user: there is no '%s' in auth.users", user);
        return error_hint(err, "add them to auth.users and run slipway up, or leave --user out");
}

static int token_expiration(const struct token_wish *wish, char out[32], struct error *err)
{
        int64_t seconds, longest = TTL_MAX;
        struct tm tm;
        const char *ttl = wish->ttl             ? wish->ttl
                          : wish->control_plane ? CONTROL_PLANE_TTL
                                                : TTL_DEFAULT;
        if (wish->control_plane)
                duration_parse(CONTROL_PLANE_TTL, false, &longest);
        if (!duration_parse(ttl, false, &seconds) || seconds <= 0 || seconds > longest) {
                error_set(err, EINVAL, EXIT_USAGE, "--ttl: '%s' is not a time of at most %s", ttl,
                        wish->control_plane ? "two hours, which is the most with --control-plane"
                                            : "ten years");
                return error_hint(err, "write it as 30m, %s",
                        wish->control_plane ? "90m or 2h" : "24h or 7d");
        }
        time_t end = time(NULL) + seconds;
        strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&end, &tm));
        return 0;
}

/* Reads one line; its text never appears in a message. */
static int token_chosen(const char *file, char id[7], char secret[17], struct error *err)
{
        struct str text CLEANUP(str_wipe_release) = { 0 };
        int r = file_read_secret(file, TOKEN_MAX, &text, err);
        if (r < 0) {
                err->status = EXIT_USAGE;
                return error_wrap(err, "--token-file");
        }
        const char *t = str_text(&text);
        size_t n = strcspn(t, "\r\n");
        if (n != 23 || strspn(t, ID_CHARS) != 6 || t[6] != '.' || strspn(t + 7, ID_CHARS) != 16 ||
                t[n + strspn(t + n, "\r\n")]) {
                error_set(err, EINVAL, EXIT_USAGE,
                        "--token-file: %s does not hold a bootstrap token", file);
                return error_hint(err,
                        "a token is one line of six lower-case letters and digits, a dot, and sixteen more: abcdef.0123456789abcdef");
        }
        memcpy(id, t, 6);
        memcpy(secret, t + 7, 16);
        id[6] = secret[16] = 0;
        return 0;
}

static json_t *token_json(
        const struct cluster *c, const char *token, const char *expiration, const char *hash)
{
        const char *host = cluster_endpoint_host(c);
        struct ip ip;
        bool v6 = host && ip_parse(host, &ip) && ip.family == 6;
        char *endpoint CLEANUP(free_p) =
                xasprintf(v6 ? "[%s]:%ld" : "%s:%ld", host ? host : "", cluster_endpoint_port(c));
        char *join CLEANUP(free_p) =
                xasprintf("kubeadm join %s --token %s --discovery-token-ca-cert-hash %s", endpoint,
                        token, hash);
        return json_pack("{s:s, s:s, s:s, s:s, s:s}", "token", token, "expires", expiration,
                "endpoint", endpoint, "caCertHash", hash, "join", join);
}

/* A token with that ID exists: with the same secret, it gets the validity of a new one. */
static int token_again(struct site *s, const char *id, const char *secret, const char *body,
        json_t **made, struct error *err)
{
        char *path CLEANUP(free_p) = xasprintf(SECRETS "/bootstrap-token-%s", id);
        json_t *there = NULL;
        char is[256];
        error_release(err);
        int r = kube_get(s->kube, path, &there, err);
        bool same = r == 0 && streq(token_value(there, "token-secret", is), secret);
        wipe(is, sizeof(is));
        json_decref(there);
        if (r < 0)
                return r;
        if (same)
                return kube_do(s->kube, "PUT", path, body, NULL, made, err);
        error_set(err, EEXIST, EXIT_USAGE, "there is already a token %s, with another secret", id);
        return error_hint(
                err, "choose another ID, or delete that one: slipway token delete %s", id);
}

/* Creates the token's Secret in the API. */
static int token_put(struct site *s, const char *id, const char *secret, const char *expiration,
        const char *user, json_t **made, struct error *err)
{
        int status = 0;
        json_t *object = token_secret(id, secret, expiration, user);
        char *body = json_dumps(object, 0);
        json_decref(object);
        int r = kube_do(s->kube, "POST", SECRETS, body, &status, made, err);
        if (r < 0 && status == 409)
                r = token_again(s, id, secret, body, made, err);
        wipe(body, strlen(body));
        free(body);
        return r < 0 ? error_wrap(err, "creating the token") : 0;
}

/* Lets the machine read the cluster's keys; the join command contains the key
 * that decrypts them. */
static int token_for_control_plane(
        struct site *s, const json_t *made, json_t *out, struct error *err)
{
        char key[SEAL_KEY_HEX];
        seal_key(key);
        int r = handover_upload(s, made, key, err);
        if (r == 0) {
                json_object_set_new(out, "join",
                        json_sprintf("%s --control-plane --certificate-key %s",
                                json_string_value(json_object_get(out, "join")), key));
                json_object_set_new(out, "certificateKey", json_string(key));
        }
        wipe(key, sizeof(key));
        return r;
}

static int token_check(struct site *s, const struct token_wish *wish, struct error *err)
{
        int r = wish->user ? token_check_user(s->cluster, wish->user, err) : 0;
        return r == 0 && wish->control_plane ? handover_check(s, err) : r;
}

int token_create(struct site *s, const struct token_wish *wish, json_t **out, struct error *err)
{
        char id[7], secret[17], expiration[32];
        json_t *made = NULL;
        int r = token_expiration(wish, expiration, err);
        if (r == 0)
                r = token_check(s, wish, err);
        if (r == 0 && wish->file)
                r = token_chosen(wish->file, id, secret, err);
        if (r < 0)
                return r;
        char *hash CLEANUP(free_p) = identity_ca_hash(&s->identity, err);
        if (!hash)
                return -err->code;
        if (!wish->file)
                token_random(id, secret);
        r = token_put(s, id, secret, expiration, wish->user, &made, err);
        if (r == 0) {
                char *token CLEANUP(free_p) = xasprintf("%s.%s", id, secret);
                *out = token_json(s->cluster, token, expiration, hash);
        }
        if (r == 0 && wish->control_plane) {
                struct error ignored CLEANUP(error_release) = { 0 };
                r = token_for_control_plane(s, made, *out, err);
                if (r < 0) /* nobody has seen it: delete it */
                        token_delete(s, id, &ignored);
        }
        wipe(secret, sizeof(secret));
        json_decref(made);
        return r;
}

/* ---- list ---- */

static const char *token_user(const json_t *secret)
{
        return json_string_value(json_object_get(
                json_object_get(json_object_get(secret, "metadata"), "labels"), USER_LABEL));
}

static json_t *tokens_json(const json_t *list)
{
        json_t *all = json_array(), *secret;
        char id[256], expires[256], description[256];
        size_t i;
        json_array_foreach(json_object_get(list, "items"), i, secret) json_array_append_new(
                all, json_pack("{s:s, s:s, s:s?, s:s}", "id", token_value(secret, "token-id", id),
                             "expires", token_value(secret, "expiration", expires), "user",
                             token_user(secret), "description",
                             token_value(secret, "description", description)));
        return all;
}

int token_list(struct site *s, json_t **out, struct error *err)
{
        json_t *list = NULL;
        if (kube_get(s->kube, TOKENS, &list, err) < 0)
                return error_wrap(err, "listing the tokens");
        *out = tokens_json(list);
        json_decref(list);
        return 0;
}

/* ---- delete ---- */

int token_delete(struct site *s, const char *id, struct error *err)
{
        size_t n = strcspn(id, ".");
        int status = 0;
        if (n != 6 || strspn(id, ID_CHARS) != n) {
                error_set(err, EINVAL, EXIT_USAGE,
                        *id ? "'%s' is not a token's ID, which is six lower-case letters and digits"
                            : "'slipway token delete' needs the ID of a token%s",
                        id);
                return error_hint(err, "'slipway token list' shows the IDs");
        }
        char *path CLEANUP(free_p) = xasprintf(SECRETS "/bootstrap-token-%.6s", id);
        if (kube_do(s->kube, "DELETE", path, NULL, &status, NULL, err) == 0)
                return 0;
        if (status != 404)
                return error_wrap(err, "deleting token %.6s", id);
        error_set(err, ENOENT, EXIT_USAGE, "there is no token %.6s", id);
        return error_hint(err, "'slipway token list' shows the tokens");
}
