/* The three CAs: made, loaded and checked. The user's own CAs pass the same checks. */
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "pki/pki.h"

#define CHAIN_MAX 8

const struct ca_row ca_table[CA_COUNT] = {
        [CA_CLUSTER] = { "ca", "kubernetes", "certificates.ca" },
        [CA_ETCD] = { "etcd/ca", "etcd-ca", "certificates.etcdCA" },
        [CA_FRONT_PROXY] = { "front-proxy-ca", "front-proxy-ca", "certificates.frontProxyCA" },
};

struct chain {
        X509 *x[CHAIN_MAX];
        size_t n;
};

static void chain_release(struct chain *c)
{
        for (size_t i = 0; i < c->n; i++)
                X509_free(c->x[i]);
}

static int authority_unfit(const struct ca_source *src, struct error *err, const char *path,
        const char *why, const char *hint)
{
        error_set(err, EINVAL, src->status, "cannot use %s: %s", path, why);
        return error_hint(err, "%s", hint ? hint : src->hint);
}

static int chain_read(
        const struct ca_source *src, const struct str *text, struct chain *out, struct error *err)
{
        BIO *b = BIO_new_mem_buf(str_text(text), (int)text->len);
        X509 *x = NULL;
        while (b && out->n < CHAIN_MAX && (x = PEM_read_bio_X509(b, NULL, NULL, NULL)))
                out->x[out->n++] = x;
        bool end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
        ERR_clear_error();
        BIO_free(b);
        if (x)
                return authority_unfit(src, err, src->cert_path,
                        "it holds more than 8 certificates",
                        "keep the signing certificate and its chain only");
        if (!text->len)
                return authority_unfit(src, err, src->cert_path, "it is empty", NULL);
        if (out->n == 0)
                return authority_unfit(
                        src, err, src->cert_path, "it holds no certificate in PEM form", NULL);
        if (!end)
                return authority_unfit(
                        src, err, src->cert_path, "one of its certificates is damaged", NULL);
        return 0;
}

static const char *common_name(X509 *x, char buf[128])
{
        X509_NAME_oneline(X509_get_subject_name(x), buf, 128);
        return buf;
}

