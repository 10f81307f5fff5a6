/* Leaves on disk. A file of several leaves ends with its digest: while that matches, keys and
 * signatures are unchanged and only the contents of the certificates are checked; otherwise each
 * leaf is verified, and the valid ones are kept. */
#include <openssl/err.h>
#include <openssl/pem.h>

#include "pki/pki.h"

#define DIGEST_MARK "# sha256 "
#define DIGEST_LINE (sizeof(DIGEST_MARK) - 1 + 64 + 1)

static void digest_line(const char *text, size_t n, char out[DIGEST_LINE + 1])
{
        uint8_t digest[32] = { 0 };
        struct str hex CLEANUP(str_release) = { 0 };
        EVP_Digest(text, n, digest, NULL, EVP_sha256(), NULL);
        str_add_hex(&hex, digest, sizeof(digest));
        snprintf(out, DIGEST_LINE + 1, "%s%s\n", DIGEST_MARK, hex.data);
}

int leaf_file_read(struct leaf_file *f, struct error *err)
{
        char want[DIGEST_LINE + 1];
        f->there = f->intact = false;
        f->kept = f->issued = 0;
        int r = store_read(f->path, true, &f->text, err);
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return r;
        f->there = true;
        if (f->text.len > DIGEST_LINE) {
                size_t body = f->text.len - DIGEST_LINE;
                digest_line(f->text.data, body, want);
                f->intact = memcmp(f->text.data + body, want, DIGEST_LINE) == 0;
        }
        return 0;
}

/* The section under "# NAME", up to the next line that begins with "# ". */
static bool find_section(const struct str *text, const char *name, struct span *out)
{
        char *mark CLEANUP(free_p) = xasprintf("# %s\n", name);
        const char *p = str_text(text), *stop = p + text->len;
        size_t n = strlen(mark);
        while ((p = memmem(p, (size_t)(stop - p), mark, n)) && p != text->data && p[-1] != '\n')
                p++;
        if (!p)
                return false;
        p += n;
        const char *next = memmem(p, (size_t)(stop - p), "\n# ", 3);
        *out = (struct span){ (const uint8_t *)p, (size_t)((next ? next + 1 : stop) - p) };
        return true;
}

/* Key and certificate match, and the CA signed it: for a leaf whose file may be damaged. */
static bool leaf_is_sound(const struct issuer *i, struct span key, struct span cert)
{
        BIO *b = BIO_new_mem_buf(cert.p, (int)cert.n);
        X509 *x CLEANUP(x509_p) = b ? PEM_read_bio_X509(b, NULL, NULL, NULL) : NULL;
        EVP_PKEY *k CLEANUP(pkey_p) = key_parse(key);
        bool ok = x && k && X509_check_private_key(x, k) == 1 && X509_verify(x, i->pkey) == 1;
        BIO_free(b);
        ERR_clear_error();
        return ok;
}

/* Takes the leaf from the file if it is the wanted one. */
static bool leaf_keep(struct identity *id, const struct want *w, struct span key, struct span cert,
        bool intact, struct leaf *out)
{
        const struct issuer *i = &id->pki->issuer[w->ca];
        if (!pem_decode(cert, &id->pki->der) ||
                !cert_fits(i, w, str_span(&id->pki->der), id->now) ||
                (!intact && !leaf_is_sound(i, key, cert)))
                return false;
        out->key = xstrndup((const char *)key.p, key.n);
        out->cert = xasprintf("%.*s%s", (int)cert.n, (const char *)cert.p, id->ca[w->ca].chain);
        return true;
}

