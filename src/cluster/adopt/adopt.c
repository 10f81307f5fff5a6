#include <event2/event.h>

#include "cluster/adopt/adopt_files.h"
#include "kube/kube.h"
#include "kube/wait.h"
#include "node/context.h"

#define FILE_MAX ((size_t)1 << 20)

static const struct {
        const char *path;
        bool needed, secret;
} files[AT_FILE_COUNT] = {
        [AT_ADMIN] = { "/etc/kubernetes/admin.conf", true, true },
        [AT_CA_CRT] = { "/etc/kubernetes/pki/ca.crt", true, false },
        [AT_CA_KEY] = { "/etc/kubernetes/pki/ca.key", true, true },
        [AT_ETCD_CA_CRT] = { "/etc/kubernetes/pki/etcd/ca.crt", true, false },
        [AT_ETCD_CA_KEY] = { "/etc/kubernetes/pki/etcd/ca.key", true, true },
        [AT_FRONT_CA_CRT] = { "/etc/kubernetes/pki/front-proxy-ca.crt", true, false },
        [AT_FRONT_CA_KEY] = { "/etc/kubernetes/pki/front-proxy-ca.key", true, true },
        [AT_SA_KEY] = { "/etc/kubernetes/pki/sa.key", true, true },
        [AT_APISERVER] = { "/etc/kubernetes/manifests/kube-apiserver.yaml", true, false },
        [AT_CONTROLLER_MANAGER] = { "/etc/kubernetes/manifests/kube-controller-manager.yaml", true,
                false },
        [AT_SCHEDULER] = { "/etc/kubernetes/manifests/kube-scheduler.yaml", true, false },
        [AT_ETCD] = { "/etc/kubernetes/manifests/etcd.yaml", true, false },
        [AT_KUBELET_CONFIG] = { "/var/lib/kubelet/config.yaml", true, false },
};

/* ---- the host's files, over one connection ---- */

struct reading {
        struct adopt *adopt;
        struct link *link;
        size_t left;
        struct error err;
        bool more; /* second round: files that flags name */
        struct one {
                struct reading *reading;
                const char **to;
        } one[AT_FILE_COUNT + EXTRA_COUNT];
};

static void on_file(struct link *l, int status, const char *out, const char *errors, void *arg);

static void read_one(struct reading *r, struct one *o, const char *path, const char **to)
{
        *o = (struct one){ r, to };
        r->left++;
        link_run(r->link, (const char *const[]){ "cat", "--", path, NULL }, NULL, FILE_MAX, on_file,
                o);
}

static void read_more(struct reading *r)
{
        const char *paths[EXTRA_COUNT];
        r->more = true;
        adopt_extra_paths(r->adopt, paths);
        for (size_t i = 0; i < EXTRA_COUNT; i++)
                if (paths[i])
                        read_one(r, &r->one[AT_FILE_COUNT + i], paths[i], &r->adopt->extra[i]);
}

static void on_file(struct link *l, int status, const char *out, const char *errors, void *arg)
{
        struct one *o = arg;
        struct reading *r = o->reading;
        if (status == 0 && out)
                *o->to = arena_strdup(r->adopt->arena, out);
        if (status == LINK_RUN_OVER)
                error_set(&r->err, EFBIG, EXIT_PREFLIGHT,
                        "%s: a file of Kubernetes there has more than %zu KB: nothing was adopted",
                        r->adopt->target.host, FILE_MAX >> 10);
        if (--r->left == 0 && !r->more)
                read_more(r);
        if (r->left == 0)
                link_close(l);
}

static void on_adopt_hello(
        struct link *l, json_t *facts, const char *digest, json_t *drift, void *arg)
{
        struct reading *r = arg;
        r->adopt->cgroup = (int)json_integer_value(json_object_get(facts, "cgroup"));
        r->link = l;
        for (int i = 0; i < AT_FILE_COUNT; i++)
                read_one(r, &r->one[i], files[i].path, &r->adopt->files[i]);
}

static void on_adopt_closed(struct link *l, struct error *err, void *arg)
{
        struct reading *r = arg;
        r->link = NULL;
        if (err && err->code) {
                error_set(&r->err, err->code, err->status, "%s", err->message);
                if (err->hint)
                        error_hint(&r->err, "%s", err->hint);
        }
        event_base_loopbreak(r->adopt->base);
}

