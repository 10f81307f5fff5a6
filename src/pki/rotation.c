/* Authorities and keys change while the cluster lives: a new one is made and believed beside the old one, then it signs, then the old one is believed no more. Each of
 * these phases is rolled out to all nodes before the next begins, so at no moment does one node use what another does not know.
 *
 * rotation.json says how far each is; it is written whole or not at all. The new ones lie under next/ until the end, when they take the place of the old ones: while
 * that goes on rotation.json still says "finish", which means "use next/", so a run killed there loses nothing.
 *
 * The new cluster authority also gets a certificate from the old one (cross), which servers send behind their own: who only knows the old one, such as a pod that
 * has read its ca.crt once and for all, still finds its way to it. It stays until all certificates are renewed (certs renew). */
#include <jansson.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include "pki/pki.h"

static const struct {
        const char *name; /* for people */
        const char *key;  /* in rotation.json */
} rows[ROTATE_COUNT] = {
        [ROTATE_CA] = { "cluster", "ca" },
        [ROTATE_ETCD] = { "etcd", "etcdCA" },
        [ROTATE_FRONT_PROXY] = { "front-proxy", "frontProxyCA" },
        [ROTATE_SA] = { "sa", "sa" },
        [ROTATE_ENCRYPTION] = { "encryption", "encryption" },
};
_Static_assert(
        (int)ROTATE_CA == CA_CLUSTER && (int)ROTATE_ETCD == CA_ETCD && (int)ROTATE_FRONT_PROXY == CA_FRONT_PROXY, "authorities come first, as in enum ca_id");

static const char *const phases[] = { "", "trust", "issue", "finish" };

const char *rotate_name(enum rotate_id id) { return rows[id].name; }
const char *rotate_phase_name(enum rotate_phase p) { return phases[p]; }

static char *in_dir(const struct identity *id, const char *name) { return path_join(id->dir, name); }

/* ---- the keys of service accounts ---- */

static int public_pem(EVP_PKEY *k, char **out, struct error *err)
{
        struct str spki CLEANUP(str_release) = { 0 }, pem CLEANUP(str_release) = { 0 };
        int r = key_spki(k, &spki, err);
        if (r < 0)
                return r;
        pem_add(&pem, "PUBLIC KEY", spki.data, spki.len);
        *out = str_take(&pem);
        return 0;
}

int sa_parse(const char *path, struct span pem, char **pub, struct error *err)
{
        EVP_PKEY *k CLEANUP(pkey_p) = key_parse(pem);
        if (!k)
                return error_set(err, EINVAL, EXIT_STATE, "%s is %s", path, pem.n ? "damaged: it holds no private key in PEM form" : "empty");
        return public_pem(k, pub, err);
}

int sa_make(struct pki *p, enum key_algorithm a, char **key, char **pub, struct error *err)
{
        EVP_PKEY *k CLEANUP(pkey_p) = NULL;
        struct str pem CLEANUP(str_wipe_release) = { 0 };
        a = a == KEY_RSA_4096 ? KEY_RSA_2048 : a;
        int r = key_generate(p, a, &k, err);
        if (r == 0)
                r = key_pem(k, a, &pem, err);
        if (r == 0)
                r = public_pem(k, pub, err);
        if (r == 0)
                *key = str_take(&pem);
        return r;
}

/* ---- rotation.json ---- */

static int damaged(const char *path, struct error *err)
{
        error_set(err, EINVAL, EXIT_STATE, "%s is damaged", path);
        return error_hint(err, "restore it from a backup; it says which keys the cluster is changing to");
}

static int take(struct identity *id, const char *path, const json_t *j, struct error *err)
{
        struct rotation *r = &id->rotation;
        for (int i = 0; i < ROTATE_COUNT; i++) {
                const char *word = json_string_value(json_object_get(j, rows[i].key));
                for (int p = ROTATE_TRUST; word && p <= ROTATE_FINISH; p++)
                        if (streq(phases[p], word))
                                r->phase[i] = (enum rotate_phase)p;
                if (word && r->phase[i] == ROTATE_NOT)
                        return damaged(path, err);
        }
        r->issued = (time_t)json_integer_value(json_object_get(j, "issued"));
        if (r->phase[ROTATE_ENCRYPTION] == ROTATE_NOT)
                return 0;
        const char *key = json_string_value(json_object_get(j, "encryptionKey")), *name = json_string_value(json_object_get(j, "encryptionKeyName"));
        if (!encryption_key_believable(key) || !name || !*name)
                return damaged(path, err);
        r->encryption_key = xstrdup(key);
        r->encryption_key_name = xstrdup(name);
        return 0;
}