static int leaf_issue(
        struct identity *id, const struct want *w, struct leaf *out, struct error *err)
{
        EVP_PKEY *k CLEANUP(pkey_p) = NULL;
        struct str spki CLEANUP(str_release) = { 0 }, key CLEANUP(str_wipe_release) = { 0 },
                        cert CLEANUP(str_release) = { 0 };
        int r = key_generate(id->pki, w->algorithm, &k, err);
        if (r == 0)
                r = key_spki(k, &spki, err);
        if (r == 0)
                r = cert_issue(
                        &id->pki->issuer[w->ca], w, str_span(&spki), id->now, &id->pki->der, err);
        if (r == 0)
                r = key_pem(k, w->algorithm, &key, err);
        if (r < 0)
                return r;
        pem_add(&cert, "CERTIFICATE", id->pki->der.data, id->pki->der.len);
        str_add(&cert, id->ca[w->ca].chain);
        out->key = str_take(&key);
        out->cert = str_take(&cert);
        return 0;
}

int leaf_file_get(struct leaf_file *f, struct identity *id, const char *name, const struct want *w,
        struct leaf *out, struct error *err)
{
        struct span section, key, cert;
        if (!f->renew && f->there && find_section(&f->text, name, &section) &&
                pem_find(section, "PRIVATE KEY", &key) && pem_find(section, "CERTIFICATE", &cert) &&
                leaf_keep(id, w, key, cert, f->intact, out)) {
                f->kept++;
                return 0;
        }
        f->issued++;
        id->lost |= id->looking;
        return leaf_issue(id, w, out, err);
}

static size_t section_count(const struct str *text)
{
        size_t n = 0;
        for (const char *p = text->data; p && has_prefix(p, "# "); n++) {
                p = strstr(p, "\n# ");
                p = p ? p + 1 : NULL;
        }
        return n;
}

/* Without the chain: the file of the CA has it. */
static void add_section(struct str *s, const char *name, const struct leaf *l)
{
        struct span cert = { 0 };
        pem_find((struct span){ (const uint8_t *)l->cert, strlen(l->cert) }, "CERTIFICATE", &cert);
        str_addf(s, "# %s\n%s", name, l->key);
        str_addn(s, cert.p, cert.n);
}

int leaf_file_write(struct leaf_file *f, struct identity *id, const char *const *names,
        const struct leaf *leaves, size_t n, struct error *err)
{
        char line[DIGEST_LINE + 1];
        if (id->looking || (f->intact && !f->issued && section_count(&f->text) == f->kept + 1))
                return 0;
        f->held = f->hold;
        if (f->held)
                return 0;
        str_truncate(&f->text, 0);
        str_reserve(&f->text, 16 << 10);
        for (size_t i = 0; i < n; i++)
                if (leaves[i].key)
                        add_section(&f->text, names[i], &leaves[i]);
        digest_line(f->text.data, f->text.len, line);
        str_add(&f->text, line);
        id->pki->dirty = true;
        return store_write(f->path, f->text.data, f->text.len, 0, err);
}

int leaf_pair(struct identity *id, const char *path, const struct want *w, struct leaf *out,
        struct error *err)
{
        char *cert_path CLEANUP(free_p) = xasprintf("%s/pki/%s.crt", id->dir, path),
                        *key_path CLEANUP(free_p) = xasprintf("%s/pki/%s.key", id->dir, path);
        struct str cert_text CLEANUP(str_release) = { 0 },
                             key_text CLEANUP(str_wipe_release) = { 0 };
        struct span key, cert;
        int r = store_read(cert_path, false, &cert_text, err);
        if (r == 0)
                r = store_read(key_path, true, &key_text, err);
        if (r == 0 && !identity_renews(id, NULL) &&
                pem_find(str_span(&key_text), "PRIVATE KEY", &key) &&
                pem_find(str_span(&cert_text), "CERTIFICATE", &cert) &&
                leaf_keep(id, w, key, cert, false, out))
                return 0;
        if (r < 0 && r != -ENOENT)
                return r;
        r = leaf_issue(id, w, out, err);
        if (r < 0 || id->looking) /* a plan sees that there will be another */
                return r;
        id->pki->dirty = true;
        r = store_write(key_path, out->key, strlen(out->key), 0, err);
        return r < 0 ? r : store_write(cert_path, out->cert, strlen(out->cert), 0, err);
}
