/* Internal declarations of src/pki. */
#ifndef SLIPWAY_PKI_H
#define SLIPWAY_PKI_H

#include <openssl/evp.h>
#include <openssl/x509.h>

#include "base/file.h"
#include "pki/identity.h"

#define PEM_MAX ((size_t)1 << 20) /* bytes of one file of the state, or of an own CA */
/* The last second that a certificate can hold: 9999-12-31T23:59:59Z. */
#define FAR_FUTURE INT64_C(253402300799)

/* --- der.c: DER encoding and decoding, and PEM. OpenSSL's encoders take several times as long as
 * the signature. --- */

enum der_tag {
        DER_BOOLEAN = 0x01,
        DER_INTEGER = 0x02,
        DER_BITS = 0x03,
        DER_OCTETS = 0x04,
        DER_OID = 0x06,
        DER_UTF8 = 0x0c,
        DER_UTC_TIME = 0x17,
        DER_TIME = 0x18,
        DER_SEQUENCE = 0x30,
        DER_SET = 0x31,
};
struct span {
        const uint8_t *p;
        size_t n;
};

void der_add(struct str *s, int tag, const void *data, size_t n);
size_t der_open(struct str *s, int tag); /* der_close(s, der_open(…)) wraps what is added between */
void der_close(struct str *s, size_t opened);
void der_add_time(struct str *s, time_t t);
/* Takes one element off the front: its contents, and the whole element (either may be NULL). */
bool der_take(struct span *in, int tag, struct span *contents, struct span *whole);
bool der_take_time(struct span *in, time_t *out);
static inline struct span str_span(const struct str *s)
{
        return (struct span){ (const uint8_t *)str_text(s), s->len };
}

void pem_add(struct str *s, const char *label, const void *der, size_t n);
/* The first block whose label ends with `label`, from its BEGIN line through its END line. */
bool pem_find(struct span text, const char *label, struct span *block);
bool pem_decode(struct span block, struct str *der);

/* --- keys.c --- */

struct algorithm {
        const char *type, *group; /* of EVP; group NULL for RSA */
        unsigned bits;            /* of RSA */
        uint8_t usage;            /* key usage of a leaf */
        struct span spki;         /* first bytes of every public key of this kind */
        size_t spki_len;
        struct span curve; /* OID of the curve, DER */
        size_t scalar;     /* bytes of an EC private key */
};
extern const struct algorithm algorithm_table[];

void pkey_p(EVP_PKEY **k);
void x509_p(X509 **x);
/* Sets the error to "what: OpenSSL's reason" (EXIT_INTERNAL) and empties OpenSSL's queue. */
int openssl_error(struct error *err, const char *what);
int key_generate(struct pki *p, enum key_algorithm a, EVP_PKEY **out, struct error *err);
int key_spki(EVP_PKEY *k, struct str *out, struct error *err); /* SubjectPublicKeyInfo, DER */
/* As kubeadm writes it. */
int key_pem(EVP_PKEY *k, enum key_algorithm a, struct str *out, struct error *err);
int key_pem_any(EVP_PKEY *k, struct str *out, struct error *err); /* of any algorithm */
EVP_PKEY *key_parse(struct span pem); /* NULL: not a key; never asks for a password */
bool key_encrypted(struct span pem);
void random_bytes(void *out, size_t n);
void random_text(char *out, size_t n, const char *set);
void secret_free(char **s); /* wiped, freed, NULL */

/* --- cert.c --- */

enum usage { USAGE_SERVER = 1, USAGE_CLIENT = 2 };

/* The wanted contents of a certificate; the buffers are used again for the next one. */
struct want {
        struct str subject, san; /* DER; san: contents of GeneralNames, empty for none */
        enum ca_id ca;
        unsigned usage;
        bool authority;
        int64_t lifetime;
        enum key_algorithm algorithm;
};
void want_release(struct want *w);
void want_cn(struct want *w, const char *cn);
void want_o(struct want *w, const char *o); /* before want_cn */
/* A name or an address; NULL, "" and repeats are left out. */
void want_host(struct want *w, const char *host);
void want_ip(struct want *w, const struct ip *ip);

/* A CA prepared for signing. */
struct issuer {
        EVP_PKEY_CTX *sign;
        EVP_PKEY *pkey; /* borrowed */
        EVP_MD *md;
        struct span algorithm; /* AlgorithmIdentifier */
        struct str name, key_id;
        time_t not_before, not_after;
};
bool issuer_supports(EVP_PKEY *k);
int issuer_init(struct issuer *i, X509 *x, EVP_PKEY *k, struct error *err);
void issuer_release(struct issuer *i);

/* A new certificate (DER) for the public key `spki`. */
int cert_issue(const struct issuer *i, const struct want *w, struct span spki, time_t now,
        struct str *out, struct error *err);
/* A new self-signed CA. */
int cert_issue_self(
        const struct want *w, EVP_PKEY *k, time_t now, struct str *out, struct error *err);
/* Whether the certificate has exactly the wanted contents and is valid for long enough. Its
 * signature is not verified. */
bool cert_fits(const struct issuer *i, const struct want *w, struct span der, time_t now);
time_t asn1_time(const ASN1_TIME *t);

/* --- leaf.c: the wanted contents of each leaf --- */

const char *leaf_name(enum leaf_id id);
bool leaf_wanted(enum leaf_id id, const struct cluster *c, const struct node *n);
void leaf_want(enum leaf_id id, const struct cluster *c, const struct node *n, struct want *w);
void user_want(const struct cluster *c, const struct user *u, struct want *w);
void admin_want(const struct cluster *c, struct want *w);
bool lb_wanted(const struct cluster *c);
void lb_want(const struct cluster *c, struct want *w);
bool dex_wanted(const struct cluster *c);
void dex_want(const struct cluster *c, struct want *w);
/* Refuses names that no certificate can hold. */
int names_check(const struct cluster *c, struct error *err);

