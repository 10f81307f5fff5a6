/* The entries of a node, as tables in the order of application. */
#include "base/sha256.h"
#include "node/context.h"
#include "node/template.h"

#define UNITS "/etc/systemd/system/"

struct spec_entry *file_add(const struct context *x, struct nodespec *s, enum spec_class class,
        const char *path, unsigned mode, const char *text, size_t len)
{
        if (x->immutable && class != CLASS_IMMUTABLE)
                return NULL;
        struct spec_entry *e = nodespec_add(s, SPEC_FILE, class);
        char *copy = arena_alloc(&s->arena, len + 1);
        memcpy(copy, text, len);
        e->path = path;
        e->mode = hardening_mode(x, path, mode);
        e->content = copy;
        e->len = len;
        return e;
}

/* ---- directories ---- */

static const struct {
        with_set need;
        const char *path;
        unsigned mode;
} dirs[] = {
        { 0, "/etc/slipway", 0755 },
        { WITH_FLATCAR, "/opt/bin", 0755 },
        { ON_KUBE, "/etc/kubernetes", 0755 },
        { ON_KUBE, "/etc/kubernetes/manifests", 0700 },
        { ON_KUBE, "/etc/kubernetes/pki", 0755 },
        { ON_ETCD, "/etc/kubernetes/pki", 0755 },
        { ON_ETCD, "/etc/kubernetes/pki/etcd", 0755 },
        { ON_CONTROL_PLANE, "/etc/kubernetes/pki/etcd", 0755 },
        { ON_CONTROL_PLANE | WITH_ADMISSION, "/etc/kubernetes/admission", 0755 },
        { ON_CONTROL_PLANE | WITH_AUDIT, "/etc/kubernetes/audit", 0755 },
        { ON_CONTROL_PLANE | WITH_ENCRYPTION, "/etc/kubernetes/encryption", 0700 },
        { ON_ETCD | WITH_ETCD_SERVICE, "/etc/etcd", 0755 },
        { ON_KUBE, "/var/lib/kubelet", 0700 },
        { ON_KUBE, "/var/lib/kubelet/pki", 0755 },
        { ON_KUBE | WITH_KUBE_PROXY, "/var/lib/kube-proxy", 0755 },
        { ON_KUBE | WITH_CONTAINERD, "/etc/containerd", 0755 },
        { ON_KUBE | WITH_CONTAINERD, "/etc/containerd/certs.d", 0755 },
        { ON_KUBE | WITH_CRIO, "/etc/crio/crio.conf.d", 0755 },
        { ON_KUBE, "/etc/cni/net.d", 0755 },
        { ON_KUBE, "/opt/cni/bin", 0755 },
        { ON_KUBE | WITH_FLANNEL, "/etc/kube-flannel", 0755 },
        { ON_KUBE | WITH_FELIX, "/etc/calico", 0755 },
};

static void dir_add(const struct context *x, struct nodespec *s, const char *path, unsigned mode)
{
        if (nodespec_find(s, SPEC_DIR, path))
                return;
        struct spec_entry *e = nodespec_add(s, SPEC_DIR, CLASS_IMMUTABLE);
        e->path = arena_strdup(&s->arena, path);
        e->mode = mode;
}

static void dirs_add(const struct context *x, struct nodespec *s)
{
        for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
                if (needs_met(x, dirs[i].need))
                        dir_add(x, s, dirs[i].path, dirs[i].mode);
        if (etcd_own_user(x))
                etcd_dirs_add(x, s);
        else if (x->with & ON_ETCD)
                dir_add(x, s, x->cluster->etcd.data_dir, 0700);
        /* an entry, so that the agent records what was there before */
        if (needs_met(x, ON_KUBE) && x->with & (WITH_CONTAINERD | WITH_CRIO) &&
                x->cluster->runtime.data_dir)
                dir_add(x, s, x->cluster->runtime.data_dir, 0700);
        if (x->with & ON_CONTROL_PLANE && authentication_file(x))
                dir_add(x, s, "/etc/kubernetes/authentication", 0755);
        if (needs_met(x, ON_CONTROL_PLANE | WITH_AUDIT)) {
                const char *path = x->cluster->audit.path, *slash = strrchr(path, '/');
                dir_add(x, s,
                        slash > path ? arena_strndup(x->arena, path, (size_t)(slash - path)) : "/",
                        0700);
        }
}

/* ---- files ---- */

