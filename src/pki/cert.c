/* Certificates are built as bytes from the wanted contents, a serial, a validity and a public key.
 * So whether one still has the wanted contents is found by building it again with its own serial,
 * validity and key, and comparing. */
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

#include "pki/pki.h"

#define SPAN(text) \
        { \
                (const uint8_t *)(text), sizeof(text) - 1 \
        }
#define BACKDATE 300 /* seconds: the clocks of new nodes may differ */

enum extension {
        EXT_KEY_ID = 0x0e,
        EXT_KEY_USAGE = 0x0f,
        EXT_NAMES = 0x11,
        EXT_CONSTRAINTS = 0x13,
        EXT_ISSUER_KEY_ID = 0x23,
        EXT_PURPOSE = 0x25
};

/* Signature algorithm by the kind of the CA's key. */
static const struct signature {
        const char *type, *group, *digest;
        struct span algorithm;
} signatures[] = {
        { "EC", "prime256v1", "SHA256", SPAN("\x30\x0a\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x02") },
        { "EC", "secp384r1", "SHA384", SPAN("\x30\x0a\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x03") },
        { "EC", "secp521r1", "SHA512", SPAN("\x30\x0a\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x04") },
        { "RSA", NULL, "SHA256",
                SPAN("\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b\x05\x00") },
};

static const struct signature *signature_of(EVP_PKEY *k)
{
        char group[32] = "";
        if (EVP_PKEY_is_a(k, "EC"))
                EVP_PKEY_get_group_name(k, group, sizeof(group), NULL);
        for (size_t i = 0; i < ARRAY_SIZE(signatures); i++)
                if (EVP_PKEY_is_a(k, signatures[i].type) &&
                        (signatures[i].group ? streq(group, signatures[i].group)
                                             : EVP_PKEY_get_bits(k) >= 2048))
                        return &signatures[i];
        return NULL;
}

bool issuer_supports(EVP_PKEY *k) { return signature_of(k); }

void want_release(struct want *w)
{
        str_release(&w->subject);
        str_release(&w->san);
}

/* One RDN: 2.5.4.10 is O, 2.5.4.3 is CN. */
static void add_rdn(struct str *s, uint8_t attribute, const char *value)
{
        uint8_t oid[3] = { 0x55, 0x04, attribute };
        size_t set = der_open(s, DER_SET), seq = der_open(s, DER_SEQUENCE);
        der_add(s, DER_OID, oid, sizeof(oid));
        der_add(s, DER_UTF8, value, strlen(value));
        der_close(s, seq);
        der_close(s, set);
}

void want_o(struct want *w, const char *o) { add_rdn(&w->subject, 10, o); }

/* The last part of the subject: wraps it. */
void want_cn(struct want *w, const char *cn)
{
        struct str all = { 0 };
        add_rdn(&w->subject, 3, cn);
        der_add(&all, DER_SEQUENCE, w->subject.data, w->subject.len);
        str_release(&w->subject);
        w->subject = all;
}

static void want_add_name(struct want *w, int tag, const void *data, size_t n)
{
        struct span in = str_span(&w->san), have;
        while (in.n) {
                int t = in.p[0];
                if (!der_take(&in, t, &have, NULL) ||
                        (t == tag && have.n == n && memcmp(have.p, data, n) == 0))
                        return;
        }
        der_add(&w->san, tag, data, n);
}

void want_ip(struct want *w, const struct ip *ip)
{
        if (ip->family)
                want_add_name(w, 0x87, ip->b, ip->family == 4 ? 4 : 16);
}

void want_host(struct want *w, const char *host)
{
        struct ip ip;
        if (!host || !*host)
                return;
        if (ip_parse(host, &ip))
                want_ip(w, &ip);
        else
                want_add_name(w, 0x82, host, strlen(host));
}

time_t asn1_time(const ASN1_TIME *t)
{
        struct tm tm;
        return ASN1_TIME_to_tm(t, &tm) == 1 ? timegm(&tm) : 0;
}

static int issuer_prepare(struct issuer *i, EVP_PKEY *k, struct error *err)
{
        const struct signature *s = signature_of(k);
        i->pkey = k;
        i->algorithm = s ? s->algorithm : (struct span){ 0 };
        i->md = s ? EVP_MD_fetch(NULL, s->digest, NULL) : NULL;
        i->sign = EVP_PKEY_CTX_new(k, NULL);
        if (!i->md || !i->sign || EVP_PKEY_sign_init(i->sign) != 1 ||
                EVP_PKEY_CTX_set_signature_md(i->sign, i->md) != 1 ||
                (!s->group && EVP_PKEY_CTX_set_rsa_padding(i->sign, RSA_PKCS1_PADDING) != 1))
                return openssl_error(err, "cannot sign with the key of the CA");
        return 0;
}