int rotation_read(struct identity *id, struct error *err)
{
        char *path CLEANUP(free_p) = in_dir(id, "rotation.json");
        struct str text CLEANUP(str_wipe_release) = { 0 };
        int r = store_read(path, true, &text, err);
        if (r < 0)
                return r == -ENOENT && !err->code ? 0 : r;
        json_t *j = json_loadb(str_text(&text), text.len, JSON_REJECT_DUPLICATES, NULL);
        r = json_is_object(j) ? take(id, path, j, err) : damaged(path, err);
        json_decref(j);
        return r;
}

static int write_json(const struct identity *id, struct error *err)
{
        const struct rotation *r = &id->rotation;
        char *path CLEANUP(free_p) = in_dir(id, "rotation.json");
        struct str text CLEANUP(str_wipe_release) = { 0 };
        str_add(&text, "{\n");
        for (int i = 0; i < ROTATE_COUNT; i++)
                if (r->phase[i] != ROTATE_NOT)
                        str_addf(&text, "  \"%s\": \"%s\",\n", rows[i].key, phases[r->phase[i]]);
        if (r->phase[ROTATE_ENCRYPTION] != ROTATE_NOT)
                str_addf(&text, "  \"encryptionKey\": \"%s\",\n  \"encryptionKeyName\": \"%s\",\n", r->encryption_key, r->encryption_key_name);
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

/* ---- the certificate that the old authority gave the new one ---- */

static char *cross_path(const char *dir) { return xasprintf("%s/pki/ca.cross.crt", dir); }

/* Only where it is this authority's, for a killed run may have left another's, and only as long as it is good. */
static int cross_read(const char *dir, time_t now, struct authority *a, struct error *err)
{
        char *path CLEANUP(free_p) = cross_path(dir);
        struct str text CLEANUP(str_release) = { 0 };
        int r = store_read(path, false, &text, err);
        if (r < 0)
                return r == -ENOENT && !err->code ? 0 : r;
        BIO *b = BIO_new_mem_buf(str_text(&text), (int)text.len);
        X509 *x CLEANUP(x509_p) = b ? PEM_read_bio_X509(b, NULL, NULL, NULL) : NULL;
        if (x && X509_check_private_key(x, a->pkey) == 1 && asn1_time(X509_get0_notAfter(x)) > now) {
                char *chain = xasprintf("%s%s", str_text(&text), a->chain);
                free(a->chain);
                a->chain = chain;
        }
        BIO_free(b);
        ERR_clear_error();
        return 0;
}

static int cross_make(const struct authority *old, struct authority *new, int64_t lifetime, const char *dir, time_t now, struct error *err)
{
        struct issuer issuer CLEANUP(issuer_release) = { 0 };
        struct want w CLEANUP(want_release) = { .authority = true, .lifetime = lifetime };
        struct str spki CLEANUP(str_release) = { 0 }, der CLEANUP(str_release) = { 0 }, pem CLEANUP(str_release) = { 0 };
        unsigned char *name = NULL;
        int n = i2d_X509_NAME(X509_get_subject_name(new->x509), &name), r = issuer_init(&issuer, old->x509, old->pkey, err);
        if (n > 0)
                str_addn(&w.subject, name, (size_t)n);
        OPENSSL_free(name);
        if (r == 0)
                r = key_spki(new->pkey, &spki, err);
        if (r == 0)
                r = cert_issue(&issuer, &w, str_span(&spki), now, &der, err);
        if (r < 0)
                return r;
        pem_add(&pem, "CERTIFICATE", der.data, der.len);
        char *path CLEANUP(free_p) = cross_path(dir);
        return store_write(path, str_text(&pem), pem.len, FILE_SYNC, err);
}

/* ---- loaded ---- */

/* At the end the old one's files are written over, one after the other: it is the new one alone that counts. */
int rotation_authority(struct identity *id, enum ca_id ca, struct error *err)
{
        char *next CLEANUP(free_p) = in_dir(id, "next");
        const char *dir = id->rotation.phase[ca] == ROTATE_FINISH ? next : id->dir;
        int r = authority_load(dir, ca, id->now, &id->ca[ca], err);
        return r < 0 || ca != CA_CLUSTER ? r : cross_read(dir, id->now, &id->ca[ca], err);
}

char *rotation_sa_path(const struct identity *id) { return in_dir(id, id->rotation.phase[ROTATE_SA] == ROTATE_FINISH ? "next/pki/sa.key" : "pki/sa.key"); }

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
                return error_hint(err, "restore it from a backup; service-account tokens of the cluster are signed with it");
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

static bool both(const struct identity *id, int i) { return id->rotation.phase[i] == ROTATE_TRUST || id->rotation.phase[i] == ROTATE_ISSUE; }

int rotation_load(struct identity *id, struct error *err)
{
        char *next CLEANUP(free_p) = in_dir(id, "next");
        int r = 0;
        for (int ca = 0; r == 0 && ca < CA_COUNT; ca++)
                if (both(id, ca))
                        r = lay_authority(id, ca, next, err);
        if (r == 0 && both(id, ROTATE_SA))
                r = lay_sa(id, next, err);
        if (r == 0 && id->rotation.phase[ROTATE_ENCRYPTION] != ROTATE_NOT)
                lay_encryption(id);
        return r;
}

/* ---- begun ---- */

static int make_dirs(const char *next, struct error *err)
{
        static const char *const names[] = { "", "/pki", "/pki/etcd" };
        int r = 0;
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(names); i++) {
                char *path CLEANUP(free_p) = xasprintf("%s%s", next, names[i]);
                r = store_dir(path, err);
        }
        return r;
}