#define PROXY_URL      1 /* contains the proxy's URL: secret if that has a password */
#define AUTHENTICATION 2 /* only if authentication_file() */
#define ETCD_READS     4 /* must be readable for etcd's user */

struct file_row {
        with_set need;
        enum spec_class class;
        unsigned mode;
        const char *path, *template;
        const char *units;
        unsigned flags;
        void (*make)(const struct context *x, struct str *out); /* instead of the template alone */
        const char *reads; /* static pod: files it reads only at its start; a change restarts it */
};

/* The user's own text, if there is one. */
static void audit_policy(const struct context *x, struct str *out)
{
        if (x->cluster->audit.policy)
                str_add(out, x->cluster->audit.policy);
        else
                template_render("audit-policy.yaml", x->values, out);
}

static void admission_config(const struct context *x, struct str *out)
{
        if (x->cluster->admission.config)
                str_add(out, x->cluster->admission.config);
        else
                template_render("admission.yaml", x->values, out);
}

/* clang-format off */
static const struct file_row first_files[] = { /* before anything is mounted */
        { WITH_MODULES, CLASS_IMMUTABLE, 0644, "/etc/modules-load.d/slipway.conf", "modules.conf", .units = "systemd-modules-load.service" },
        { WITH_SYSCTLS, CLASS_IMMUTABLE, 0644, "/etc/sysctl.d/99-slipway.conf", "sysctl.conf", .units = "systemd-sysctl.service" },
        { WITH_DISKS, CLASS_IMMUTABLE, 0755, "/opt/slipway/format-blank", "format-blank.sh" },
        { WITH_FLATCAR, CLASS_IMMUTABLE, 0644, "/etc/flatcar/update.conf", "flatcar-update.conf", .units = "update-engine.service locksmithd.service" },
};