int issuer_init(struct issuer *i, X509 *x, EVP_PKEY *k, struct error *err)
{
        unsigned char *name = NULL;
        int n = i2d_X509_NAME(X509_get_subject_name(x), &name);
        const ASN1_OCTET_STRING *id = X509_get0_subject_key_id(x);
        if (n <= 0)
                return openssl_error(err, "cannot read the name of the CA");
        str_addn(&i->name, name, (size_t)n);
        OPENSSL_free(name);
        if (id)
                str_addn(&i->key_id, ASN1_STRING_get0_data(id), (size_t)ASN1_STRING_length(id));
        i->not_before = asn1_time(X509_get0_notBefore(x));
        i->not_after = asn1_time(X509_get0_notAfter(x));
        return issuer_prepare(i, k, err);
}

void issuer_release(struct issuer *i)
{
        EVP_PKEY_CTX_free(i->sign);
        EVP_MD_free(i->md);
        str_release(&i->name);
        str_release(&i->key_id);
        *i = (struct issuer){ 0 };
}

static void add_extension(
        struct str *s, enum extension e, bool critical, const void *value, size_t n)
{
        uint8_t oid[3] = { 0x55, 0x1d, (uint8_t)e };
        size_t seq = der_open(s, DER_SEQUENCE);
        der_add(s, DER_OID, oid, sizeof(oid));
        if (critical)
                der_add(s, DER_BOOLEAN, "\xff", 1);
        der_add(s, DER_OCTETS, value, n);
        der_close(s, seq);
}

static void add_key_usage(struct str *s, uint8_t bits)
{
        uint8_t value[4] = { DER_BITS, 2, (uint8_t)__builtin_ctz(bits), bits };
        add_extension(s, EXT_KEY_USAGE, true, value, sizeof(value));
}

static void add_purpose(struct str *s, unsigned usage)
{
        static const char server[] = "\x06\x08\x2b\x06\x01\x05\x05\x07\x03\x01",
                          client[] = "\x06\x08\x2b\x06\x01\x05\x05\x07\x03\x02";
        uint8_t value[22] = { DER_SEQUENCE };
        size_t n = 2;
        if (usage & USAGE_SERVER) {
                memcpy(value + n, server, 10);
                n += 10;
        }
        if (usage & USAGE_CLIENT) {
                memcpy(value + n, client, 10);
                n += 10;
        }
        value[1] = (uint8_t)(n - 2);
        add_extension(s, EXT_PURPOSE, false, value, n);
}

/* RFC 7093: the first 160 bits of the SHA-256 of the key. */
static void add_key_id(struct str *s, struct span spki)
{
        struct span seq = { 0 }, bits = { 0 };
        uint8_t digest[32], value[22] = { DER_OCTETS, 20 };
        if (!der_take(&spki, DER_SEQUENCE, &seq, NULL) ||
                !der_take(&seq, DER_SEQUENCE, NULL, NULL) ||
                !der_take(&seq, DER_BITS, &bits, NULL) || bits.n < 2 ||
                EVP_Digest(bits.p + 1, bits.n - 1, digest, NULL, EVP_sha256(), NULL) != 1)
                return;
        memcpy(value + 2, digest, 20);
        add_extension(s, EXT_KEY_ID, false, value, sizeof(value));
}

static void add_issuer_key_id(struct str *s, const struct str *id)
{
        struct str value CLEANUP(str_release) = { 0 };
        size_t seq = der_open(&value, DER_SEQUENCE);
        der_add(&value, 0x80, id->data, id->len);
        der_close(&value, seq);
        add_extension(s, EXT_ISSUER_KEY_ID, false, value.data, value.len);
}

static void add_extensions(
        struct str *s, const struct issuer *i, const struct want *w, struct span spki)
{
        size_t outer = der_open(s, 0xa3), seq = der_open(s, DER_SEQUENCE);
        add_key_usage(s, w->authority /* signature, certificates, revocation lists */
                                 ? 0x86
                                 : algorithm_table[w->algorithm].usage);
        if (w->usage)
                add_purpose(s, w->usage);
        if (w->authority)
                add_extension(s, EXT_CONSTRAINTS, true, "\x30\x03\x01\x01\xff", 5);
        else
                add_extension(s, EXT_CONSTRAINTS, true, "\x30\x00", 2);
        add_key_id(s, spki);
        if (i->key_id.len)
                add_issuer_key_id(s, &i->key_id);
        if (w->san.len) {
                struct str value CLEANUP(str_release) = { 0 };
                der_add(&value, DER_SEQUENCE, w->san.data, w->san.len);
                add_extension(s, EXT_NAMES, false, value.data, value.len);
        }
        der_close(s, seq);
        der_close(s, outer);
}

static void add_tbs(struct str *s, const struct issuer *i, const struct want *w, struct span serial,
        struct span validity, struct span spki)
{
        size_t seq = der_open(s, DER_SEQUENCE);
        str_addn(s, "\xa0\x03\x02\x01\x02", 5); /* version 3 */
        str_addn(s, serial.p, serial.n);
        str_addn(s, i->algorithm.p, i->algorithm.n);
        str_addn(s, i->name.data, i->name.len);
        str_addn(s, validity.p, validity.n);
        str_addn(s, w->subject.data, w->subject.len);
        str_addn(s, spki.p, spki.n);
        add_extensions(s, i, w, spki);
        der_close(s, seq);
}

