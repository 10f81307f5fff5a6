/* Rotation of CAs and keys in a running cluster: a new one is made and trusted beside the old
 * one, then it signs, then the old one is no longer trusted. Each phase is rolled out to all
 * nodes before the next begins, so no node uses a CA or key that another does not trust.
 * rotation.json has the phase of each and is written atomically. The new ones are under next/
 * until the end, when they replace the old ones: meanwhile rotation.json says "finish", which
 * means "use next/", so a run that is killed there loses nothing. This file reads the rotation
 * under way and applies it to the Identity; rotation_run.c begins a rotation and goes to the next
 * phase; cross.c has the cross-certificate. */
#include <jansson.h>

#include "pki/pki.h"

static const struct {
        const char *name; /* on the command line and in reports */
        const char *key;  /* in rotation.json */
} rows[ROTATE_COUNT] = {
        [ROTATE_CA] = { "cluster", "ca" },
        [ROTATE_ETCD] = { "etcd", "etcdCA" },
        [ROTATE_FRONT_PROXY] = { "front-proxy", "frontProxyCA" },
        [ROTATE_SA] = { "sa", "sa" },
        [ROTATE_ENCRYPTION] = { "encryption", "encryption" },
        [ROTATE_ENCRYPT] = { "encryption's first key", "encrypt" },
};
_Static_assert((int)ROTATE_CA == CA_CLUSTER && (int)ROTATE_ETCD == CA_ETCD &&
                       (int)ROTATE_FRONT_PROXY == CA_FRONT_PROXY,
        "CAs come first, as in enum ca_id");

static const char *const phases[] = { "", "trust", "issue", "finish" };

const char *rotate_name(enum rotate_id id) { return rows[id].name; }
const char *rotate_phase_name(enum rotate_phase p) { return phases[p]; }

/* ---- rotation.json ---- */

static int rotation_damaged(const char *path, struct error *err)
{
        error_set(err, EINVAL, EXIT_STATE, "%s is damaged", path);
        return error_hint(err,
                "restore it from a backup: it records which CAs and keys the cluster is changing to");
}

static int rotation_take(struct identity *id, const char *path, const json_t *j, struct error *err)
{
        struct rotation *r = &id->rotation;
        for (int i = 0; i < ROTATE_COUNT; i++) {
                const char *word = json_string_value(json_object_get(j, rows[i].key));
                for (int p = ROTATE_TRUST; word && p <= ROTATE_FINISH; p++)
                        if (streq(phases[p], word))
                                r->phase[i] = (enum rotate_phase)p;
                if (word && r->phase[i] == ROTATE_NOT)
                        return rotation_damaged(path, err);
        }
        r->issued = (time_t)json_integer_value(json_object_get(j, "issued"));
        if (r->phase[ROTATE_ENCRYPTION] == ROTATE_NOT)
                return 0;
        const char *key = json_string_value(json_object_get(j, "encryptionKey")),
                   *name = json_string_value(json_object_get(j, "encryptionKeyName"));
        if (!encryption_key_believable(key) || !name || !*name)
                return rotation_damaged(path, err);
        r->encryption_key = xstrdup(key);
        r->encryption_key_name = xstrdup(name);
        return 0;
}

int rotation_read(struct identity *id, struct error *err)
{
        char *path CLEANUP(free_p) = identity_path(id, "rotation.json");
        struct str text CLEANUP(str_wipe_release) = { 0 };
        int r = store_read(path, true, &text, err);
        if (r < 0)
                return r == -ENOENT && !err->code ? 0 : r;
        json_t *j = json_loadb(str_text(&text), text.len, JSON_REJECT_DUPLICATES, NULL);
        r = json_is_object(j) ? rotation_take(id, path, j, err) : rotation_damaged(path, err);
        json_decref(j);
        return r;
}

int rotation_write(const struct identity *id, struct error *err)
{
        const struct rotation *r = &id->rotation;
        char *path CLEANUP(free_p) = identity_path(id, "rotation.json");
        struct str text CLEANUP(str_wipe_release) = { 0 };
        str_add(&text, "{\n");
        for (int i = 0; i < ROTATE_COUNT; i++)
                if (r->phase[i] != ROTATE_NOT)
                        str_addf(&text, "  \"%s\": \"%s\",\n", rows[i].key, phases[r->phase[i]]);
        if (r->phase[ROTATE_ENCRYPTION] != ROTATE_NOT)
                str_addf(&text, "  \"encryptionKey\": \"%s\",\n  \"encryptionKeyName\": \"%s\",\n",
                        r->encryption_key, r->encryption_key_name);
        str_addf(&text, "  \"issued\": %jd\n}\n", (intmax_t)r->issued);
        return store_write(path, str_text(&text), text.len, FILE_SYNC, err);
}

