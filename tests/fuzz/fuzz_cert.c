/* Certificates as files of the state, nodes and people have them. The first byte says what the
 * input is (text, DER, or changes to a leaf that is sound: a place and a byte each) and, in its
 * upper half, who reads it: OpenSSL's part is slow. A leaf that is kept must be one that the
 * authority signed. */
#include <sys/stat.h>

#include "pieces.h"
#include "pki/pki.h"
#include "config/minors.h"

#define NOW ((time_t)1800000000)

static struct identity id;
static struct arena arena;
static const struct pool pool = { .name = "control", .roles = ROLE_CONTROL_PLANE | ROLE_ETCD };
static struct node node = {
        .name = "c1", .pool = &pool, .ip = { { .family = 4, .b = { 192, 0, 2, 1 } } }
};
static struct cidr services;
static struct cluster cluster = { .name = "test",
        .arena = &arena,
        .kubernetes = { 1, 36, 3, KUBERNETES_NEWEST },
        .api.port = 6443,
        .network = { .services = { 1, &services }, .domain = "cluster.local" },
        .certificates = { .ca_lifetime = 315360000, .lifetime = 31536000 },
        .nodes = &node,
        .node_count = 1 };
static struct leaf sound;
static struct want want;

static void forget(void)
{
        identity_release(&id);
        leaf_release(&sound);
        want_release(&want);
        arena_release(&arena);
        fuzz_dir_remove();
}

static void open_identity(void)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct leaf_file none = { 0 };
        cluster.dir = fuzz_dir();
        if (!cidr_parse("10.96.0.0/12", &services, NULL) ||
                identity_open(fuzz_dir(), &cluster, NOW, &id, &err) < 0)
                abort();
        leaf_want(LEAF_APISERVER, &cluster, &node, &want);
        if (leaf_file_get(&none, &id, "apiserver", &want, &sound, &err) < 0)
                abort();
        atexit(forget);
}

/* What the input stands for, as PEM. */
static void certificate(struct pieces in, uint8_t how, struct str *out)
{
        struct str der CLEANUP(str_release) = { 0 };
        struct span block;
        if (how % 4 == 0) {
                str_addn(out, in.p, in.n);
                return;
        }
        if (how % 4 == 2 &&
                pem_find((struct span){ (const uint8_t *)sound.cert, strlen(sound.cert) },
                        "CERTIFICATE", &block) &&
                pem_decode(block, &der))
                while (in.n > 2) {
                        size_t at = (size_t)piece_byte(&in) << 8 | piece_byte(&in);
                        der.data[at % der.len] = (char)piece_byte(&in);
                }
        else
                str_addn(&der, in.p, in.n);
        pem_add(out, "CERTIFICATE", str_text(&der), der.len);
}

static void elements(struct span in, int depth)
{
        struct span inside;
        time_t t;
        for (struct span copy = in; in.n && depth < 40; copy = in) {
                der_take_time(&copy, &t);
                if (!der_take(&in, in.p[0], &inside, NULL))
                        return;
                elements(inside, depth + 1);
        }
}

static void as_leaf(const struct str *pem)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct str text CLEANUP(str_release) = { 0 };
        struct leaf leaf = { 0 };
        char *path CLEANUP(free_p) = path_join(fuzz_dir(), "leaf.pem");
        struct leaf_file f = { .path = path };
        str_addf(&text, "# apiserver\n%s", sound.key);
        str_addn(&text, str_text(pem), pem->len);
        fuzz_file(path, text.data, text.len);
        if (leaf_file_read(&f, &err) < 0 ||
                leaf_file_get(&f, &id, "apiserver", &want, &leaf, &err) < 0 ||
                (f.kept && !identity_signed(&id, CA_CLUSTER, leaf.cert)))
                abort();
        leaf_release(&leaf);
        str_release(&f.text);
}

static void as_described(const struct str *pem)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct cert_info info;
        char *admin CLEANUP(free_p) = path_join(id.dir, "admin.pem"), *what CLEANUP(free_p) = NULL;
        const char *rest = str_text(pem);
        time_t when;
        while (rest && cert_describe(rest, &info, &rest))
                cert_due(&info, NOW);
        fuzz_file(admin, str_text(pem), pem->len);
        if (identity_soonest(&id, &cluster, &when, &what, &err) < 0)
                abort();
}

static void as_authority(const struct str *pem)
{
        struct error refused CLEANUP(error_release) = { 0 };
        struct ca_source src = { "ca.crt", "ca.key", "look at it", "renew it", EXIT_CONFIG };
        struct str key CLEANUP(str_release) = { 0 };
        struct authority ca = { 0 };
        str_add(&key, sound.key);
        identity_signed(&id, CA_CLUSTER, str_text(pem));
        EVP_PKEY_free(key_parse(str_span(pem)));
        if (authority_parse(&src, pem, &key, NOW, &ca, &refused) == 0)
                authority_release(&ca);
}

/* What a leaf says, without OpenSSL. */
static void as_wanted(const struct str *pem)
{
        struct str der CLEANUP(str_release) = { 0 };
        struct span block;
        if (pem_find(str_span(pem), "CERTIFICATE", &block) && pem_decode(block, &der))
                cert_fits(&id.pki->issuer[CA_CLUSTER], &want, str_span(&der), NOW);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct pieces in = { data, size };
        struct str pem CLEANUP(str_release) = { 0 };
        if (!id.dir)
                open_identity();
        uint8_t how = piece_byte(&in);
        elements((struct span){ in.p, in.n }, 0);
        certificate(in, how, &pem);
        as_wanted(&pem);
        if (how & 16)
                as_leaf(&pem);
        if (how & 32)
                as_described(&pem);
        if (how & 64)
                as_authority(&pem);
        return 0;
}