/* 127 random bits, positive and without a leading zero byte. */
static int new_serial(uint8_t out[18])
{
        out[0] = DER_INTEGER;
        out[1] = 16;
        do {
                if (RAND_bytes(out + 2, 16) != 1)
                        return -EIO;
                out[2] &= 0x7f;
        } while (!out[2]);
        return 0;
}

static int64_t end_of(const struct issuer *i, const struct want *w, time_t now)
{
        int64_t end = w->lifetime < FAR_FUTURE - now ? now + w->lifetime : FAR_FUTURE;
        return end < i->not_after ? end : i->not_after;
}

static void add_validity(struct str *s, const struct issuer *i, const struct want *w, time_t now)
{
        size_t seq = der_open(s, DER_SEQUENCE);
        der_add_time(s, now - BACKDATE > i->not_before ? now - BACKDATE : i->not_before);
        der_add_time(s, end_of(i, w, now));
        der_close(s, seq);
}

static int add_signature(
        struct str *s, const struct issuer *i, const uint8_t *data, size_t n, struct error *err)
{
        uint8_t digest[EVP_MAX_MD_SIZE], sig[2048];
        unsigned digest_len = 0;
        size_t len = sizeof(sig) - 1;
        sig[0] = 0; /* unused bits */
        if (EVP_Digest(data, n, digest, &digest_len, i->md, NULL) != 1 ||
                EVP_PKEY_sign(i->sign, sig + 1, &len, digest, digest_len) != 1)
                return openssl_error(err, "cannot sign a certificate");
        str_addn(s, i->algorithm.p, i->algorithm.n);
        der_add(s, DER_BITS, sig, len + 1);
        return 0;
}

int cert_issue(const struct issuer *i, const struct want *w, struct span spki, time_t now,
        struct str *out, struct error *err)
{
        uint8_t serial[18];
        struct str validity CLEANUP(str_release) = { 0 };
        add_validity(&validity, i, w, now);
        if (new_serial(serial) < 0)
                return openssl_error(err, "no random numbers");
        str_truncate(out, 0);
        str_reserve(out, 2048);
        size_t seq = der_open(out, DER_SEQUENCE), start = out->len;
        add_tbs(out, i, w, (struct span){ serial, sizeof(serial) }, str_span(&validity), spki);
        int r = add_signature(out, i, (uint8_t *)out->data + start, out->len - start, err);
        der_close(out, seq);
        return r;
}

int cert_issue_self(
        const struct want *w, EVP_PKEY *k, time_t now, struct str *out, struct error *err)
{
        struct issuer self CLEANUP(issuer_release) = { .not_after = FAR_FUTURE };
        struct str spki CLEANUP(str_release) = { 0 };
        str_addn(&self.name, w->subject.data, w->subject.len);
        int r = issuer_prepare(&self, k, err);
        if (r == 0)
                r = key_spki(k, &spki, err);
        return r < 0 ? r : cert_issue(&self, w, str_span(&spki), now, out, err);
}

/* At least a third of its lifetime is left, or a new one would not expire later. */
static bool cert_lasts(
        const struct issuer *i, const struct want *w, struct span validity, time_t now)
{
        struct span v;
        time_t from, to;
        if (!der_take(&validity, DER_SEQUENCE, &v, NULL) || !der_take_time(&v, &from) ||
                !der_take_time(&v, &to))
                return false;
        if (from > now || to <= now || to > i->not_after)
                return false;
        return to - now >= (to - from) / 3 || end_of(i, w, now) <= to;
}

bool cert_fits(const struct issuer *i, const struct want *w, struct span der, time_t now)
{
        const struct algorithm *a = &algorithm_table[w->algorithm];
        struct span cert, tbs, whole, serial, validity, spki;
        if (!der_take(&der, DER_SEQUENCE, &cert, NULL) || der.n ||
                !der_take(&cert, DER_SEQUENCE, &tbs, &whole) || !der_take(&tbs, 0xa0, NULL, NULL) ||
                !der_take(&tbs, DER_INTEGER, NULL, &serial) ||
                !der_take(&tbs, DER_SEQUENCE, NULL, NULL) ||
                !der_take(&tbs, DER_SEQUENCE, NULL, NULL) ||
                !der_take(&tbs, DER_SEQUENCE, NULL, &validity) ||
                !der_take(&tbs, DER_SEQUENCE, NULL, NULL) ||
                !der_take(&tbs, DER_SEQUENCE, NULL, &spki))
                return false;
        if (spki.n != a->spki_len || memcmp(spki.p, a->spki.p, a->spki.n) ||
                !cert_lasts(i, w, validity, now))
                return false;
        struct str again CLEANUP(str_release) = { 0 };
        str_reserve(&again, whole.n + 64);
        add_tbs(&again, i, w, serial, validity, spki);
        return again.len == whole.n && memcmp(again.data, whole.p, whole.n) == 0;
}
