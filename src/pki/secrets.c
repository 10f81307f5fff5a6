/* identity.json: random values other than key pairs. */
#include <jansson.h>

#include "base/sha256.h"
#include "pki/pki.h"

#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

/* Of identity.json; version 1 has a bootstrap token, and programs of then require it. */
#define VERSION 2

/* Characters and length of each value, for making and for checking it. */
static const struct secret_row {
        const char *key;
        size_t offset, len;
        const char *set;
        bool past; /* only in states of earlier versions */
} secret_table[] = {
        { "prefix", offsetof(struct identity, prefix), 5, LOWER DIGITS },
        { "tokenID", offsetof(struct identity, token_id), 6, LOWER DIGITS, true },
        { "certificateKey", offsetof(struct identity, certificate_key), 64, DIGITS "abcdef" },
        { "encryptionKey", offsetof(struct identity, encryption_key), 44,
                LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS "+/=" },
        { "vrrpPassword", offsetof(struct identity, vrrp_password), 8, LOWER DIGITS },
};

static char **secret_field(const struct identity *id, const struct secret_row *row)
{
        return (char **)((char *)id + row->offset);
}

char *encryption_key_new(void)
{
        uint8_t raw[32];
        struct str s = { 0 };
        random_bytes(raw, sizeof(raw));
        str_reserve(&s, 64);
        str_add_base64(&s, raw, sizeof(raw));
        wipe(raw, sizeof(raw));
        return str_take(&s);
}

void secrets_create(struct identity *id)
{
        for (size_t i = 0; i < ARRAY_SIZE(secret_table); i++) {
                const struct secret_row *row = &secret_table[i];
                char **out = secret_field(id, row);
                if (row->past)
                        continue;
                if (row->offset == offsetof(struct identity, encryption_key)) {
                        *out = encryption_key_new();
                        continue;
                }
                *out = xcalloc(1, row->len + 1);
                random_text(*out, row->len, row->set);
        }
        random_text(id->prefix, 1, LOWER); /* names in clouds must begin with a letter */
        random_text(id->prefix + 1, 4, LOWER DIGITS);
        id->encryption_key_name = xstrdup("key1");
}

void secrets_text(const struct identity *id, const char *cluster, struct str *out)
{
        str_reserve(out, 1024);
        str_addf(out, "{\n  \"version\": %d,\n  \"cluster\": \"%s\",\n", VERSION, cluster);
        for (size_t i = 0; i < ARRAY_SIZE(secret_table); i++)
                if (*secret_field(id, &secret_table[i]))
                        str_addf(out, "  \"%s\": \"%s\",\n", secret_table[i].key,
                                *secret_field(id, &secret_table[i]));
        str_addf(out, "  \"encryptionKeyName\": \"%s\"\n}\n", id->encryption_key_name);
}

static int secrets_damaged(const char *path, const char *key, struct error *err)
{
        error_set(err, EINVAL, EXIT_STATE, "%s is damaged: \"%s\" is missing or has a wrong value",
                path, key);
        return error_hint(err,
                "restore it from a backup: the cluster uses its values, which cannot be made again");
}

static bool secret_valid(const char *v, const struct secret_row *row)
{
        return v && strlen(v) == row->len && strspn(v, row->set) == row->len;
}

bool encryption_key_believable(const char *key)
{
        for (size_t i = 0; i < ARRAY_SIZE(secret_table); i++)
                if (secret_table[i].offset == offsetof(struct identity, encryption_key))
                        return secret_valid(key, &secret_table[i]);
        return false;
}

static int secrets_take_fields(struct identity *id, const json_t *j, const char *cluster,
        const char *path, struct error *err)
{
        const char *of = json_string_value(json_object_get(j, "cluster")),
                   *name = json_string_value(json_object_get(j, "encryptionKeyName"));
        if (json_integer_value(json_object_get(j, "version")) > VERSION) {
                error_set(err, EINVAL, EXIT_STATE, "%s was written by a newer slipway", path);
                return error_hint(err, "use the version of slipway that wrote it, or a newer one");
        }
        if (of && !streq(of, cluster)) {
                error_set(err, EINVAL, EXIT_STATE,
                        "%s is the Identity of the cluster \"%s\", not of \"%s\"", path, of,
                        cluster);
                return error_hint(
                        err, "rename the directory back: an Identity belongs to one cluster");
        }
        for (size_t i = 0; i < ARRAY_SIZE(secret_table); i++) {
                const char *v = json_string_value(json_object_get(j, secret_table[i].key));
                if (!v && secret_table[i].past)
                        continue;
                if (!secret_valid(v, &secret_table[i]))
                        return secrets_damaged(path, secret_table[i].key, err);
                *secret_field(id, &secret_table[i]) = xstrdup(v);
        }
        if (!of || !name || !*name || strspn(name, LOWER DIGITS "-") != strlen(name))
                return secrets_damaged(path, of ? "encryptionKeyName" : "cluster", err);
        id->encryption_key_name = xstrdup(name);
        return 0;
}

static void wipe_strings(json_t *j)
{
        const char *key;
        json_t *v;
        json_object_foreach(j, key, v) wipe((char *)json_string_value(v), json_string_length(v));
}

int secrets_load(struct identity *id, const char *cluster, const char *path, struct error *err)
{
        struct str text CLEANUP(str_wipe_release) = { 0 };
        json_error_t why;
        int r = store_read(path, true, &text, err);
        if (r < 0)
                return r == -ENOENT ? error_set(err, ENOENT, EXIT_STATE, "%s is missing", path) : r;
        json_t *j = json_loadb(str_text(&text), text.len, JSON_REJECT_DUPLICATES, &why);
        if (!json_is_object(j)) {
                error_set(err, EINVAL, EXIT_STATE, "%s is damaged: %s", path,
                        !text.len ? "it is empty"
                        : j       ? "it is not a JSON object"
                                  : why.text);
                json_decref(j);
                return error_hint(err,
                        "restore it from a backup: the cluster uses its values, which cannot be made again");
        }
        r = secrets_take_fields(id, j, cluster, path, err);
        wipe_strings(j);
        json_decref(j);
        return r;
}

void token_random(char id[7], char secret[17])
{
        random_text(id, 6, LOWER DIGITS);
        random_text(secret, 16, LOWER DIGITS);
        id[6] = secret[16] = 0;
}

const char *identity_secret(const struct identity *id, const char *purpose, struct arena *a)
{
        struct sha256 sum;
        char hex[SHA256_HEX];
        if (!id->prefix || !id->sa_key)
                return NULL;
        sha256_init(&sum);
        sha256_add(&sum, id->sa_key, strlen(id->sa_key) + 1);
        sha256_add(&sum, id->prefix, strlen(id->prefix) + 1);
        sha256_add(&sum, purpose, strlen(purpose) + 1);
        sha256_end(&sum, hex);
        const char *secret = arena_strdup(a, hex);
        wipe(hex, sizeof(hex));
        return secret;
}
