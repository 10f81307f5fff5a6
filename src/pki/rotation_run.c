/* Begins a rotation by making the new CAs and keys, and goes to the next phase when the current one
 * is on all nodes. */
#include "pki/pki.h"

/* ---- begin ---- */

static int rotation_make_dirs(const char *next, struct error *err)
{
        static const char *const names[] = { "", "/pki", "/pki/etcd" };
        int r = 0;
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(names); i++) {
                char *path CLEANUP(free_p) = xasprintf("%s%s", next, names[i]);
                r = store_dir(path, err);
        }
        return r;
}

static int rotation_write_pair(
        const char *dir, const char *path, const char *suffix, const char *text, struct error *err)
{
        char *full CLEANUP(free_p) = xasprintf("%s/pki/%s%s", dir, path, suffix);
        return store_write(full, text, strlen(text), FILE_SYNC, err);
}

/* The CA of cluster.yaml, or a new one. */
static int rotation_make_authority(struct identity *id, const struct cluster *c, enum ca_id ca,
        const char *next, struct error *err)
{
        struct authority new = { 0 };
        int r = own_ca_load(c, ca, id->now, &new, err);
        if (r == -ENOENT && !err->code)
                r = authority_create(id->pki, ca, &c->certificates, id->now, &new, err);
        if (r == 0 && EVP_PKEY_eq(new.pkey, id->ca[ca].pkey) == 1) {
                r = error_set(err, EEXIST, EXIT_CONFIG, "%s is the CA that the cluster already has",
                        ca_table[ca].field);
                error_hint(err,
                        "name the files of the new CA there, or leave it out and slipway makes one");
        }
        if (r == 0)
                r = rotation_write_pair(next, ca_table[ca].path, ".key", new.key, err);
        if (r == 0)
                r = rotation_write_pair(next, ca_table[ca].path, ".crt", new.bundle, err);
        if (r == 0 && ca == CA_CLUSTER)
                r = cross_make(&id->ca[ca], &new, c->certificates.ca_lifetime, next, id->now, err);
        authority_release(&new);
        return r;
}

static int rotation_make_sa(
        struct identity *id, const struct cluster *c, const char *next, struct error *err)
{
        char *key = NULL, *pub CLEANUP(free_p) = NULL;
        int r = sa_make(id->pki, c->certificates.algorithm, &key, &pub, err);
        if (r == 0)
                r = rotation_write_pair(next, "sa", ".key", key, err);
        secret_free(&key);
        return r;
}

/* key7 → key8; the key of an adopted cluster may have any name. */
static char *next_key_name(const char *name)
{
        size_t n = strlen(name);
        while (n && name[n - 1] >= '0' && name[n - 1] <= '9')
                n--;
        return xasprintf("%.*s%ld", (int)n, name, strtol(name + n, NULL, 10) + 1);
}

static int rotation_make_all(
        struct identity *id, const struct cluster *c, unsigned set, struct error *err)
{
        char *next CLEANUP(free_p) = identity_path(id, "next");
        int r = rotation_make_dirs(next, err);
        for (int ca = 0; r == 0 && ca < CA_COUNT; ca++)
                if (set & 1U << ca)
                        r = rotation_make_authority(id, c, ca, next, err);
        if (r == 0 && set & 1U << ROTATE_SA)
                r = rotation_make_sa(id, c, next, err);
        if (r == 0 && set & 1U << ROTATE_ENCRYPTION) {
                id->rotation.encryption_key = encryption_key_new();
                id->rotation.encryption_key_name = next_key_name(id->encryption_key_name);
        }
        for (int i = 0; i < ROTATE_COUNT; i++)
                if (set & 1U << i)
                        id->rotation.phase[i] = ROTATE_TRUST;
        return r < 0 ? r : rotation_write(id, err);
}

static int rotation_begin(
        struct identity *id, const struct cluster *c, unsigned set, struct error *err)
{
        unsigned under_way = identity_rotating(id);
        if (!under_way)
                return rotation_make_all(id, c, set, err);
        if (!(set & ~under_way))
                return 0;
        for (int i = 0; i < ROTATE_COUNT; i++)
                if (under_way & 1U << i) {
                        error_set(err, EBUSY, EXIT_STATE,
                                "a rotation of %s is under way (phase %s)", rotate_name(i),
                                rotate_phase_name(id->rotation.phase[i]));
                        return error_hint(err, "finish it first: slipway up continues it%s",
                                i == ROTATE_SA
                                        ? ", and slipway certs rotate-ca sa --finish removes the old key at once"
                                        : "");
                }
        return 0;
}

