/* The cross-certificate: the old cluster CA certifies the new one, and servers append it to their
 * own certificate. So clients that trust only the old CA, such as a pod that read ca.crt once at
 * its start, can verify servers of the new one. It admits no clients. Those of earlier rotations
 * follow it, for pods that are older still. Each stays until the CA that issued it would have
 * expired. */
#include <openssl/err.h>
#include <openssl/pem.h>

#include "pki/pki.h"

char *cross_path(const char *dir) { return xasprintf("%s/pki/ca.cross.crt", dir); }

#define CROSS_MAX 4 /* servers send them in every handshake */

/* The first must be for this CA (a killed run may have left another). */
static bool cross_valid(X509 *x, size_t at, time_t now, const struct authority *a)
{
        return (at || X509_check_private_key(x, a->pkey) == 1) &&
               asn1_time(X509_get0_notAfter(x)) > now;
}

/* A chain ends at the first that is not valid: those after it lead nowhere. */
static void cross_add(struct span text, time_t now, const struct authority *a, BIO *out)
{
        BIO *b = BIO_new_mem_buf(text.p, (int)text.n);
        bool more = b;
        for (size_t i = 0; more && i < CROSS_MAX; i++) {
                X509 *x CLEANUP(x509_p) = PEM_read_bio_X509(b, NULL, NULL, NULL);
                more = x && cross_valid(x, i, now, a) && PEM_write_bio_X509(out, x) == 1;
        }
        BIO_free(b);
        ERR_clear_error();
}

int cross_read(const char *dir, time_t now, struct authority *a, struct error *err)
{
        char *path CLEANUP(free_p) = cross_path(dir);
        struct str text CLEANUP(str_release) = { 0 };
        char *data;
        int r = store_read(path, false, &text, err);
        if (r < 0)
                return r == -ENOENT && !err->code ? 0 : r;
        BIO *out = BIO_new(BIO_s_mem());
        if (!out)
                return error_set(err, ENOMEM, EXIT_INTERNAL, "out of memory");
        cross_add(str_span(&text), now, a, out);
        long n = BIO_get_mem_data(out, &data);
        char *chain = xasprintf("%.*s%s", (int)n, n > 0 ? data : "", a->chain);
        free(a->chain);
        a->chain = chain;
        BIO_free(out);
        return 0;
}

int cross_make(const struct authority *old, struct authority *new, int64_t lifetime,
        const char *dir, time_t now, struct error *err)
{
        struct issuer issuer CLEANUP(issuer_release) = { 0 };
        struct want w CLEANUP(want_release) = { .authority = true, .lifetime = lifetime };
        struct str spki CLEANUP(str_release) = { 0 }, der CLEANUP(str_release) = { 0 },
                        pem CLEANUP(str_release) = { 0 };
        unsigned char *name = NULL;
        int n = i2d_X509_NAME(X509_get_subject_name(new->x509), &name),
            r = issuer_init(&issuer, old->x509, old->pkey, err);
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
        str_add(&pem, old->chain);
        char *path CLEANUP(free_p) = cross_path(dir);
        return store_write(path, str_text(&pem), pem.len, FILE_SYNC, err);
}