/* --- leaffile.c: several leaves in one file --- */

struct leaf_file {
        const char *path;
        struct str text;
        bool renew;         /* issue every leaf again */
        bool there, intact; /* intact: its digest matches, so keys and signatures are unchanged */
        unsigned kept, issued;
        bool hold, held; /* hold: do not write it; held: it would have been written */
};
int leaf_file_read(struct leaf_file *f, struct error *err);
/* The leaf called `name` from the file, or a new one. */
int leaf_file_get(struct leaf_file *f, struct identity *id, const char *name, const struct want *w,
        struct leaf *out, struct error *err);
/* Writes the file if its contents change: `n` leaves with their names (NULL key: not wanted). */
int leaf_file_write(struct leaf_file *f, struct identity *id, const char *const *names,
        const struct leaf *leaves, size_t n, struct error *err);
/* A leaf in two files, PATH.crt and PATH.key. */
int leaf_pair(struct identity *id, const char *path, const struct want *w, struct leaf *out,
        struct error *err);

/* --- authority.c: the three CAs --- */

struct ca_row {
        const char *path, *cn, *field;
};
extern const struct ca_row ca_table[CA_COUNT];

struct ca_source { /* for errors */
        const char *cert_path, *key_path, *hint, *expired;
        enum exit_status status;
};
int authority_parse(const struct ca_source *src, const struct str *cert, const struct str *key,
        time_t now, struct authority *out, struct error *err);
int authority_create(struct pki *p, enum ca_id ca, const struct certificates *c, time_t now,
        struct authority *out, struct error *err);
/* `into`, which is one of the two, trusts both CAs, in the order old, new. */
void authority_both(
        const struct authority *old, const struct authority *new, struct authority *into);
int authority_load(
        const char *dir, enum ca_id ca, time_t now, struct authority *out, struct error *err);
int authorities_distinct(const struct identity *id, enum exit_status status, struct error *err);
void authority_release(struct authority *a);

/* ownca.c: CAs that cluster.yaml or an adopted cluster brings in. The loaders return -ENOENT and
 * set no error when there is none. */
int own_ca_load(const struct cluster *c, enum ca_id ca, time_t now, struct authority *out,
        struct error *err);
int own_ca_same(
        const struct cluster *c, enum ca_id ca, const struct authority *stored, struct error *err);
int given_load(struct identity *id, enum ca_id ca, struct error *err);
int given_same(const struct identity *id, struct error *err);

/* --- rotation.c --- */

/* Reads rotation.json, before anything else is loaded. */
int rotation_read(struct identity *id, struct error *err);
int rotation_authority(struct identity *id, enum ca_id ca, struct error *err);
char *rotation_sa_path(const struct identity *id);
/* Applies the rotation under way to the loaded Identity. */
int rotation_load(struct identity *id, struct error *err);
int rotation_write(const struct identity *id, struct error *err);
int identity_open_rotating(const char *state, const struct cluster *c, time_t now,
        struct identity *out, struct error *err);

/* --- cross.c: the new cluster CA's cross-certificate, issued by the old one, and those before it;
 * `dir` is that of the state, or its next/ --- */

char *cross_path(const char *dir);
/* Adds them to the chain of `a`. */
int cross_read(const char *dir, time_t now, struct authority *a, struct error *err);
int cross_make(const struct authority *old, struct authority *new, int64_t lifetime,
        const char *dir, time_t now, struct error *err);

/* --- sa.c --- */

int sa_parse(const char *path, struct span pem, char **pub, struct error *err);
int sa_make(struct pki *p, enum key_algorithm a, char **key, char **pub, struct error *err);

/* --- people.c --- */

/* Records in past/ that the certificate in `file` is no longer in use, if it expires later than
 * `against` and later than the recorded one. */
int past_keep(const struct identity *id, const char *name, const char *file, time_t against,
        struct error *err);

/* --- secrets.c: identity.json --- */

char *encryption_key_new(void);
bool encryption_key_believable(const char *key);

void secrets_create(struct identity *id);
int secrets_load(struct identity *id, const char *cluster, const char *path, struct error *err);
void secrets_text(const struct identity *id, const char *cluster, struct str *out);

/* --- store.c --- */

/* Makes STATE/NAME if it does not exist, and checks it: a directory, owned by this user,
 * closed to others. */
int store_open(const char *state, const char *name, char **dir, struct error *err);
int store_dir(const char *path, struct error *err);
/* Removes temporary files of a killed run. */
void store_sweep(const char *path);
bool store_exists(const char *path);
bool store_has_files(const char *path);
/* Reads a file of the state; -ENOENT, with no error set, when it does not exist. A secret must be
 * owned by this user and closed to others. */
int store_read(const char *path, bool secret, struct str *out, struct error *err);
int store_write(const char *path, const char *text, size_t n, unsigned flags, struct error *err);
/* Set by tests, to end the process after the n-th write like a power cut. */
extern void (*store_written)(const char *path);
/* DIR/SUB/NAME.pem, with NAME escaped for a file name. */
char *store_name(const char *dir, const char *sub, const char *name);
/* DIR/NAME of the Identity's directory. */
char *identity_path(const struct identity *id, const char *name);

struct pki {
        const struct identity_given *given; /* while the Identity is opened */
        bool rotating; /* opened to begin a rotation: cluster.yaml may name a new CA */
        EVP_PKEY_CTX *keygen[KEY_RSA_4096 + 1];
        struct issuer issuer[CA_COUNT];
        struct want want;
        struct str file, der;
        bool dirty; /* written and not synced */
};
struct pki *pki_new(void);
void pki_free(struct pki *p);

#endif