static int write_pair(const char *dir, const char *path, const char *suffix, const char *text, struct error *err)
{
        char *full CLEANUP(free_p) = xasprintf("%s/pki/%s%s", dir, path, suffix);
        return store_write(full, text, strlen(text), FILE_SYNC, err);
}

/* The one that cluster.yaml brings in, or one that is made. */
static int make_authority(struct identity *id, const struct cluster *c, enum ca_id ca, const char *next, struct error *err)
{
        struct authority new = { 0 };
        int r = own_ca_load(c, ca, id->now, &new, err);
        if (r == -ENOENT && !err->code)
                r = authority_create(id->pki, ca, &c->certificates, id->now, &new, err);
        if (r == 0 && EVP_PKEY_eq(new.pkey, id->ca[ca].pkey) == 1) {
                r = error_set(err, EEXIST, EXIT_CONFIG, "%s is the authority that the cluster has already", ca_table[ca].field);
                error_hint(err, "let it name the new one's files, or leave it out and a new one is made");
        }
        if (r == 0)
                r = write_pair(next, ca_table[ca].path, ".key", new.key, err);
        if (r == 0)
                r = write_pair(next, ca_table[ca].path, ".crt", new.bundle, err);
        if (r == 0 && ca == CA_CLUSTER)
                r = cross_make(&id->ca[ca], &new, c->certificates.ca_lifetime, next, id->now, err);
        authority_release(&new);
        return r;
}

static int make_sa(struct identity *id, const struct cluster *c, const char *next, struct error *err)
{
        char *key = NULL, *pub CLEANUP(free_p) = NULL;
        int r = sa_make(id->pki, c->certificates.algorithm, &key, &pub, err);
        if (r == 0)
                r = write_pair(next, "sa", ".key", key, err);
        secret_free(&key);
        return r;
}

/* key7 → key8; what was adopted may be called anything. */
static char *next_key_name(const char *name)
{
        size_t n = strlen(name);
        while (n && name[n - 1] >= '0' && name[n - 1] <= '9')
                n--;
        return xasprintf("%.*s%ld", (int)n, name, strtol(name + n, NULL, 10) + 1);
}

static int make_all(struct identity *id, const struct cluster *c, unsigned set, struct error *err)
{
        char *next CLEANUP(free_p) = in_dir(id, "next");
        int r = make_dirs(next, err);
        for (int ca = 0; r == 0 && ca < CA_COUNT; ca++)
                if (set & 1U << ca)
                        r = make_authority(id, c, ca, next, err);
        if (r == 0 && set & 1U << ROTATE_SA)
                r = make_sa(id, c, next, err);
        if (r == 0 && set & 1U << ROTATE_ENCRYPTION) {
                id->rotation.encryption_key = encryption_key_new();
                id->rotation.encryption_key_name = next_key_name(id->encryption_key_name);
        }
        for (int i = 0; i < ROTATE_COUNT; i++)
                if (set & 1U << i)
                        id->rotation.phase[i] = ROTATE_TRUST;
        return r < 0 ? r : write_json(id, err);
}

