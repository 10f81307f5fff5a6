/* What `hardening: cis` sets, as tables. The user's flags and fields override it.
 * Documented in docs/hardening.md. */
#include "node/context.h"

/* Only suites with forward secrecy and authenticated encryption; TLS 1.3 has no others. */
static const char *const ciphers[] = {
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
};

#define POD_PIDS 4096

/* Settings that protectKernelDefaults requires. */
static const struct pair kernel_defaults[] = {
        { "vm.overcommit_memory", "1" },
        { "vm.panic_on_oom", "0" },
        { "kernel.panic", "10" },
        { "kernel.panic_on_oops", "1" },
        { "kernel.keys.root_maxkeys", "1000000" },
        { "kernel.keys.root_maxbytes", "25000000" },
};

/* Only root may read files below these. */
static const char *const own_places[] = { "/etc/kubernetes/", "/etc/kube-flannel/", "/etc/calico/",
        "/etc/containerd/", "/etc/crio/", "/etc/etcd/", "/var/lib/kubelet/", "/var/lib/kube-proxy/",
        "/etc/systemd/system/kubelet.service" };

static bool is_cis(const struct context *x) { return x->cluster->hardening == HARDENING_CIS; }

static const char *cipher_list(const struct context *x)
{
        const struct strings all = { ARRAY_SIZE(ciphers), (const char **)(uintptr_t)ciphers };
        return strings_join(x->arena, &all, ",");
}

struct pairs hardening_flags(const struct context *x, bool etcd)
{
        struct pairs out = { .v = arena_array(x->arena, struct pair, 3) };
        if (!is_cis(x))
                return out;
        if (!etcd)
                out.v[out.n++] = (struct pair){ "profiling", "false" };
        out.v[out.n++] =
                (struct pair){ etcd ? "cipher-suites" : "tls-cipher-suites", cipher_list(x) };
        out.v[out.n++] = (struct pair){ "tls-min-version", etcd ? "TLS1.2" : "VersionTLS12" };
        return out;
}

/* etcd refuses a list of suites when only TLS 1.3 is allowed. */
static bool etcd_only_tls13(const struct cluster *c)
{
        const struct pairs *f = &c->components.etcd.flags;
        for (size_t i = 0; i < f->n; i++)
                if (streq(flag_name(f->v[i].key), "tls-min-version") &&
                        streq(f->v[i].value, "TLS1.3"))
                        return true;
        return false;
}

json_t *hardening_ciphers(const struct context *x, bool etcd)
{
        json_t *list = json_array();
        for (size_t i = 0;
                is_cis(x) && !(etcd && etcd_only_tls13(x->cluster)) && i < ARRAY_SIZE(ciphers); i++)
                json_add(list, ciphers[i]);
        return json_array_size(list) ? json_pack("{s:o}", "list", list)
                                     : (json_decref(list), json_false());
}

/* ---- the kernel ---- */

/* With protectKernelDefaults the kubelet does not start if a setting differs: so only where the
 * machine allows these settings and cluster.yaml has no others. */
bool hardening_kernel(const struct context *x)
{
        const struct pairs *user = &x->cluster->os.sysctls;
        if (!is_cis(x) || !x->facts->kernel_defaults || !(x->with & ON_KUBE))
                return false;
        for (size_t i = 0; i < user->n; i++)
                for (size_t k = 0; k < ARRAY_SIZE(kernel_defaults); k++)
                        if (streq(user->v[i].key, kernel_defaults[k].key) &&
                                !streq(user->v[i].value, kernel_defaults[k].value))
                                return false;
        return true;
}

struct pairs hardening_sysctls(const struct context *x)
{
        return (struct pairs){ hardening_kernel(x) ? ARRAY_SIZE(kernel_defaults) : 0,
                (struct pair *)kernel_defaults };
}

json_t *hardening_kubelet(const struct context *x)
{
        if (!is_cis(x))
                return json_false();
        return json_pack("{s:i, s:b, s:o}", "pids", POD_PIDS, "kernel", hardening_kernel(x),
                "ciphers", hardening_ciphers(x, false));
}

/* ---- files ---- */

unsigned hardening_mode(const struct context *x, const char *path, unsigned mode)
{
        for (size_t i = 0; is_cis(x) && mode == 0644 && i < ARRAY_SIZE(own_places); i++)
                if (has_prefix(path, own_places[i]))
                        return 0600;
        return mode;
}

/* ---- etcd's own user ---- */

bool etcd_own_user(const struct context *x)
{
        return is_cis(x) && needs_met(x, ON_ETCD | WITH_ETCD_SERVICE);
}

static void etcd_dir_add(struct nodespec *s, const char *path, const char *owner, unsigned mode)
{
        /* mutable: the user does not exist when user-data is read */
        struct spec_entry *e = nodespec_add(s, SPEC_DIR, CLASS_MUTABLE);
        e->path = path;
        e->owner = owner;
        e->mode = mode;
}

/* Before the files that the user owns. */
void etcd_user_add(const struct context *x, struct nodespec *s)
{
        if (!etcd_own_user(x) || x->immutable)
                return;
        struct spec_entry *e = nodespec_add(s, SPEC_USER, CLASS_MUTABLE);
        e->name = "etcd";
        e->target = x->cluster->etcd.data_dir;
}

void etcd_dirs_add(const struct context *x, struct nodespec *s)
{
        if (x->immutable)
                return;
        etcd_dir_add(s, x->cluster->etcd.data_dir, "etcd:etcd", 0700);
        etcd_dir_add(s, ETCD_PKI, "root:etcd", 0750);
}

static void etcd_pem_add(const struct context *x, struct nodespec *s, bool secret, const char *path,
        const char *pem, const char *units)
{
        struct spec_entry *e = pem ? file_add(x, s, secret ? CLASS_SECRET : CLASS_MUTABLE, path,
                                             0600, pem, strlen(pem))
                                   : NULL;
        if (!e)
                return;
        e->owner = "etcd:etcd";
        e->units = units;
}

/* Copies for etcd: the benchmark wants root to own all of /etc/kubernetes/pki. etcd reloads leaves
 * by itself. */
void etcd_copies_add(const struct context *x, struct nodespec *s)
{
        const struct leaf *server = &x->in->leaves->leaf[LEAF_ETCD_SERVER],
                          *peer = &x->in->leaves->leaf[LEAF_ETCD_PEER];
        if (!etcd_own_user(x))
                return;
        etcd_pem_add(x, s, false, ETCD_PKI "/ca.crt", x->in->identity->ca[CA_ETCD].clients,
                "etcd.service");
        etcd_pem_add(x, s, false, ETCD_PKI "/server.crt", server->cert, NULL);
        etcd_pem_add(x, s, true, ETCD_PKI "/server.key", server->key, NULL);
        etcd_pem_add(x, s, false, ETCD_PKI "/peer.crt", peer->cert, NULL);
        etcd_pem_add(x, s, true, ETCD_PKI "/peer.key", peer->key, NULL);
}
