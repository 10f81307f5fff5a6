/* The user's own CA: read from the paths in cluster.yaml at the first run, and stored in the state
 * from then on. Also the CAs of an adopted cluster. */
#include <pwd.h>

#include "pki/pki.h"

static const struct own_ca *own_ca_of(const struct cluster *c, enum ca_id ca)
{
        const struct certificates *s = &c->certificates;
        return ca == CA_CLUSTER ? &s->ca : ca == CA_ETCD ? &s->etcd_ca : &s->front_proxy_ca;
}

/* Relative paths start at the directory of cluster.yaml; "~/" is the user's home. */
static char *own_ca_path(const struct cluster *c, const char *path)
{
        if (has_prefix(path, "~/")) {
                const char *home = getenv("HOME");
                struct passwd *pw = home && *home ? NULL : getpwuid(geteuid());
                return path_join(pw ? pw->pw_dir : home ? home : "", path + 2);
        }
        return *path == '/' || !c->dir || !*c->dir ? xstrdup(path) : path_join(c->dir, path);
}

static int own_ca_read(
        const char *field, const char *part, const char *path, struct str *out, struct error *err)
{
        if ((streq(part, "key") ? file_read_secret : file_read)(path, PEM_MAX, out, err) == 0)
                return 0;
        err->status = EXIT_CONFIG;
        error_wrap(err, "%s.%s", field, part);
        return err->hint ? -err->code
                         : error_hint(err, "relative paths start at the directory of cluster.yaml");
}

int own_ca_load(const struct cluster *c, enum ca_id ca, time_t now, struct authority *out,
        struct error *err)
{
        const struct own_ca *o = own_ca_of(c, ca);
        const char *field = ca_table[ca].field;
        if (!o->certificate && !o->key)
                return -ENOENT;
        if (!o->certificate || !o->key) {
                error_set(err, EINVAL, EXIT_CONFIG, "%s has a %s but no %s", field,
                        o->key ? "key" : "certificate", o->key ? "certificate" : "key");
                return error_hint(
                        err, "set both: slipway signs the certificates of the nodes with this CA");
        }
        char *cert_path CLEANUP(free_p) = own_ca_path(c, o->certificate),
                        *key_path CLEANUP(free_p) = own_ca_path(c, o->key);
        struct str cert CLEANUP(str_release) = { 0 }, key CLEANUP(str_wipe_release) = { 0 };
        char *hint CLEANUP(free_p) = xasprintf(
                "give a CA that can sign the cluster's certificates, or leave %s out and slipway makes one",
                field);
        struct ca_source src = { cert_path, key_path, hint, "ask its issuer to renew it",
                EXIT_CONFIG };
        int r = own_ca_read(field, "certificate", cert_path, &cert, err);
        if (r == 0)
                r = own_ca_read(field, "key", key_path, &key, err);
        if (r == 0) {
                r = authority_parse(&src, &cert, &key, now, out, err);
                if (r < 0)
                        error_wrap(err, "%s", field);
        }
        return r;
}

/* Whether both texts have the same certificates in the same order. */
static bool same_certificates(struct span a, struct span b)
{
        struct str da CLEANUP(str_release) = { 0 }, db CLEANUP(str_release) = { 0 };
        struct span ba, bb;
        for (;;) {
                bool more_a = pem_find(a, "CERTIFICATE", &ba),
                     more_b = pem_find(b, "CERTIFICATE", &bb);
                if (!more_a || !more_b)
                        return more_a == more_b;
                if (!pem_decode(ba, &da) || !pem_decode(bb, &db) || da.len != db.len ||
                        memcmp(da.data, db.data, da.len))
                        return false;
                a = (struct span){ ba.p + ba.n, a.n - (size_t)(ba.p + ba.n - a.p) };
                b = (struct span){ bb.p + bb.n, b.n - (size_t)(bb.p + bb.n - b.p) };
        }
}

/* After the first run the given files may be removed (a key is best stored offline), but
 * must not change. */
int own_ca_same(
        const struct cluster *c, enum ca_id ca, const struct authority *stored, struct error *err)
{
        const struct own_ca *o = own_ca_of(c, ca);
        if (!o->certificate)
                return 0;
        char *path CLEANUP(free_p) = own_ca_path(c, o->certificate);
        struct str text CLEANUP(str_release) = { 0 };
        if (access(path, F_OK) < 0 && errno == ENOENT)
                return 0;
        int r = own_ca_read(ca_table[ca].field, "certificate", path, &text, err);
        if (r < 0)
                return r;
        struct span have = { (const uint8_t *)stored->bundle, strlen(stored->bundle) };
        if (same_certificates(str_span(&text), have))
                return 0;
        error_set(err, EEXIST, EXIT_CONFIG, "%s: %s is not the CA that this cluster was made with",
                ca_table[ca].field, path);
        return error_hint(
                err, "restore the original file, or replace the CA with slipway certs rotate-ca");
}

/* ---- CAs of an adopted cluster ---- */

int given_load(struct identity *id, enum ca_id ca, struct error *err)
{
        const struct identity_given *g = id->pki->given;
        static const struct ca_source src = { "the cluster's CA", "its key",
                "put the CA's key on the node: slipway cannot adopt a cluster without it",
                "renew it first, with the tool that made the cluster", EXIT_STEP };
        if (!g || !g->ca_cert[ca] || !g->ca_key[ca])
                return -ENOENT;
        struct str cert CLEANUP(str_release) = { 0 }, key CLEANUP(str_wipe_release) = { 0 };
        str_add(&cert, g->ca_cert[ca]);
        str_add(&key, g->ca_key[ca]);
        int r = authority_parse(&src, &cert, &key, id->now, &id->ca[ca], err);
        return r < 0 ? error_wrap(err, "%s", ca_table[ca].path) : 0;
}

/* An Identity that already exists must be that of the same cluster. */
int given_same(const struct identity *id, struct error *err)
{
        const struct identity_given *g = id->pki->given;
        for (int ca = 0; g && ca < CA_COUNT; ca++) {
                if (!g->ca_cert[ca] || !g->ca_key[ca])
                        continue;
                struct span have = { (const uint8_t *)id->ca[ca].bundle,
                        strlen(id->ca[ca].bundle) };
                struct span given = { (const uint8_t *)g->ca_cert[ca], strlen(g->ca_cert[ca]) };
                if (same_certificates(given, have))
                        continue;
                error_set(err, EEXIST, EXIT_STATE,
                        "%s holds the Identity of another cluster: its CA %s is a different one",
                        id->dir, ca_table[ca].path);
                return error_hint(err,
                        "give the cluster another name (--name), or another state directory (--state)");
        }
        return 0;
}