static int adopt_read_files(struct adopt *a, struct error *err)
{
        struct reading r = { .adopt = a };
        struct link_events events = {
                .on_hello = on_adopt_hello, .on_closed = on_adopt_closed, .arg = &r
        };
        a->files = arena_array(a->arena, const char *, AT_FILE_COUNT);
        int e = link_open(a->base, &a->target, &events, &r.link, err);
        if (e < 0)
                return e;
        while (r.link)
                event_base_dispatch(a->base);
        if (r.err.code) {
                *err = r.err;
                return -err->code;
        }
        for (int i = 0; i < AT_FILE_COUNT; i++)
                if (files[i].needed && (!a->files[i] || !*a->files[i])) {
                        error_set(err, ENOENT, EXIT_PREFLIGHT, "%s has no %s", a->target.host,
                                files[i].path);
                        return error_hint(err,
                                i == AT_ETCD
                                        ? "etcd that is not kubeadm's static pod there cannot be taken over: move its data into one first "
                                          "(kubeadm init phase etcd local "
                                          "on each control-plane host, with a snapshot restored into /var/lib/etcd), or restore a snapshot "
                                          "of it into a cluster "
                                          "of slipway's: slipway etcd restore"
                                : has_suffix(files[i].path, ".key")
                                        ? "a CA whose key is kept elsewhere cannot be adopted: put the key there while adopting"
                                        : "name a control-plane host of a cluster made by kubeadm");
                }
        return 0;
}

/* ---- YAML and manifests ---- */

json_t *adopt_yaml(struct adopt *a, const char *what, const char *text, struct error *err)
{
        struct tree *t;
        return tree_parse(a->arena, what, text, strlen(text), &t, err) < 0 ? NULL
                                                                           : json_from_tree(t);
}

json_t *adopt_flags(const json_t *pod)
{
        const json_t *container = json_array_get(
                             json_object_get(json_object_get(pod, "spec"), "containers"), 0),
                     *word;
        json_t *out = container ? json_object() : NULL;
        size_t i;
        json_array_foreach(json_object_get(container, "command"), i, word)
        {
                const char *w = json_string_value(word), *eq = w ? strchr(w, '=') : NULL;
                char name[128];
                if (!w || !has_prefix(w, "--"))
                        continue;
                snprintf(name, sizeof(name), "%.*s", eq ? (int)(eq - w - 2) : 127, w + 2);
                json_object_set_new(out, name, json_string(eq ? eq + 1 : "true"));
        }
        return out;
}

const char *adopt_flag(const json_t *flags, const char *name)
{
        return json_string_value(json_object_get(flags, name));
}

/* ---- the API ---- */

static char *decode(struct adopt *a, const char *base64)
{
        struct str text CLEANUP(str_wipe_release) = { 0 };
        if (!base64 || !*base64 || !str_add_from_base64(&text, base64, strlen(base64)))
                return NULL;
        return arena_strdup(a->arena, str_text(&text));
}

static const char *at(const json_t *o, const char *list, const char *inner, const char *key)
{
        return json_string_value(json_object_get(
                json_object_get(json_array_get(json_object_get(o, list), 0), inner), key));
}

/* https://[fd00::1]:6443 → fd00::1 and 6443; https without a port is 443. */
bool adopt_server(const char *url, char host[HOST_MAX], long *port)
{
        static const char scheme[] = "https://";
        if (!url || !has_prefix(url, scheme))
                return false;
        url += strlen(scheme);
        char *rest CLEANUP(free_p) = xstrndup(url, strcspn(url, "/"));
        if (!hostport_split(rest, host, port))
                return false;
        *port = *port ? *port : 443;
        return true;
}

static const char *host_port(struct adopt *a, const char *host, long port)
{
        char text[IP_TEXT + 2];
        struct ip ip;
        return arena_printf(
                a->arena, "%s:%ld", ip_parse(host, &ip) ? ip_host(&ip, text) : host, port);
}

static int open_api(struct adopt *a, struct kube **out, struct error *err)
{
        json_t *conf = adopt_yaml(a, files[AT_ADMIN].path, a->files[AT_ADMIN], err);
        if (!conf)
                return -err->code;
        char host[HOST_MAX];
        long port;
        bool named = adopt_server(at(conf, "clusters", "cluster", "server"), host, &port);
        a->endpoint = named ? host_port(a, host, port) : "";
        const char *servers[] = { arena_printf(a->arena, "https://%s", a->endpoint),
                arena_printf(
                        a->arena, "https://%s", host_port(a, a->target.host, named ? port : 6443)),
                NULL };
        struct kube_target target = { .servers = servers,
                .ca = decode(a, at(conf, "clusters", "cluster", "certificate-authority-data")),
                .cert = decode(a, at(conf, "users", "user", "client-certificate-data")),
                .key = decode(a, at(conf, "users", "user", "client-key-data")) };
        json_decref(conf);
        if (!named || !target.ca || !target.cert || !target.key) {
                error_set(err, EINVAL, EXIT_PREFLIGHT,
                        "%s on %s is not a kubeconfig written by kubeadm", files[AT_ADMIN].path,
                        a->target.host);
                return error_hint(err, "kubeadm init phase kubeconfig admin writes it again");
        }
        return kube_open(a->base, &target, out, err);
}

#define SYSTEM "/api/v1/namespaces/kube-system/configmaps/"

#define APPS "/apis/apps/v1/namespaces/kube-system/"

static char *adopt_copy(const char *text) { return text ? xstrdup(text) : NULL; }