static const struct file_row files[] = {
        { ON_KUBE, CLASS_IMMUTABLE, 0644, UNITS "kubelet.service", "kubelet.service", .units = "kubelet.service" },
        { ON_KUBE, CLASS_IMMUTABLE, 0644, UNITS "kubelet.service.d/10-kubeadm.conf", "10-kubeadm.dropin", .units = "kubelet.service" },
        { ON_KUBE | WITH_CONTAINERD, CLASS_IMMUTABLE, 0644, UNITS "containerd.service", "containerd.service", .units = "containerd.service" },
        { ON_KUBE | WITH_CRIO, CLASS_IMMUTABLE, 0644, UNITS "crio.service", "crio.service", .units = "crio.service" },
        { ON_KUBE | WITH_CRIO, CLASS_IMMUTABLE, 0644, "/etc/containers/policy.json", "policy.json" },
        { ON_KUBE, CLASS_IMMUTABLE, 0644, "/etc/crictl.yaml", "crictl.yaml" },
        { ON_ETCD | WITH_ETCD_SERVICE, CLASS_IMMUTABLE, 0644, UNITS "etcd.service", "etcd.service", .units = "etcd.service" },
        { ON_ETCD | WITH_SNAPSHOTS, CLASS_IMMUTABLE, 0755, "/opt/slipway/etcd-snapshot", "etcd-snapshot.sh" },
        { ON_ETCD | WITH_SNAPSHOTS, CLASS_IMMUTABLE, 0644, UNITS "slipway-etcd-snapshot.service", "etcd-snapshot.service" },
        { ON_KUBE | WITH_KUBE_PROXY, CLASS_IMMUTABLE, 0644, UNITS "kube-proxy.service", "kube-proxy.service", .units = "kube-proxy.service" },
        { ON_KUBE | WITH_FLANNEL, CLASS_IMMUTABLE, 0644, UNITS "flanneld.service", "flanneld.service", .units = "flanneld.service" },
        { ON_KUBE | WITH_BRIDGE, CLASS_IMMUTABLE, 0644, "/etc/kube-flannel/cni-conf.json", "cni-conf.json", .units = "flanneld.service" },
        { ON_KUBE | WITH_FLANNEL, CLASS_IMMUTABLE, 0755, "/opt/slipway/fabric", "fabric.sh", .units = "flanneld.service" },
        { ON_KUBE | WITH_DNS_CACHE, CLASS_MUTABLE, 0644, UNITS "slipway-dns-address.service", "slipway-dns-address.service", .units = "slipway-dns-address.service" },
        { ON_KUBE | WITH_FELIX, CLASS_IMMUTABLE, 0644, UNITS "calico-node.service", "calico-node.service", .units = "calico-node.service" },
        { ON_KUBE | WITH_FELIX, CLASS_IMMUTABLE, 0755, "/opt/slipway/calico", "calico.sh", .units = "calico-node.service" },
        { ON_KUBE | WITH_BALANCER | WITH_PACKAGES, CLASS_IMMUTABLE, 0644, UNITS "slipway-haproxy.service", "slipway-haproxy.service", .units = "slipway-haproxy.service" },
        { ON_CONTROL_PLANE | WITH_VIP | WITH_PACKAGES, CLASS_IMMUTABLE, 0644, UNITS "slipway-keepalived.service", "slipway-keepalived.service", .units = "slipway-keepalived.service" },

        { ON_KUBE | WITH_HTTP_PROXY, CLASS_MUTABLE, 0644, "/etc/slipway/proxy.env", "proxy.env", .units = "containerd.service crio.service", .flags = PROXY_URL },
        { ON_KUBE | WITH_CONTAINERD, CLASS_MUTABLE, 0644, "/etc/containerd/config.toml", "containerd-config.toml", .units = "containerd.service" },
        { ON_KUBE | WITH_CRIO, CLASS_MUTABLE, 0644, "/etc/crio/crio.conf.d/10-slipway.conf", "crio.toml", .units = "crio.service" },
        { ON_KUBE | WITH_CRIO, CLASS_MUTABLE, 0644, "/etc/containers/registries.conf.d/10-slipway.conf", "registries.toml", .units = "crio.service" },
        { ON_KUBE | WITH_CRIO | WITH_REGISTRY_AUTH, CLASS_SECRET, 0600, "/etc/crio/auth.json", "crio-auth.json" },
        { ON_ETCD | WITH_ETCD_SERVICE, CLASS_MUTABLE, 0644, "/etc/etcd/etcd.yaml", .units = "etcd.service", .flags = ETCD_READS, .make = etcd_config },
        { ON_ETCD | WITH_SNAPSHOTS, CLASS_MUTABLE, 0644, "/etc/slipway/etcd-snapshot.env", "etcd-snapshot.env" },
        { ON_ETCD | WITH_SNAPSHOTS, CLASS_MUTABLE, 0644, UNITS "slipway-etcd-snapshot.timer", "etcd-snapshot.timer", .units = "slipway-etcd-snapshot.timer" },
        { ON_KUBE | WITH_BALANCER | WITH_PACKAGES, CLASS_MUTABLE, 0644, "/etc/slipway/haproxy.cfg", "haproxy.cfg", .units = "slipway-haproxy.service" },
        { ON_KUBE | WITH_BALANCER | WITH_STATIC_BALANCERS, CLASS_MUTABLE, 0644, "/etc/slipway/haproxy.cfg", "haproxy.cfg" },
        { ON_KUBE | WITH_BALANCER | WITH_PACKAGES, CLASS_IMMUTABLE, 0644, "/etc/slipway/hold.lua", "hold.lua", .units = "slipway-haproxy.service" },
        { ON_CONTROL_PLANE | WITH_VIP | WITH_PACKAGES, CLASS_SECRET, 0600, "/etc/slipway/keepalived.conf", "keepalived.conf", .units = "slipway-keepalived.service" },
        { ON_CONTROL_PLANE | WITH_VIP | WITH_STATIC_BALANCERS, CLASS_SECRET, 0600, "/etc/slipway/keepalived.conf", "keepalived.conf" },
        { ON_KUBE, CLASS_MUTABLE, 0644, "/var/lib/kubelet/config.yaml", .units = "kubelet.service", .make = kubelet_config },
        { ON_KUBE, CLASS_MUTABLE, 0644, "/var/lib/kubelet/instance-config.yaml", "instance-config.yaml" },
        { ON_KUBE, CLASS_MUTABLE, 0644, "/var/lib/kubelet/kubeadm-flags.env", "kubeadm-flags.env", .units = "kubelet.service" },
        { ON_KUBE | WITH_KUBE_PROXY, CLASS_MUTABLE, 0644, "/var/lib/kube-proxy/flags.env", "kube-proxy.env", .units = "kube-proxy.service" },
        { ON_KUBE | WITH_KUBE_PROXY, CLASS_MUTABLE, 0644, "/var/lib/kube-proxy/config.conf", .units = "kube-proxy.service", .make = kube_proxy_config },
        { ON_KUBE | WITH_FLANNEL, CLASS_MUTABLE, 0644, "/etc/kube-flannel/net-conf.json", "net-conf.json", .units = "flanneld.service" },
        { ON_KUBE | WITH_FLANNEL, CLASS_MUTABLE, 0644, "/etc/kube-flannel/flanneld.env", "flanneld.env", .units = "flanneld.service" },
        { ON_KUBE | WITH_FELIX, CLASS_MUTABLE, 0644, "/etc/calico/calico.env", "calico.env", .units = "calico-node.service" },
        { ON_KUBE | WITH_FELIX, CLASS_MUTABLE, 0644, "/etc/calico/cni-conf.json", "calico-cni.json", .units = "calico-node.service" },
};