static int begin(struct identity *id, const struct cluster *c, unsigned set, struct error *err)
{
        unsigned under_way = identity_rotating(id);
        if (!under_way)
                return make_all(id, c, set, err);
        if (!(set & ~under_way))
                return 0;
        for (int i = 0; i < ROTATE_COUNT; i++)
                if (under_way & 1U << i) {
                        error_set(err, EBUSY, EXIT_STATE, "the rotation of %s is under way (%s)", rows[i].name, phases[id->rotation.phase[i]]);
                        return error_hint(err, "finish it first: slipway up goes on with it%s",
                                i == ROTATE_SA ? ", and certs rotate-ca sa --finish takes the old key out at once" : "");
                }
        return 0;
}

int identity_rotate(const char *state, const struct cluster *c, unsigned set, time_t now, struct error *err)
{
        struct identity id = { .lock = -1 };
        int r = identity_open_rotating(state, c, now, &id, err);
        if (r < 0)
                return r;
        if (id.created) {
                r = error_set(err, ENOENT, EXIT_STATE, "there is no cluster yet whose keys could change");
                error_hint(err, "slipway up makes it");
        }
        if (r == 0)
                r = begin(&id, c, set, err);
        identity_release(&id);
        return r;
}

/* ---- on ---- */

static int settle(const struct identity *id, const struct cluster *c, struct error *err)
{
        struct str json CLEANUP(str_wipe_release) = { 0 };
        char *cross CLEANUP(free_p) = cross_path(id->dir);
        int r = 0;
        for (int ca = 0; r == 0 && ca < CA_COUNT; ca++) {
                if (id->rotation.phase[ca] != ROTATE_FINISH)
                        continue;
                if (ca == CA_CLUSTER && *id->ca[ca].chain) {
                        char *next CLEANUP(free_p) = in_dir(id, "next"), *from CLEANUP(free_p) = cross_path(next);
                        struct str text CLEANUP(str_release) = { 0 };
                        r = store_read(from, false, &text, err);
                        r = r == -ENOENT && !err->code ? 0 : r;
                        if (r == 0 && text.len)
                                r = store_write(cross, str_text(&text), text.len, FILE_SYNC, err);
                }
                if (r == 0)
                        r = write_pair(id->dir, ca_table[ca].path, ".key", id->ca[ca].key, err);
                if (r == 0)
                        r = write_pair(id->dir, ca_table[ca].path, ".crt", id->ca[ca].bundle, err);
        }
        if (r == 0 && id->rotation.phase[ROTATE_SA] == ROTATE_FINISH) {
                r = write_pair(id->dir, "sa", ".key", id->sa_key, err);
                if (r == 0)
                        r = write_pair(id->dir, "sa", ".pub", id->sa_pub, err);
        }
        if (r < 0 || id->rotation.phase[ROTATE_ENCRYPTION] != ROTATE_FINISH)
                return r;
        char *path CLEANUP(free_p) = in_dir(id, "identity.json");
        secrets_text(id, c->name, &json);
        return store_write(path, str_text(&json), json.len, FILE_SYNC, err);
}

/* Nothing is under way any more: what is under next/ has its place in pki/. */
static void forget(struct identity *id)
{
        struct error ignored CLEANUP(error_release) = { 0 };
        char *path CLEANUP(free_p) = in_dir(id, "rotation.json"), *next CLEANUP(free_p) = in_dir(id, "next");
        unlink(path);
        dir_remove(next, &ignored);
}

static bool tokens_live(struct identity *id, bool now_too)
{
        if (!id->rotation.issued)
                id->rotation.issued = id->now;
        return !now_too && id->now < id->rotation.issued + SA_KEEP;
}

int identity_rotate_on(struct identity *id, const struct cluster *c, bool now_too, struct error *err)
{
        struct rotation *r = &id->rotation;
        unsigned before = identity_rotating(id);
        bool more = false;
        int e = before ? settle(id, c, err) : 0;
        if (e < 0 || !before)
                return e;
        for (int i = 0; i < ROTATE_COUNT; i++) {
                bool waits = i == ROTATE_SA && r->phase[i] == ROTATE_ISSUE && tokens_live(id, now_too);
                if (r->phase[i] != ROTATE_NOT && !waits) {
                        r->phase[i] = r->phase[i] == ROTATE_FINISH ? ROTATE_NOT : (enum rotate_phase)(r->phase[i] + 1);
                        more |= r->phase[i] != ROTATE_NOT;
                }
        }
        if (identity_rotating(id))
                return (e = write_json(id, err)) < 0 ? e : more;
        forget(id);
        return 0;
}
