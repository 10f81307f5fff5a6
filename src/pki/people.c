/* Users who are no longer in cluster.yaml. Their certificates cannot be revoked, so they stay on
 * record: users/ has a user's file until the user's access is removed, past/ the certificate that
 * expires last among those that are no longer in use. */
#include <dirent.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include "pki/pki.h"

#define GROUPS_MAX 64

static X509 *parse_cert(struct span text)
{
        struct span block;
        if (!pem_find(text, "CERTIFICATE", &block))
                return NULL;
        BIO *b = BIO_new_mem_buf(block.p, (int)block.n);
        X509 *x = b ? PEM_read_bio_X509(b, NULL, NULL, NULL) : NULL;
        BIO_free(b);
        ERR_clear_error();
        return x;
}

static X509 *read_cert(const char *path)
{
        struct error ignored CLEANUP(error_release) = { 0 };
        struct str text CLEANUP(str_wipe_release) = { 0 };
        return store_read(path, false, &text, &ignored) < 0 ? NULL : parse_cert(str_span(&text));
}

/* Issued by a CA whose clients are accepted now. */
static bool cert_let_in(const struct identity *id, X509 *x)
{
        struct span rest = { (const uint8_t *)id->ca[CA_CLUSTER].clients,
                strlen(id->ca[CA_CLUSTER].clients) },
                    block;
        bool ok = false;
        while (!ok && pem_find(rest, "CERTIFICATE", &block)) {
                X509 *ca CLEANUP(x509_p) = parse_cert(block);
                ok = ca && X509_verify(x, X509_get0_pubkey(ca)) == 1;
                rest.n -= (size_t)(block.p + block.n - rest.p);
                rest.p = block.p + block.n;
        }
        ERR_clear_error();
        return ok;
}

bool identity_lets_in(const struct identity *id, const char *pem)
{
        X509 *x CLEANUP(x509_p) = parse_cert((struct span){ (const uint8_t *)pem, strlen(pem) });
        return x && asn1_time(X509_get0_notAfter(x)) > id->now && cert_let_in(id, x);
}

static char *entry_text(struct arena *a, const X509_NAME *n, int at)
{
        const ASN1_STRING *s = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(n, at));
        char *text = arena_strndup(
                a, (const char *)ASN1_STRING_get0_data(s), (size_t)ASN1_STRING_length(s));
        for (char *p = text; *p; p++) /* shown on a terminal */
                *p = (unsigned char)*p < ' ' || *p == 0x7f ? '?' : *p;
        return text;
}

static bool outsider_describe(struct arena *a, const char *path, struct outsider *out)
{
        X509 *x CLEANUP(x509_p) = read_cert(path);
        const X509_NAME *n = x ? X509_get_subject_name(x) : NULL;
        int at = n ? X509_NAME_get_index_by_NID((X509_NAME *)n, NID_commonName, -1) : -1;
        if (at < 0)
                return false;
        *out = (struct outsider){ .file = arena_strdup(a, path),
                .name = entry_text(a, n, at),
                .until = asn1_time(X509_get0_notAfter(x)) };
        out->groups.v = arena_array(a, const char *, GROUPS_MAX);
        for (at = -1; out->groups.n < GROUPS_MAX && (at = X509_NAME_get_index_by_NID((X509_NAME *)n,
                                                             NID_organizationName, at)) >= 0;)
                out->groups.v[out->groups.n++] = entry_text(a, n, at);
        return true;
}

static bool user_in_file(const struct cluster *c, const char *name)
{
        for (size_t i = 0; i < c->auth.users.n; i++)
                if (streq(c->auth.users.v[i].name, name))
                        return true;
        return false;
}

static time_t past_until(const struct identity *id, const char *name)
{
        char *path CLEANUP(free_p) = store_name(id->dir, "past", name);
        X509 *x CLEANUP(x509_p) = read_cert(path);
        return x && cert_let_in(id, x) ? asn1_time(X509_get0_notAfter(x)) : 0;
}

size_t identity_outsiders(
        const struct identity *id, const struct cluster *c, struct arena *a, struct outsider **out)
{
        char *dir CLEANUP(free_p) = path_join(id->dir, "users");
        struct dirent **list = NULL;
        int found = scandir(dir, &list, NULL, alphasort);
        size_t n = 0;
        *out = arena_array(a, struct outsider, found > 0 ? (size_t)found : 1);
        for (int i = 0; i < found; i++) {
                char *path CLEANUP(free_p) = path_join(dir, list[i]->d_name);
                struct outsider *o = &(*out)[n];
                if (has_suffix(path, ".pem") && outsider_describe(a, path, o) &&
                        !user_in_file(c, o->name)) {
                        time_t past = past_until(id, o->name);
                        o->until = past > o->until ? past : o->until;
                        n++;
                }
                free(list[i]);
        }
        free(list);
        return n;
}

/* Only the certificate: the key is no longer needed. */
int past_keep(const struct identity *id, const char *name, const char *file, time_t against,
        struct error *err)
{
        X509 *x CLEANUP(x509_p) = read_cert(file);
        time_t until = x ? asn1_time(X509_get0_notAfter(x)) : 0;
        if (!x || id->looking || until <= against || until <= id->now ||
                until <= past_until(id, name) || !cert_let_in(id, x))
                return 0;
        char *dir CLEANUP(free_p) = path_join(id->dir, "past"),
                  *path CLEANUP(free_p) = store_name(id->dir, "past", name);
        struct str pem CLEANUP(str_release) = { 0 };
        unsigned char *der = NULL;
        int n = i2d_X509(x, &der),
            r = n > 0 ? store_dir(dir, err) : openssl_error(err, "cannot encode a certificate");
        if (r == 0)
                pem_add(&pem, "CERTIFICATE", der, (size_t)n);
        OPENSSL_free(der);
        return r < 0 ? r : store_write(path, str_text(&pem), pem.len, FILE_SYNC, err);
}

int identity_shut_out(struct identity *id, const struct outsider *o, struct error *err)
{
        int r = past_keep(id, o->name, o->file, 0, err);
        if (r == 0 && unlink(o->file) < 0 && errno != ENOENT)
                r = error_set(
                        err, errno, EXIT_STATE, "cannot remove %s: %s", o->file, strerror(errno));
        return r;
}
