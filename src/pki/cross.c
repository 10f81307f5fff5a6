/* The cross-certificate: the old cluster CA certifies the new one, and servers append it to their
 * own certificate. So clients that trust only the old CA, such as a pod that read ca.crt once at
 * its start, can verify servers of the new one. It admits no clients. It stays until the old CA
 * would have expired, or until the next rotation replaces it. */
#include <openssl/err.h>
#include <openssl/pem.h>

#include "pki/pki.h"

char *cross_path(const char *dir) { return xasprintf("%s/pki/ca.cross.crt", dir); }

/* Only if it is for this CA (a killed run may have left another) and has not expired. */
int cross_read(const char *dir, time_t now, struct authority *a, struct error *err)
{
        char *path CLEANUP(free_p) = cross_path(dir);
        struct str text CLEANUP(str_release) = { 0 };
        int r = store_read(path, false, &text, err);
        if (r < 0)
                return r == -ENOENT && !err->code ? 0 : r;
        BIO *b = BIO_new_mem_buf(str_text(&text), (int)text.len);
        X509 *x CLEANUP(x509_p) = b ? PEM_read_bio_X509(b, NULL, NULL, NULL) : NULL;
        if (x && X509_check_private_key(x, a->pkey) == 1 &&
                asn1_time(X509_get0_notAfter(x)) > now) {
                char *chain = xasprintf("%s%s", str_text(&text), a->chain);
                free(a->chain);
                a->chain = chain;
        }
        BIO_free(b);
        ERR_clear_error();
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
        char *path CLEANUP(free_p) = cross_path(dir);
        return store_write(path, str_text(&pem), pem.len, FILE_SYNC, err);
}