int identity_rotate(
        const char *state, const struct cluster *c, unsigned set, time_t now, struct error *err)
{
        struct identity id = { .lock = -1 };
        int r = identity_open_rotating(state, c, now, &id, err);
        if (r < 0)
                return r;
        if (id.created) {
                r = error_set(err, ENOENT, EXIT_STATE,
                        "there is no cluster yet whose keys could be rotated");
                error_hint(err, "make the cluster with slipway up");
        }
        if (r == 0)
                r = rotation_begin(&id, c, set, err);
        identity_release(&id);
        return r;
}

int identity_encrypt(struct identity *id, struct error *err)
{
        bool begun = id->rotation.begun;
        id->rotation.begun = false;
        return begun ? rotation_write(id, err) : 0;
}

/* ---- next phase ---- */

static int rotation_settle_cross(const struct identity *id, struct error *err)
{
        char *next CLEANUP(free_p) = identity_path(id, "next"),
                   *from CLEANUP(free_p) = cross_path(next),
                   *to CLEANUP(free_p) = cross_path(id->dir);
        struct str text CLEANUP(str_release) = { 0 };
        int r = store_read(from, false, &text, err);
        if (r < 0)
                return r == -ENOENT && !err->code ? 0 : r;
        return text.len ? store_write(to, str_text(&text), text.len, FILE_SYNC, err) : 0;
}

static int rotation_settle(const struct identity *id, const struct cluster *c, struct error *err)
{
        struct str json CLEANUP(str_wipe_release) = { 0 };
        int r = 0;
        for (int ca = 0; r == 0 && ca < CA_COUNT; ca++) {
                if (id->rotation.phase[ca] != ROTATE_FINISH)
                        continue;
                if (ca == CA_CLUSTER && *id->ca[ca].chain)
                        r = rotation_settle_cross(id, err);
                if (r == 0)
                        r = rotation_write_pair(
                                id->dir, ca_table[ca].path, ".key", id->ca[ca].key, err);
                if (r == 0)
                        r = rotation_write_pair(
                                id->dir, ca_table[ca].path, ".crt", id->ca[ca].bundle, err);
        }
        if (r == 0 && id->rotation.phase[ROTATE_SA] == ROTATE_FINISH) {
                r = rotation_write_pair(id->dir, "sa", ".key", id->sa_key, err);
                if (r == 0)
                        r = rotation_write_pair(id->dir, "sa", ".pub", id->sa_pub, err);
        }
        if (r < 0 || id->rotation.phase[ROTATE_ENCRYPTION] != ROTATE_FINISH)
                return r;
        char *path CLEANUP(free_p) = identity_path(id, "identity.json");
        secrets_text(id, c->name, &json);
        return store_write(path, str_text(&json), json.len, FILE_SYNC, err);
}

/* The rotation has ended: the files of next/ are in pki/. */
static void rotation_forget(struct identity *id)
{
        struct error ignored CLEANUP(error_release) = { 0 };
        char *path CLEANUP(free_p) = identity_path(id, "rotation.json"),
                   *next CLEANUP(free_p) = identity_path(id, "next");
        unlink(path);
        dir_remove(next, &ignored);
}

static bool tokens_live(struct identity *id, bool now_too)
{
        if (!id->rotation.issued)
                id->rotation.issued = id->now;
        return !now_too && id->now < id->rotation.issued + SA_KEEP;
}

int identity_rotate_on(
        struct identity *id, const struct cluster *c, bool now_too, struct error *err)
{
        struct rotation *r = &id->rotation;
        unsigned before = identity_rotating(id);
        bool more = false;
        int e = before ? rotation_settle(id, c, err) : 0;
        if (e < 0 || !before)
                return e;
        for (int i = 0; i < ROTATE_COUNT; i++) {
                bool waits =
                        i == ROTATE_SA && r->phase[i] == ROTATE_ISSUE && tokens_live(id, now_too);
                if (r->phase[i] != ROTATE_NOT && !waits) {
                        /* there is no old key to remove */
                        bool last = r->phase[i] == ROTATE_FINISH ||
                                    (i == ROTATE_ENCRYPT && r->phase[i] == ROTATE_ISSUE);
                        r->phase[i] = last ? ROTATE_NOT : (enum rotate_phase)(r->phase[i] + 1);
                        more |= r->phase[i] != ROTATE_NOT;
                }
        }
        if (identity_rotating(id))
                return (e = rotation_write(id, err)) < 0 ? e : more;
        rotation_forget(id);
        return 0;
}
