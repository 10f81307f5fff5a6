/* Reads a certificate signing request (PKCS #10). It comes from a node, so anything that a kubelet
 * would not ask for is refused with a reason. */
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/ip.h"
#include "pki/pki.h"

#define REQUEST_MAX   16384 /* bytes, of base64 */
#define REQUEST_NAMES 32

static void request_p(X509_REQ **r) { X509_REQ_free(*r); }

static X509_REQ *request_parse(const char *base64)
{
        size_t n = strlen(base64);
        struct str pem CLEANUP(str_release) = { 0 };
        if (n > REQUEST_MAX || !str_add_from_base64(&pem, base64, n))
                return NULL;
        BIO *b = pem.len ? BIO_new_mem_buf(pem.data, (int)pem.len) : NULL;
        X509_REQ *r = b ? PEM_read_bio_X509_REQ(b, NULL, NULL, NULL) : NULL;
        BIO_free(b);
        ERR_clear_error();
        return r;
}

/* Allows only characters of node and group names, so the text is safe to show anywhere. */
static const char *request_text(struct arena *a, const ASN1_STRING *s)
{
        static const char allowed[] =
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:";
        const char *p = (const char *)ASN1_STRING_get0_data(s);
        int n = ASN1_STRING_length(s);
        for (int i = 0; i < n; i++)
                if (!p[i] || !strchr(allowed, p[i]))
                        return NULL;
        return n > 0 && n < 256 ? arena_strndup(a, p, (size_t)n) : NULL;
}

static const char *request_entry(struct arena *a, X509_NAME *subject, int nid)
{
        int at = X509_NAME_get_index_by_NID(subject, nid, -1);
        return at < 0 ? NULL
                      : request_text(a, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

static const char *request_name(struct arena *a, const GENERAL_NAME *g)
{
        struct ip ip = { 0 };
        char text[IP_TEXT];
        if (g->type == GEN_DNS) {
                const char *dns = request_text(a, g->d.dNSName);
                return dns ? arena_printf(a, "DNS:%s", dns) : NULL;
        }
        if (g->type != GEN_IPADD)
                return NULL;
        int n = ASN1_STRING_length(g->d.iPAddress);
        if (n != 4 && n != 16)
                return NULL;
        ip.family = n == 4 ? 4 : 6;
        memcpy(ip.b, ASN1_STRING_get0_data(g->d.iPAddress), (size_t)n);
        return arena_printf(a, "IP:%s", ip_format(&ip, text));
}

static bool request_names(struct arena *a, X509_REQ *r, struct strings *out)
{
        STACK_OF(X509_EXTENSION) *all = X509_REQ_get_extensions(r);
        GENERAL_NAMES *names = X509V3_get_d2i(all, NID_subject_alt_name, NULL, NULL);
        int n = names ? sk_GENERAL_NAME_num(names) : 0;
        bool ok = n > 0 && n <= REQUEST_NAMES && sk_X509_EXTENSION_num(all) == 1; /* only names */
        out->v = arena_array(a, const char *, REQUEST_NAMES);
        for (int i = 0; ok && i < n; i++)
                ok = (out->v[out->n++] = request_name(a, sk_GENERAL_NAME_value(names, i))) != NULL;
        GENERAL_NAMES_free(names);
        sk_X509_EXTENSION_pop_free(all, X509_EXTENSION_free);
        ERR_clear_error();
        return ok;
}

const char *request_read(struct arena *a, const char *base64, struct cert_request *out)
{
        X509_REQ *r CLEANUP(request_p) = base64 ? request_parse(base64) : NULL;
        *out = (struct cert_request){ 0 };
        if (!r)
                return "it is not a certificate signing request";
        EVP_PKEY *key = X509_REQ_get0_pubkey(r);
        int good = key ? X509_REQ_verify(r, key) : 0;
        ERR_clear_error();
        if (good != 1)
                return "it is not signed with its own key";
        X509_NAME *subject = X509_REQ_get_subject_name(r);
        out->cn = request_entry(a, subject, NID_commonName);
        out->o = request_entry(a, subject, NID_organizationName);
        if (X509_NAME_entry_count(subject) != 2 || !out->cn || !out->o)
                return "its subject is not that of a node";
        return request_names(a, r, &out->names)
                       ? NULL
                       : "it has no names, or not all of them are host names and addresses";
}
