/* An authority the user brings in: read from the paths in cluster.yaml at the first run, and kept in the state from then on. */
#include <pwd.h>

#include "pki/pki.h"

static const struct own_ca *own_ca(const struct cluster *c, enum ca_id ca)
{
        const struct certificates *s = &c->certificates;
        return ca == CA_CLUSTER ? &s->ca : ca == CA_ETCD ? &s->etcd_ca : &s->front_proxy_ca;
}

/* Relative to the file that names it; "~/" is the user's home. */
static char *expand(const struct cluster *c, const char *path)
{
        if (has_prefix(path, "~/")) {
                const char *home = getenv("HOME");
                struct passwd *pw = home && *home ? NULL : getpwuid(geteuid());
                return path_join(pw ? pw->pw_dir : home ? home : "", path + 2);
        }
        return *path == '/' || !c->dir || !*c->dir ? xstrdup(path) : path_join(c->dir, path);
}

static int read_given(const char *field, const char *part, const char *path, struct str *out, struct error *err)
{
        if (file_read(path, PEM_MAX, out, err) == 0)
                return 0;
        err->status = EXIT_CONFIG;
        error_wrap(err, "%s.%s", field, part);
        return error_hint(err, "relative paths start at the directory of cluster.yaml");
}

int own_ca_load(const struct cluster *c, enum ca_id ca, time_t now, struct authority *out, struct error *err)
{
        const struct own_ca *o = own_ca(c, ca);
        const char *field = ca_table[ca].field;
        if (!o->certificate && !o->key)
                return -ENOENT;
        if (!o->certificate || !o->key) {
                error_set(err, EINVAL, EXIT_CONFIG, "%s has a %s but no %s", field, o->key ? "key" : "certificate", o->key ? "certificate" : "key");
                return error_hint(err, "give both: certificates of the nodes are signed here");
        }
        char *cert_path CLEANUP(free_p) = expand(c, o->certificate), *key_path CLEANUP(free_p) = expand(c, o->key);
        struct str cert CLEANUP(str_release) = { 0 }, key CLEANUP(str_wipe_release) = { 0 };
        char *hint CLEANUP(free_p) = xasprintf("put an authority that can sign the cluster's certificates there, or leave %s out and one is made", field);
        struct ca_source src = { cert_path, key_path, hint, "have it renewed by whoever issued it", EXIT_CONFIG };
        int r = read_given(field, "certificate", cert_path, &cert, err);
        if (r == 0)
                r = read_given(field, "key", key_path, &key, err);
        if (r == 0) {
                r = authority_parse(&src, &cert, &key, now, out, err);
                if (r < 0)
                        error_wrap(err, "%s", field);
        }
        return r;
}

/* The certificates of both texts, one after the other. */
static bool same_certificates(struct span a, struct span b)
{
        struct str da CLEANUP(str_release) = { 0 }, db CLEANUP(str_release) = { 0 };
        struct span ba, bb;
        for (;;) {
                bool more_a = pem_find(a, "CERTIFICATE", &ba), more_b = pem_find(b, "CERTIFICATE", &bb);
                if (!more_a || !more_b)
                        return more_a == more_b;
                if (!pem_decode(ba, &da) || !pem_decode(bb, &db) || da.len != db.len || memcmp(da.data, db.data, da.len))
                        return false;
                a = (struct span){ ba.p + ba.n, a.n - (size_t)(ba.p + ba.n - a.p) };
                b = (struct span){ bb.p + bb.n, b.n - (size_t)(bb.p + bb.n - b.p) };
        }
}

/* Once taken in, the given files may go away (a key is best kept offline), but not say something else. */
int own_ca_same(const struct cluster *c, enum ca_id ca, const struct authority *stored, struct error *err)
{
        const struct own_ca *o = own_ca(c, ca);
        if (!o->certificate)
                return 0;
        char *path CLEANUP(free_p) = expand(c, o->certificate);
        struct str text CLEANUP(str_release) = { 0 };
        if (access(path, F_OK) < 0 && errno == ENOENT)
                return 0;
        int r = read_given(ca_table[ca].field, "certificate", path, &text, err);
        if (r < 0)
                return r;
        struct span have = { (const uint8_t *)stored->bundle, strlen(stored->bundle) };
        if (same_certificates(str_span(&text), have))
                return 0;
        error_set(err, EEXIST, EXIT_CONFIG, "%s: %s is not the authority this cluster was made with", ca_table[ca].field, path);
        return error_hint(err, "put the first one back; changing an authority of a cluster that exists is a rotation: certs rotate-ca");
}

/* ---- of a cluster that is taken over ---- */

int given_load(struct identity *id, enum ca_id ca, struct error *err)
{
        const struct identity_given *g = id->pki->given;
        static const struct ca_source src = { "the cluster's authority", "its key",
                "an authority whose key is kept elsewhere cannot be taken over: bring the key", "renew it with the tool that made the cluster first",
                EXIT_STEP };
        if (!g || !g->ca_cert[ca] || !g->ca_key[ca])
                return -ENOENT;
        struct str cert CLEANUP(str_release) = { 0 }, key CLEANUP(str_wipe_release) = { 0 };
        str_add(&cert, g->ca_cert[ca]);
        str_add(&key, g->ca_key[ca]);
        int r = authority_parse(&src, &cert, &key, id->now, &id->ca[ca], err);
        return r < 0 ? error_wrap(err, "%s", ca_table[ca].path) : 0;
}

/* An Identity that was there before must be the same cluster's. */
int given_same(const struct identity *id, struct error *err)
{
        const struct identity_given *g = id->pki->given;
        for (int ca = 0; g && ca < CA_COUNT; ca++) {
                if (!g->ca_cert[ca] || !g->ca_key[ca])
                        continue;
                struct span have = { (const uint8_t *)id->ca[ca].bundle, strlen(id->ca[ca].bundle) };
                struct span given = { (const uint8_t *)g->ca_cert[ca], strlen(g->ca_cert[ca]) };
                if (same_certificates(given, have))
                        continue;
                error_set(err, EEXIST, EXIT_STATE, "%s holds the Identity of another cluster: its %s is not this one's", id->dir, ca_table[ca].path);
                return error_hint(err, "give the cluster another name (--name), or another state directory (--state)");
        }
        return 0;
}