static void ask_proxy(struct adopt *a, struct kube *k)
{
        struct error none CLEANUP(error_release) = { 0 };
        json_t *set = NULL, *map = NULL;
        if (kube_get(k, APPS "daemonsets/kube-proxy", &set, &none) < 0)
                return;
        a->proxy_image = adopt_copy(workload_image(set, "kube-proxy"));
        a->proxy_mode = xstrdup("iptables");
        if (kube_get(k, SYSTEM "kube-proxy", &map, &none) == 0) {
                const char *text = json_string_value(
                        json_object_get(json_object_get(map, "data"), "config.conf"));
                json_t *conf = text ? adopt_yaml(a, "kube-proxy", text, &none) : NULL;
                const char *mode = json_string_value(json_object_get(conf, "mode"));
                if (mode && *mode) {
                        free(a->proxy_mode);
                        a->proxy_mode = xstrdup(mode);
                }
                json_decref(conf);
        }
        json_decref(map);
        json_decref(set);
}

static void adopt_ask_dns(struct adopt *a, struct kube *k)
{
        struct error none CLEANUP(error_release) = { 0 };
        json_t *deployment = NULL;
        if (kube_get(k, APPS "deployments/coredns", &deployment, &none) == 0)
                a->dns_image = adopt_copy(workload_image(deployment, "coredns"));
        json_decref(deployment);
}

static int adopt_ask(struct adopt *a, struct kube *k, struct error *err)
{
        json_t *map = NULL, *version = NULL;
        int r = kube_get(k, SYSTEM "kubeadm-config", &map, err);
        if (r < 0)
                return error_hint(err, "only clusters made by kubeadm can be adopted");
        const char *text = json_string_value(
                json_object_get(json_object_get(map, "data"), "ClusterConfiguration"));
        a->config = adopt_yaml(a, "kubeadm-config", text ? text : "{}", err);
        json_decref(map);
        if (!a->config)
                return -err->code;
        if ((r = kube_get(k, "/api/v1/nodes", &a->nodes, err)) < 0 ||
                (r = kube_get(k, "/version", &version, err)) < 0)
                return r;
        const char *v = json_string_value(json_object_get(version, "gitVersion"));
        a->version = xstrndup(v && *v == 'v' ? v + 1 : "", v ? strcspn(v + 1, "+-") : 0);
        json_decref(version);
        ask_proxy(a, k);
        adopt_ask_dns(a, k);
        return 0;
}

/* The kubelet and the container runtime must use the same cgroup driver, or the
 * kubelet loses pods. */
static int check_cgroups(struct adopt *a, struct error *err)
{
        json_t *config = adopt_yaml(a, "kubelet", a->files[AT_KUBELET_CONFIG], err);
        if (!config)
                return -err->code;
        const char *found = json_string_value(json_object_get(config, "cgroupDriver")),
                   *ours = a->cgroup == 2 ? "systemd" : "cgroupfs";
        int r = 0;
        if (found && !streq(found, ours)) {
                error_set(err, ENOTSUP, EXIT_PREFLIGHT,
                        "the kubelet of %s has cgroupDriver %s, and slipway sets %s on cgroup v%d",
                        a->target.host, found, ours, a->cgroup);
                error_hint(err, "change it with kubeadm first, in the runtime and in the kubelets");
                r = -err->code;
        }
        json_decref(config);
        return r;
}

int adopt_read(struct adopt *a, struct error *err)
{
        struct kube *k = NULL;
        int r = adopt_read_files(a, err);
        if (r == 0)
                r = check_cgroups(a, err);
        if (r == 0)
                r = open_api(a, &k, err);
        if (r == 0)
                r = adopt_ask(a, k, err);
        kube_free(k);
        return r;
}

int adopt_given(struct adopt *a, struct identity_given *out, struct error *err)
{
        *out = (struct identity_given){ .sa_key = a->files[AT_SA_KEY],
                .encryption_key = a->key,
                .encryption_key_name = a->key_name };
        static const enum adopt_file crt[CA_COUNT] = { AT_CA_CRT, AT_ETCD_CA_CRT, AT_FRONT_CA_CRT },
                                     key[CA_COUNT] = { AT_CA_KEY, AT_ETCD_CA_KEY, AT_FRONT_CA_KEY };
        for (int i = 0; i < CA_COUNT; i++) {
                out->ca_cert[i] = a->files[crt[i]];
                out->ca_key[i] = a->files[key[i]];
        }
        return 0;
}

void adopt_release(struct adopt *a)
{
        for (int i = 0; a->files && i < AT_FILE_COUNT; i++)
                if (a->files[i] && files[i].secret)
                        wipe((char *)(uintptr_t)a->files[i], strlen(a->files[i]));
        if (a->extra[EXTRA_ENCRYPTION])
                wipe((char *)(uintptr_t)a->extra[EXTRA_ENCRYPTION],
                        strlen(a->extra[EXTRA_ENCRYPTION]));
        if (a->key)
                wipe((char *)(uintptr_t)a->key, strlen(a->key));
        json_decref(a->config);
        json_decref(a->nodes);
        free(a->version);
        free(a->proxy_mode);
        free(a->proxy_image);
        free(a->dns_image);
}
