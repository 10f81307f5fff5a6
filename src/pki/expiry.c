/* Which certificate expires first, read from the files: nothing is issued. */
#include <openssl/err.h>
#include <openssl/pem.h>

#include "base/sha256.h"
#include "pki/pki.h"

struct soonest {
        time_t when;
        char *what;
};

static void soonest_consider(struct soonest *s, time_t when, const char *owner, const char *name)
{
        if (s->what && s->when <= when)
                return;
        free(s->what);
        s->when = when;
        s->what = *name ? xasprintf("%s: %s", owner, name) : xstrdup(owner);
}

static bool not_after(struct span cert, time_t *out)
{
        BIO *b = BIO_new_mem_buf(cert.p, (int)cert.n);
        X509 *x CLEANUP(x509_p) = b ? PEM_read_bio_X509(b, NULL, NULL, NULL) : NULL;
        if (x)
                *out = asn1_time(X509_get0_notAfter(x));
        BIO_free(b);
        ERR_clear_error();
        return x;
}

/* The NAME of the last "# NAME" line between the two. */
static char *name_between(const uint8_t *from, const uint8_t *to)
{
        char *name = NULL;
        for (const uint8_t *p = from; p && p + 2 < to;
                p = memchr(p, '\n', (size_t)(to - p)), p = p ? p + 1 : NULL)
                if (p[0] == '#' && p[1] == ' ') {
                        free(name);
                        name = xstrndup((const char *)p + 2, strcspn((const char *)p + 2, "\n"));
                }
        return name;
}

static void consider_text(struct soonest *s, const struct str *text, const char *owner)
{
        struct span rest = str_span(text), cert;
        while (pem_find(rest, "CERTIFICATE", &cert)) {
                char *name CLEANUP(free_p) = name_between(rest.p, cert.p);
                time_t when = 0;
                if (not_after(cert, &when))
                        soonest_consider(s, when, owner, name ? name : "");
                rest.n -= (size_t)(cert.p + cert.n - rest.p);
                rest.p = cert.p + cert.n;
        }
}

static int consider_file(struct soonest *s, const char *path, const char *owner, struct error *err)
{
        struct str text CLEANUP(str_wipe_release) = { 0 };
        int r = store_read(path, false, &text, err);
        if (r == 0)
                consider_text(s, &text, owner);
        return r == -ENOENT ? 0 : r;
}

/* Only nodes and users of cluster.yaml: certificates of removed ones are not in use. */
static int consider_leaves(
        struct soonest *s, const struct identity *id, const struct cluster *c, struct error *err)
{
        int r = 0;
        for (size_t i = 0; r == 0 && i < c->node_count; i++) {
                char *path CLEANUP(free_p) = store_name(id->dir, "nodes", c->nodes[i].name),
                           *owner CLEANUP(free_p) = xasprintf("node %s", c->nodes[i].name);
                r = consider_file(s, path, owner, err);
        }
        for (size_t i = 0; r == 0 && i < c->auth.users.n; i++) {
                const char *name = c->auth.users.v[i].name;
                char *path CLEANUP(free_p) = store_name(id->dir, "users", name),
                           *owner CLEANUP(free_p) = xasprintf("user %s", name);
                r = consider_file(s, path, owner, err);
        }
        return r;
}

int identity_soonest(const struct identity *id, const struct cluster *c, time_t *when, char **what,
        struct error *err)
{
        static const char *const others[][2] = { { "admin.pem", "administrator" },
                { "pki/lb.crt", "load balancer" }, { "pki/dex.crt", "dex" } };
        struct soonest s = { 0 };
        int r = 0;
        for (int ca = 0; ca < CA_COUNT; ca++)
                if (id->ca[ca].x509)
                        soonest_consider(&s, asn1_time(X509_get0_notAfter(id->ca[ca].x509)),
                                "certificate authority", ca_table[ca].path);
        r = consider_leaves(&s, id, c, err);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(others); i++) {
                char *path CLEANUP(free_p) = path_join(id->dir, others[i][0]);
                r = consider_file(&s, path, others[i][1], err);
        }
        if (r == 0 && !s.what)
                r = -ENOENT;
        if (r < 0) {
                free(s.what);
                return r;
        }
        *when = s.when;
        *what = s.what;
        return 0;
}

char *identity_ca_hash(const struct identity *id, struct error *err)
{
        struct str spki CLEANUP(str_release) = { 0 };
        char hex[SHA256_HEX];
        if (key_spki(id->ca[CA_CLUSTER].pkey, &spki, err) < 0)
                return NULL;
        sha256_hex(spki.data, spki.len, hex);
        return xasprintf("sha256:%s", hex);
}
