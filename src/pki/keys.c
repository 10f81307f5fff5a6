#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>

#include "pki/pki.h"

#define SPAN(text) \
        { \
                (const uint8_t *)(text), sizeof(text) - 1 \
        }
#define OID_EC   "\x06\x07\x2a\x86\x48\xce\x3d\x02\x01"
#define OID_P256 "\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07"
#define OID_P384 "\x06\x05\x2b\x81\x04\x00\x22"
#define OID_RSA  "\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00"

/* Key usage: digital signature, and for RSA also key encipherment. */
const struct algorithm algorithm_table[] = {
        [KEY_ECDSA_P256] = { "EC", "P-256", 0, 0x80,
                SPAN("\x30\x59\x30\x13" OID_EC OID_P256 "\x03\x42\x00\x04"), 91, SPAN(OID_P256),
                32 },
        [KEY_ECDSA_P384] = { "EC", "P-384", 0, 0x80,
                SPAN("\x30\x76\x30\x10" OID_EC OID_P384 "\x03\x62\x00\x04"), 120, SPAN(OID_P384),
                48 },
        [KEY_RSA_2048] = { "RSA", NULL, 2048, 0xa0,
                SPAN("\x30\x82\x01\x22" OID_RSA
                     "\x03\x82\x01\x0f\x00\x30\x82\x01\x0a\x02\x82\x01\x01\x00"),
                294 },
        [KEY_RSA_4096] = { "RSA", NULL, 4096, 0xa0,
                SPAN("\x30\x82\x02\x22" OID_RSA
                     "\x03\x82\x02\x0f\x00\x30\x82\x02\x0a\x02\x82\x02\x01\x00"),
                550 },
};

void pkey_p(EVP_PKEY **k) { EVP_PKEY_free(*k); }
void x509_p(X509 **x) { X509_free(*x); }

int openssl_error(struct error *err, const char *what)
{
        const char *reason = ERR_reason_error_string(ERR_peek_last_error());
        error_set(err, EIO, EXIT_INTERNAL, "%s: %s", what,
                reason ? reason : "OpenSSL gives no reason");
        ERR_clear_error();
        return -EIO;
}

static EVP_PKEY_CTX *keygen_context(const struct algorithm *a)
{
        EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, a->type, NULL);
        if (ctx && EVP_PKEY_keygen_init(ctx) == 1 &&
                (a->group ? EVP_PKEY_CTX_set_group_name(ctx, a->group)
                          : EVP_PKEY_CTX_set_rsa_keygen_bits(ctx, (int)a->bits)) == 1)
                return ctx;
        EVP_PKEY_CTX_free(ctx);
        return NULL;
}

int key_generate(struct pki *p, enum key_algorithm a, EVP_PKEY **out, struct error *err)
{
        if (!p->keygen[a])
                p->keygen[a] = keygen_context(&algorithm_table[a]);
        if (!p->keygen[a] || EVP_PKEY_generate(p->keygen[a], out) != 1)
                return openssl_error(err, "cannot make a key");
        return 0;
}

/* The uncompressed point of an EC key; 0: another kind of key. */
static size_t ec_point(EVP_PKEY *k, uint8_t point[97])
{
        size_t n = 0;
        return EVP_PKEY_get_octet_string_param(k, OSSL_PKEY_PARAM_PUB_KEY, point, 97, &n) == 1 &&
                               point[0] == 4
                       ? n
                       : 0;
}

int key_spki(EVP_PKEY *k, struct str *out, struct error *err)
{
        uint8_t point[97];
        size_t n = EVP_PKEY_is_a(k, "EC") ? ec_point(k, point) : 0;
        for (int a = KEY_ECDSA_P256; n && a <= KEY_ECDSA_P384; a++) {
                const struct algorithm *row = &algorithm_table[a];
                if (n != 1 + 2 * row->scalar)
                        continue;
                str_addn(out, row->spki.p, row->spki.n - 1);
                str_addn(out, point, n);
                return 0;
        }
        unsigned char *der = NULL; /* RSA, or P-521 of an own CA */
        int len = i2d_PUBKEY(k, &der);
        if (len <= 0)
                return openssl_error(err, "cannot encode a public key");
        str_addn(out, der, (size_t)len);
        OPENSSL_free(der);
        return 0;
}