/* Last: with them the kubelet starts the control plane. */
static const struct file_row control_files[] = {
        { ON_CONTROL_PLANE | WITH_ADMISSION, CLASS_MUTABLE, 0644, "/etc/kubernetes/admission/config.yaml", .make = admission_config },
        { ON_CONTROL_PLANE | WITH_AUDIT, CLASS_MUTABLE, 0644, "/etc/kubernetes/audit/policy.yaml", .make = audit_policy },
        { ON_CONTROL_PLANE, CLASS_MUTABLE, 0644, "/etc/kubernetes/authentication/config.yaml", .flags = AUTHENTICATION, .make = authentication_config },
        { ON_CONTROL_PLANE | WITH_ENCRYPTION, CLASS_SECRET, 0600, "/etc/kubernetes/encryption/config.yaml", "encryption.yaml" },
        { ON_KUBE | WITH_BALANCER | WITH_STATIC_BALANCERS, CLASS_MUTABLE, 0600, "/etc/kubernetes/manifests/slipway-haproxy.yaml", "haproxy-pod.yaml", .reads = API_CA },
        { ON_CONTROL_PLANE | WITH_VIP | WITH_STATIC_BALANCERS, CLASS_MUTABLE, 0600, "/etc/kubernetes/manifests/slipway-keepalived.yaml", "keepalived-pod.yaml", .reads = API_CA },
        { ON_ETCD | ON_KUBE | WITH_ETCD_POD, CLASS_MUTABLE, 0600, "/etc/kubernetes/manifests/etcd.yaml", "etcd-pod.yaml", .reads = "/etc/kubernetes/pki/etcd/ca.crt" },
        { ON_CONTROL_PLANE, CLASS_MUTABLE, 0600, "/etc/kubernetes/manifests/kube-apiserver.yaml", "kube-apiserver.yaml",
                .reads = "/etc/kubernetes/admission/config.yaml /etc/kubernetes/audit/policy.yaml /etc/kubernetes/authentication/config.yaml "
                         "/etc/kubernetes/encryption/config.yaml /etc/kubernetes/pki/sa.key "
                         "/etc/kubernetes/pki/sa.pub /etc/kubernetes/pki/sa-other.pub /etc/kubernetes/pki/ca.crt /etc/kubernetes/pki/etcd/ca.crt /etc/kubernetes/pki/oidc-ca.crt" },
        { ON_CONTROL_PLANE, CLASS_MUTABLE, 0600, "/etc/kubernetes/manifests/kube-controller-manager.yaml", "kube-controller-manager.yaml",
                .reads = "/etc/kubernetes/controller-manager.conf /etc/kubernetes/pki/sa.key /etc/kubernetes/pki/ca.crt /etc/kubernetes/pki/ca-bundle.crt "
                         "/etc/kubernetes/pki/ca-signing.crt" },
        { ON_CONTROL_PLANE, CLASS_MUTABLE, 0600, "/etc/kubernetes/manifests/kube-scheduler.yaml", "kube-scheduler.yaml",
                .reads = "/etc/kubernetes/scheduler.conf" },
};
/* clang-format on */

/* Whether a word is one of the space-separated words. */
static bool strings_has(const char *words, const char *word)
{
        size_t n = strlen(word);
        for (const char *p = words; (p = strstr(p, word)); p += n)
                if ((p == words || p[-1] == ' ') && (!p[n] || p[n] == ' '))
                        return true;
        return false;
}

#define DIGEST_MARK "@digest@"

/* Sets the digest of a static pod and of the files it reads: the kubelet restarts the pod when it
 * changes, and waiters recognize the new pod by it. Salted with a key of the cluster, because some
 * of the files are secret. */