unsigned identity_rotating(const struct identity *id)
{
        unsigned set = 0;
        for (unsigned i = 0; i < ROTATE_COUNT; i++)
                set |= id->rotation.phase[i] != ROTATE_NOT ? 1U << i : 0;
        return set;
}

/* ---- applied to the Identity ---- */

/* In the last phase the files of the old CA are overwritten one after the other, so only those
 * under next/ are read. */
int rotation_authority(struct identity *id, enum ca_id ca, struct error *err)
{
        char *next CLEANUP(free_p) = identity_path(id, "next");
        const char *dir = id->rotation.phase[ca] == ROTATE_FINISH ? next : id->dir;
        int r = authority_load(dir, ca, id->now, &id->ca[ca], err);
        return r < 0 || ca != CA_CLUSTER ? r : cross_read(dir, id->now, &id->ca[ca], err);
}

char *rotation_sa_path(const struct identity *id)
{
        return identity_path(id,
                id->rotation.phase[ROTATE_SA] == ROTATE_FINISH ? "next/pki/sa.key" : "pki/sa.key");
}

static int lay_authority(struct identity *id, enum ca_id ca, const char *next, struct error *err)
{
        struct authority new = { 0 };
        enum rotate_phase phase = id->rotation.phase[ca];
        int r = authority_load(next, ca, id->now, &new, err);
        if (r < 0)
                return r;
        if (ca == CA_CLUSTER)
                r = cross_read(next, id->now, &new, err);
        authority_both(&id->ca[ca], &new, phase == ROTATE_TRUST ? &id->ca[ca] : &new);
        if (phase == ROTATE_ISSUE) {
                struct authority old = id->ca[ca];
                id->ca[ca] = new;
                new = old;
        }
        authority_release(&new);
        return r;
}

static int lay_sa(struct identity *id, const char *next, struct error *err)
{
        char *path CLEANUP(free_p) = path_join(next, "pki/sa.key"), *pub CLEANUP(free_p) = NULL;
        struct str text CLEANUP(str_wipe_release) = { 0 };
        int r = store_read(path, true, &text, err);
        if (r == -ENOENT && !err->code)
                error_set(err, ENOENT, EXIT_STATE, "%s is missing", path);
        if (r == 0)
                r = sa_parse(path, str_span(&text), &pub, err);
        if (r < 0)
                return error_hint(err,
                        "restore it from a backup: the cluster's service-account tokens are signed with it");
        if (id->rotation.phase[ROTATE_SA] == ROTATE_TRUST) {
                id->sa_other = TAKE(pub);
                return 0;
        }
        id->sa_other = TAKE(id->sa_pub);
        secret_free(&id->sa_key);
        id->sa_key = str_take(&text);
        id->sa_pub = TAKE(pub);
        return 0;
}

static void lay_encryption(struct identity *id)
{
        enum rotate_phase phase = id->rotation.phase[ROTATE_ENCRYPTION];
        id->encryption_other = xstrdup(id->rotation.encryption_key);
        id->encryption_other_name = xstrdup(id->rotation.encryption_key_name);
        if (phase == ROTATE_TRUST)
                return;
        char *key = id->encryption_key, *name = id->encryption_key_name;
        id->encryption_key = id->encryption_other;
        id->encryption_key_name = id->encryption_other_name;
        id->encryption_other = key;
        id->encryption_other_name = name;
        if (phase == ROTATE_FINISH) {
                secret_free(&id->encryption_other);
                secret_free(&id->encryption_other_name);
        }
}

static bool rotation_has_both(const struct identity *id, int i)
{
        return id->rotation.phase[i] == ROTATE_TRUST || id->rotation.phase[i] == ROTATE_ISSUE;
}

int rotation_load(struct identity *id, struct error *err)
{
        char *next CLEANUP(free_p) = identity_path(id, "next");
        int r = 0;
        for (int ca = 0; r == 0 && ca < CA_COUNT; ca++)
                if (rotation_has_both(id, ca))
                        r = lay_authority(id, ca, next, err);
        if (r == 0 && rotation_has_both(id, ROTATE_SA))
                r = lay_sa(id, next, err);
        if (r == 0 && id->rotation.phase[ROTATE_ENCRYPTION] != ROTATE_NOT)
                lay_encryption(id);
        return r;
}