/* RFC 5915, the same bytes as of i2d_PrivateKey in a fifth of the time. */
static int ec_private(EVP_PKEY *k, const struct algorithm *a, struct str *out)
{
        uint8_t point[97], scalar[48];
        BIGNUM *d = NULL;
        size_t n = ec_point(k, point);
        bool ok = n == 1 + 2 * a->scalar &&
                  EVP_PKEY_get_bn_param(k, OSSL_PKEY_PARAM_PRIV_KEY, &d) == 1 &&
                  BN_bn2binpad(d, scalar, (int)a->scalar) > 0;
        BN_clear_free(d);
        if (!ok)
                return -EINVAL;
        size_t seq = der_open(out, DER_SEQUENCE);
        der_add(out, DER_INTEGER, "\1", 1);
        der_add(out, DER_OCTETS, scalar, a->scalar);
        der_add(out, 0xa0, a->curve.p, a->curve.n);
        size_t pub = der_open(out, 0xa1), bits = der_open(out, DER_BITS);
        str_addc(out, 0);
        str_addn(out, point, n);
        der_close(out, bits);
        der_close(out, pub);
        der_close(out, seq);
        wipe(scalar, sizeof(scalar));
        return 0;
}

int key_pem(EVP_PKEY *k, enum key_algorithm a, struct str *out, struct error *err)
{
        if (!algorithm_table[a].group)
                return key_pem_any(k, out, err);
        struct str der CLEANUP(str_wipe_release) = { 0 };
        str_reserve(&der, 512);
        if (ec_private(k, &algorithm_table[a], &der) < 0)
                return openssl_error(err, "cannot encode a private key");
        str_reserve(out, 1024); /* growing would leave copies that are not wiped */
        pem_add(out, "EC PRIVATE KEY", der.data, der.len);
        return 0;
}

int key_pem_any(EVP_PKEY *k, struct str *out, struct error *err)
{
        unsigned char *der = NULL;
        int n = i2d_PrivateKey(k, &der);
        if (n <= 0)
                return openssl_error(err, "cannot encode a private key");
        str_reserve(out, (size_t)n * 2 + 256);
        pem_add(out, EVP_PKEY_is_a(k, "EC") ? "EC PRIVATE KEY" : "RSA PRIVATE KEY", der, (size_t)n);
        OPENSSL_clear_free(der, (size_t)n);
        return 0;
}

static int no_password(char *buf, int size, int rwflag, void *u) { return -1; }

EVP_PKEY *key_parse(struct span pem)
{
        BIO *b = BIO_new_mem_buf(pem.p, (int)pem.n);
        EVP_PKEY *k = b ? PEM_read_bio_PrivateKey(b, NULL, no_password, NULL) : NULL;
        BIO_free(b);
        ERR_clear_error();
        return k;
}

bool key_encrypted(struct span pem)
{
        return memmem(pem.p, pem.n, "BEGIN ENCRYPTED PRIVATE KEY", 27) ||
               memmem(pem.p, pem.n, "Proc-Type: 4,ENCRYPTED", 22);
}

void random_bytes(void *out, size_t n)
{
        if (RAND_priv_bytes(out, (int)n) != 1)
                abort(); /* without randomness every key would be weak */
}

void random_text(char *out, size_t n, const char *set)
{
        size_t len = strlen(set),
               /* above it some letters would be more frequent */
                fair = 256 - 256 % len;
        for (size_t i = 0; i < n;) {
                uint8_t b;
                random_bytes(&b, 1);
                if (b < fair)
                        out[i++] = set[b % len];
        }
        out[n] = 0;
}

void secret_free(char **s)
{
        if (*s)
                wipe(*s, strlen(*s));
        free(*s);
        *s = NULL;
}