static void digest_set(const struct context *x, const struct nodespec *s, const struct file_row *r,
        struct str *text)
{
        struct sha256 sum;
        char hex[SHA256_HEX];
        char *mark = strstr(str_text(text), DIGEST_MARK);
        if (!mark)
                return;
        sha256_init(&sum);
        sha256_add(
                &sum, x->in->identity->certificate_key, strlen(x->in->identity->certificate_key));
        sha256_add(&sum, text->data, text->len);
        for (size_t i = 0; r->reads && i < s->count; i++) {
                const struct spec_entry *e = &s->entries[i];
                if (e->kind == SPEC_FILE && strings_has(r->reads, e->path))
                        sha256_add(&sum, e->content, e->len);
        }
        sha256_end(&sum, hex);
        struct str whole = { 0 };
        str_addf(&whole, "%.*s%.16s%s", (int)(mark - text->data), text->data, hex,
                mark + strlen(DIGEST_MARK));
        str_wipe_release(text);
        *text = whole;
}

static void row_add(const struct context *x, struct nodespec *s, const struct file_row *r)
{
        bool secret = r->flags & PROXY_URL && x->with & WITH_SECRET_PROXY;
        enum spec_class class = secret ? CLASS_SECRET : r->class;
        struct str text CLEANUP(str_wipe_release) = { 0 };
        if (!needs_met(x, r->need) || (x->immutable && class != CLASS_IMMUTABLE) ||
                (r->flags & AUTHENTICATION && !authentication_file(x)))
                return;
        if (r->make)
                r->make(x, &text);
        else
                template_render(r->template, class == CLASS_IMMUTABLE ? x->host : x->values, &text);
        digest_set(x, s, r, &text);
        struct spec_entry *e =
                file_add(x, s, class, r->path, secret ? 0600 : r->mode, str_text(&text), text.len);
        e->units = r->units;
        if (r->flags & ETCD_READS && etcd_own_user(x)) {
                e->owner = "root:etcd";
                e->mode = 0640;
        }
}

static void rows_add(
        const struct context *x, struct nodespec *s, const struct file_row *rows, size_t n)
{
        for (size_t i = 0; i < n; i++)
                row_add(x, s, &rows[i]);
}

/* Files whose path depends on the OS. They need host values only, so they are immutable unless the
 * proxy has a password. */
static void os_files_add(const struct context *x, struct nodespec *s)
{
        const struct file_row ntp = { WITH_NTP, CLASS_IMMUTABLE, 0644, x->os->ntp_path,
                x->os->ntp_template, .units = x->os->ntp_unit };
        const struct file_row proxy = { WITH_HTTP_PROXY | WITH_PACKAGES, CLASS_IMMUTABLE, 0644,
                x->os->proxy_path, x->os->proxy_template, .flags = PROXY_URL };
        row_add(x, s, &ntp);
        row_add(x, s, &proxy);
}

/* ---- kernel ---- */

static void kernel_add(const struct context *x, struct nodespec *s)
{
        size_t i;
        json_t *v;
        json_array_foreach(json_object_get(x->host, "modules"), i, v)
        {
                nodespec_add(s, SPEC_MODULE, CLASS_IMMUTABLE)->name =
                        arena_strdup(&s->arena, json_string_value(v));
        }
        json_array_foreach(json_object_get(x->host, "sysctls"), i, v)
        {
                struct spec_entry *e = nodespec_add(s, SPEC_SYSCTL, CLASS_IMMUTABLE);
                e->name = arena_strdup(&s->arena, json_string_value(json_object_get(v, "key")));
                e->target = arena_strdup(&s->arena, json_string_value(json_object_get(v, "value")));
        }
}

/* ---- units ---- */

struct unit_row {
        with_set need;
        const char *name;
        unsigned flags;
        const char *after;
        enum spec_class class; /* that of its file: user-data cannot enable a unit that it lacks */
};

/* Services of the packages, which must never run beside slipway's: masked before the
 * package is installed. */
static const struct unit_row masked_units[] = {
        { ON_KUBE | WITH_BALANCER | WITH_PACKAGES, "haproxy.service", SPEC_DISABLE, NULL },
        { ON_CONTROL_PLANE | WITH_VIP | WITH_PACKAGES, "keepalived.service", SPEC_DISABLE, NULL },
};