/* Every certificate of the file must be a CA that may sign, and be valid now. */
static int check_one(const struct ca_source *src, X509 *x, time_t now, struct error *err)
{
        char name[128], when[32];
        struct tm tm;
        time_t from = asn1_time(X509_get0_notBefore(x)), to = asn1_time(X509_get0_notAfter(x));
        uint32_t flags = X509_get_extension_flags(x), purpose = X509_get_extended_key_usage(x);
        const char *why = NULL;
        if (flags & EXFLAG_INVALID)
                why = "has extensions that cannot be read";
        else if (!(flags & EXFLAG_BCONS) || !(flags & EXFLAG_CA))
                why = "is not a CA: basicConstraints does not say CA:TRUE";
        else if (!(X509_get_key_usage(x) & KU_KEY_CERT_SIGN))
                why = "may not sign certificates: keyUsage lacks keyCertSign";
        else if (purpose != UINT32_MAX && !(purpose & XKU_ANYEKU) &&
                 (purpose & (XKU_SSL_SERVER | XKU_SSL_CLIENT)) != (XKU_SSL_SERVER | XKU_SSL_CLIENT))
                why = "may not sign for both servers and clients: extendedKeyUsage lacks serverAuth or clientAuth";
        common_name(x, name);
        if (why) {
                error_set(err, EINVAL, src->status, "cannot use %s: %s %s", src->cert_path, name,
                        why);
                return error_hint(err, "%s", src->hint);
        }
        if (from <= now && now < to)
                return 0;
        strftime(
                when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", gmtime_r(now < to ? &from : &to, &tm));
        error_set(err, EINVAL, src->status, "cannot use %s: %s %s %s", src->cert_path, name,
                now < to ? "is not valid before" : "expired on", when);
        return error_hint(err, "%s", now < to ? "check this computer's clock" : src->expired);
}

static bool cert_issued_by(X509 *issuer, X509 *x)
{
        bool ok = X509_check_issued(issuer, x) == X509_V_OK &&
                  X509_verify(x, X509_get0_pubkey(issuer)) == 1;
        ERR_clear_error();
        return ok;
}

/* Each certificate is issued by the next, and no pathlen is exceeded. */
static int check_chain(
        const struct ca_source *src, const struct chain *c, time_t now, struct error *err)
{
        char lower[128], upper[128];
        for (size_t i = 0; i < c->n; i++) {
                int r = check_one(src, c->x[i], now, err);
                if (r < 0)
                        return r;
                if (i && !cert_issued_by(c->x[i], c->x[i - 1])) {
                        error_set(err, EINVAL, src->status,
                                "cannot use %s: certificate %zu (%s) was not issued by certificate %zu (%s)",
                                src->cert_path, i, common_name(c->x[i - 1], lower), i + 1,
                                common_name(c->x[i], upper));
                        return error_hint(err,
                                "put the signing certificate first, then the one that issued it, and the root last");
                }
                long allowed = X509_get_pathlen(c->x[i]);
                if (i && allowed >= 0 && (size_t)allowed < i) {
                        error_set(err, EINVAL, src->status,
                                "cannot use %s: %s allows %ld CAs below it (pathlen), and there are %zu",
                                src->cert_path, common_name(c->x[i], upper), allowed, i);
                        return error_hint(err, "%s", src->hint);
                }
        }
        return 0;
}

static int key_read(
        const struct ca_source *src, const struct str *text, EVP_PKEY **out, struct error *err)
{
        if (!text->len)
                return authority_unfit(src, err, src->key_path, "it is empty", NULL);
        if (key_encrypted(str_span(text))) {
                error_set(err, EINVAL, src->status,
                        "cannot use %s: the key is encrypted with a password", src->key_path);
                return error_hint(err,
                        "decrypt it into a file only you can read: (umask 077; openssl pkey -in %s -out ca-plain.key)",
                        src->key_path);
        }
        *out = key_parse(str_span(text));
        if (!*out)
                return authority_unfit(
                        src, err, src->key_path, "it holds no private key in PEM form", NULL);
        if (!issuer_supports(*out))
                return authority_unfit(src, err, src->key_path,
                        "slipway cannot sign with this kind of key",
                        "use ECDSA with P-256, P-384 or P-521, or RSA with at least 2048 bits");
        return 0;
}

static int check_key(
        const struct ca_source *src, const struct chain *c, EVP_PKEY *k, struct error *err)
{
        size_t i = 0;
        while (i < c->n && X509_check_private_key(c->x[i], k) != 1)
                i++;
        ERR_clear_error();
        if (i == 0)
                return 0;
        if (i < c->n) {
                error_set(err, EINVAL, src->status,
                        "cannot use %s: the key in %s belongs to certificate %zu of the file, not to the first",
                        src->cert_path, src->key_path, i + 1);
                return error_hint(err,
                        "put the signing certificate first, then the one that issued it, and the root last");
        }
        error_set(err, EINVAL, src->status,
                "cannot use %s: the key does not belong to the certificate in %s", src->key_path,
                src->cert_path);
        return error_hint(err, "%s", src->hint);
}

static int add_cert(struct str *s, X509 *x, struct error *err)
{
        unsigned char *der = NULL;
        int n = i2d_X509(x, &der);
        if (n <= 0)
                return openssl_error(err, "cannot encode a certificate");
        pem_add(s, "CERTIFICATE", der, (size_t)n);
        OPENSSL_free(der);
        return 0;
}

/* PEM texts in one form, whatever the files look like. */
static int authority_fill(struct authority *a, struct chain *c, EVP_PKEY *k, struct error *err)
{
        struct str bundle CLEANUP(str_release) = { 0 }, chain CLEANUP(str_release) = { 0 },
                          key CLEANUP(str_wipe_release) = { 0 };
        int r = key_pem_any(k, &key, err);
        size_t first = 0;
        for (size_t i = 0; r == 0 && i < c->n; i++) {
                size_t start = bundle.len;
                r = add_cert(&bundle, c->x[i], err);
                if (i == 0)
                        first = bundle.len;
                if (!(X509_get_extension_flags(c->x[i]) & EXFLAG_SS))
                        str_add(&chain, bundle.data + start);
        }
        if (r < 0)
                return r;
        a->cert = xstrndup(bundle.data, first);
        a->clients = xstrdup(a->cert);
        a->bundle = str_take(&bundle);
        a->chain = str_take(&chain);
        a->key = str_take(&key);
        a->x509 = TAKE(c->x[0]);
        return 0;
}

int authority_parse(const struct ca_source *src, const struct str *cert, const struct str *key,
        time_t now, struct authority *out, struct error *err)
{
        struct chain c CLEANUP(chain_release) = { 0 };
        EVP_PKEY *k CLEANUP(pkey_p) = NULL;
        int r = chain_read(src, cert, &c, err);
        if (r == 0)
                r = key_read(src, key, &k, err);
        if (r == 0)
                r = check_key(src, &c, k, err);
        if (r == 0)
                r = check_chain(src, &c, now, err);
        if (r == 0)
                r = authority_fill(out, &c, k, err);
        if (r == 0)
                out->pkey = TAKE(k);
        return r;
}

int authority_create(struct pki *p, enum ca_id ca, const struct certificates *c, time_t now,
        struct authority *out, struct error *err)
{
        struct want w CLEANUP(want_release) = {
                .authority = true, .lifetime = c->ca_lifetime, .algorithm = c->algorithm
        };
        EVP_PKEY *k CLEANUP(pkey_p) = NULL;
        struct str der CLEANUP(str_release) = { 0 }, cert CLEANUP(str_release) = { 0 },
                       key CLEANUP(str_wipe_release) = { 0 };
        static const struct ca_source src = { "a new certificate", "a new key",
                "this is a bug in slipway: report it", "set a longer certificates.caLifetime",
                EXIT_INTERNAL };
        want_cn(&w, ca_table[ca].cn);
        int r = key_generate(p, c->algorithm, &k, err);
        if (r == 0)
                r = cert_issue_self(&w, k, now, &der, err);
        if (r == 0)
                r = key_pem(k, c->algorithm, &key, err);
        if (r < 0)
                return r;
        pem_add(&cert, "CERTIFICATE", der.data, der.len);
        return authority_parse(&src, &cert, &key, now, out, err);
}

void authority_both(
        const struct authority *old, const struct authority *new, struct authority *into)
{
        char *bundle = xasprintf("%s%s", old->bundle, new->bundle),
             *clients = xasprintf("%s%s", old->cert, new->cert);
        free(into->bundle);
        free(into->clients);
        into->bundle = bundle;
        into->clients = clients;
}

static int read_part(
        const char *path, bool secret, const char *other, struct str *out, struct error *err)
{
        int r = store_read(path, secret, out, err);
        if (r != -ENOENT || err->code)
                return r;
        error_set(err, ENOENT, EXIT_STATE, "%s is missing, and %s cannot be used without it", path,
                other);
        return error_hint(
                err, "restore it from a backup: a CA that is in use cannot be made again");
}

int authority_load(
        const char *dir, enum ca_id ca, time_t now, struct authority *out, struct error *err)
{
        char *cert_path CLEANUP(free_p) = xasprintf("%s/pki/%s.crt", dir, ca_table[ca].path);
        char *key_path CLEANUP(free_p) = xasprintf("%s/pki/%s.key", dir, ca_table[ca].path);
        struct str cert CLEANUP(str_release) = { 0 }, key CLEANUP(str_wipe_release) = { 0 };
        struct ca_source src = { cert_path, key_path,
                "restore both files from a backup: a CA that is in use cannot be made again",
                "check this computer's clock; if it is right, every certificate of this CA has expired too: make a new CA with slipway certs rotate-ca",
                EXIT_STATE };
        int r = read_part(cert_path, false, key_path, &cert, err);
        if (r == 0)
                r = read_part(key_path, true, cert_path, &key, err);
        return r < 0 ? r : authority_parse(&src, &cert, &key, now, out, err);
}

/* etcd accepts every client of its CA, and the front proxy may act as any user: neither may share a
 * CA with users. */
int authorities_distinct(const struct identity *id, enum exit_status status, struct error *err)
{
        for (int a = 0; a < CA_COUNT; a++)
                for (int b = a + 1; b < CA_COUNT; b++)
                        if (EVP_PKEY_eq(id->ca[a].pkey, id->ca[b].pkey) == 1) {
                                error_set(err, EINVAL, status,
                                        "%s and %s are the same CA: each would accept certificates issued for the other",
                                        ca_table[a].field, ca_table[b].field);
                                return error_hint(err,
                                        "use a CA for each, or leave one out and slipway makes it");
                        }
        ERR_clear_error();
        return 0;
}

void authority_release(struct authority *a)
{
        free(a->bundle);
        free(a->clients);
        free(a->cert);
        free(a->chain);
        secret_free(&a->key);
        X509_free(a->x509);
        EVP_PKEY_free(a->pkey);
        *a = (struct authority){ 0 };
}
