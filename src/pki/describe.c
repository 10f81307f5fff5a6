/* Contents of a certificate, for reports. */
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <time.h>

#include "pki/pki.h"

/* CN and O as kubectl users know them: "system:node:w1 (system:nodes)". */
static void name_text(const X509_NAME *n, char out[256])
{
        char cn[128] = "", o[128] = "";
        X509_NAME_get_text_by_NID((X509_NAME *)n, NID_commonName, cn, sizeof(cn));
        X509_NAME_get_text_by_NID((X509_NAME *)n, NID_organizationName, o, sizeof(o));
        snprintf(out, 256, *o ? "%s (%s)" : "%s", cn, o);
        for (char *p = out; *p; p++) /* shown on a terminal */
                *p = (unsigned char)*p < ' ' || *p == 0x7f ? '?' : *p;
}

static void serial_text(const ASN1_INTEGER *i, char out[64])
{
        struct str hex CLEANUP(str_release) = { 0 };
        int n = ASN1_STRING_length(i);
        str_add_hex(&hex, ASN1_STRING_get0_data(i), n > 0 && n <= 31 ? (size_t)n : 0);
        snprintf(out, 64, "%s", str_text(&hex));
}

bool cert_describe(const char *pem, struct cert_info *out, const char **rest)
{
        struct span block;
        if (!pem || !pem_find((struct span){ (const uint8_t *)pem, strlen(pem) }, "CERTIFICATE",
                            &block))
                return false;
        BIO *b = BIO_new_mem_buf(block.p, (int)block.n);
        X509 *x CLEANUP(x509_p) = b ? PEM_read_bio_X509(b, NULL, NULL, NULL) : NULL;
        BIO_free(b);
        ERR_clear_error();
        if (rest)
                *rest = (const char *)block.p + block.n;
        if (!x)
                return false;
        *out = (struct cert_info){ .from = asn1_time(X509_get0_notBefore(x)),
                .to = asn1_time(X509_get0_notAfter(x)),
                .authority = X509_get_extension_flags(x) & EXFLAG_CA };
        name_text(X509_get_subject_name(x), out->subject);
        name_text(X509_get_issuer_name(x), out->issuer);
        serial_text(X509_get0_serialNumber(x), out->serial);
        return true;
}

bool cert_due(const struct cert_info *i, time_t now) { return i->to - now < (i->to - i->from) / 3; }

bool identity_signed(const struct identity *id, enum ca_id ca, const char *pem)
{
        BIO *b = BIO_new_mem_buf(pem, (int)strlen(pem));
        X509 *x CLEANUP(x509_p) = b ? PEM_read_bio_X509(b, NULL, NULL, NULL) : NULL;
        bool ok = x && X509_verify(x, id->ca[ca].pkey) == 1 &&
                  asn1_time(X509_get0_notBefore(x)) <= id->now &&
                  asn1_time(X509_get0_notAfter(x)) > id->now;
        BIO_free(b);
        ERR_clear_error();
        return ok;
}