static const struct unit_row runtime_units[] = {
        { ON_ETCD | WITH_ETCD_SERVICE, "etcd.service", SPEC_ENABLE | SPEC_START, NULL },
        { ON_KUBE | WITH_CONTAINERD, "containerd.service", SPEC_ENABLE | SPEC_START, NULL },
        { ON_KUBE | WITH_CRIO, "crio.service", SPEC_ENABLE | SPEC_START, NULL },
};

static const struct unit_row units[] = {
        { ON_ETCD | WITH_SNAPSHOTS, "slipway-etcd-snapshot.timer", SPEC_ENABLE | SPEC_START, NULL,
                CLASS_MUTABLE },
        { ON_KUBE | WITH_DNS_CACHE, "slipway-dns-address.service", SPEC_ENABLE | SPEC_START, NULL,
                CLASS_MUTABLE },
        { ON_KUBE | WITH_BALANCER | WITH_PACKAGES, "slipway-haproxy.service",
                SPEC_ENABLE | SPEC_START | SPEC_RELOAD, NULL },
        { ON_KUBE | WITH_CONTAINERD, "kubelet.service", SPEC_ENABLE | SPEC_START,
                "containerd.service slipway-haproxy.service" },
        { ON_KUBE | WITH_CRIO, "kubelet.service", SPEC_ENABLE | SPEC_START,
                "crio.service slipway-haproxy.service" },
        { ON_KUBE | WITH_HOST_RUNTIME, "kubelet.service", SPEC_ENABLE | SPEC_START,
                "slipway-haproxy.service" },
        { ON_KUBE | WITH_KUBE_PROXY, "kube-proxy.service", SPEC_ENABLE | SPEC_START,
                "slipway-haproxy.service" },
        { ON_KUBE | WITH_FLANNEL, "flanneld.service", SPEC_ENABLE | SPEC_START,
                "slipway-haproxy.service" },
        { ON_KUBE | WITH_FELIX, "calico-node.service", SPEC_ENABLE | SPEC_START,
                "slipway-haproxy.service" },
        { ON_CONTROL_PLANE | WITH_VIP | WITH_PACKAGES, "slipway-keepalived.service",
                SPEC_ENABLE | SPEC_START, NULL },
};

static void units_add(
        const struct context *x, struct nodespec *s, const struct unit_row *rows, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                if (!needs_met(x, rows[i].need) ||
                        (x->immutable && rows[i].class != CLASS_IMMUTABLE))
                        continue;
                struct spec_entry *e = nodespec_add(s, SPEC_UNIT, rows[i].class);
                e->name = rows[i].name;
                e->flags = rows[i].flags;
                e->units = rows[i].after;
        }
}

/* ---- entry points ---- */

static void render_all(const struct context *x, struct nodespec *s)
{
        const struct unit_row ntp = { WITH_NTP, x->os->ntp_unit, SPEC_ENABLE | SPEC_START, NULL };
        os_files_add(x, s);
        units_add(x, s, masked_units, ARRAY_SIZE(masked_units));
        packages_add(x, s);
        rows_add(x, s, first_files, ARRAY_SIZE(first_files));
        kernel_add(x, s);
        etcd_user_add(x, s);
        disks_add(x, s);
        dirs_add(x, s);
        artifacts_add(x, s);
        calico_link_add(x, s);
        rows_add(x, s, files, ARRAY_SIZE(files));
        registry_add(x, s);
        etcd_copy_key_add(x, s);
        credentials_add(x, s);
        extras_add(x, s);
        units_add(x, s, &ntp, 1);
        units_add(x, s, runtime_units, ARRAY_SIZE(runtime_units));
        images_add(x, s);
        rows_add(x, s, control_files, ARRAY_SIZE(control_files));
        units_add(x, s, units, ARRAY_SIZE(units));
}

static int node_render_class(
        const struct spec_input *in, bool immutable, struct nodespec *out, struct error *err)
{
        struct nodespec s = { .node = in->node, .facts = *in->facts };
        struct context x;
        int rc = context_init(&x, in, &s.arena, immutable, err);
        if (rc < 0) {
                nodespec_release(&s);
                return rc;
        }
        render_all(&x, &s);
        rc = extras_check(&x, &s, err);
        context_release(&x);
        if (rc < 0) {
                nodespec_release(&s);
                return rc;
        }
        *out = s;
        return 0;
}

int node_render(const struct spec_input *in, struct nodespec *out, struct error *err)
{
        return node_render_class(in, false, out, err);
}

int node_render_immutable(const struct spec_input *in, struct nodespec *out, struct error *err)
{
        return node_render_class(in, true, out, err);
}
