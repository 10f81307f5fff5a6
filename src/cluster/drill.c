#include <arpa/inet.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include "base/file.h"
#include "cluster/drill.h"
#include "cluster/etcd.h"

#define PATIENCE 600 /* seconds for a program to be there, on a computer that is busy */

static void fail(struct drill *d, enum exit_status status, const char *hint, const char *fmt, ...) PRINTF(4, 5);
static void fail(struct drill *d, enum exit_status status, const char *hint, const char *fmt, ...)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct str s CLEANUP(str_release) = { 0 };
        struct step *step = TAKE(d->step);
        va_list ap;
        if (!step)
                return;
        va_start(ap, fmt);
        str_vaddf(&s, fmt, ap);
        va_end(ap);
        error_set(&err, EIO, status, "%s", str_text(&s));
        if (hint)
                error_hint(&err, "%s", hint);
        step_done(step, &err);
}

static void good(struct drill *d)
{
        struct step *step = TAKE(d->step);
        if (step)
                step_done(step, NULL);
}

/* ---- programs ---- */

static const char *in_dir(struct drill *d, const char *name) { return arena_printf(d->site->arena, "%s/%s", d->dir, name); }

static const char *program(struct drill *d, const char *name)
{
        for (size_t i = 0; i < d->site->item_count; i++)
                if (!d->site->items[i].image && streq(d->site->items[i].name, name))
                        return in_dir(d, name);
        return name;
}

static void on_words(struct proc *p, const char *data, size_t n, void *arg)
{
        struct drill *d = arg;
        if (d->said.len > (64 << 10))
                str_truncate(&d->said, 0);
        str_addn(&d->said, data, n);
}

static void on_output(struct proc *p, const char *data, size_t n, void *arg) { str_addn(&((struct drill *)arg)->out, data, n); }

static bool start(struct drill *d, const char *const *argv, struct proc **at, void (*on_exit)(struct proc *, int, void *))
{
        struct error err CLEANUP(error_release) = { 0 };
        str_truncate(&d->out, 0);
        struct proc_spec spec = { .argv = argv, .dir = d->dir, .on_out = on_output, .on_err = on_words, .on_exit = on_exit, .arg = d };
        if (proc_start(d->site->base, &spec, at, &err) == 0) {
                proc_end_input(*at);
                return true;
        }
        fail(d, EXIT_INTERNAL, NULL, "%s", err.message);
        return false;
}

static void ended(struct drill *d, const char *name, int status)
{
        char *line CLEANUP(free_p) = etcd_last_line(str_text(&d->said));
        fail(d, EXIT_STEP, "the snapshot cannot be used as it is: take another", "%s ended with status %d: %.400s", name, status,
                *line ? line : "it said nothing");
}

static void on_etcd_end(struct proc *p, int status, void *arg)
{
        struct drill *d = arg;
        d->etcd = NULL;
        ended(d, "etcd", status);
}

static void on_api_end(struct proc *p, int status, void *arg)
{
        struct drill *d = arg;
        d->api = NULL;
        ended(d, "kube-apiserver", status);
}

/* ---- what it is made of ---- */

static void on_fetch(const struct item *item, const char *what, int permille, void *arg) { step_doing(arg, permille, "%s %s", what, item->name); }

/* An image is a tar of tars: the program is in one of its layers. */
static int unpack_api(struct drill *d, const struct item *image, struct error *err)
{
        const char *layer = in_dir(d, "layer"), *to = in_dir(d, "kube-apiserver"), *const inside = "usr/local/bin/kube-apiserver";
        struct str manifest CLEANUP(str_release) = { 0 };
        int r = proc_must((const char *const[]){ "tar", "-xOf", image->path, "manifest.json", NULL }, &manifest, err);
        json_t *list = r < 0 ? NULL : json_loads(str_text(&manifest), 0, NULL), *layers = json_object_get(json_array_get(list, 0), "Layers");
        bool found = false;
        for (size_t i = json_array_size(layers); r == 0 && !found && i; i--) {
                const char *name = json_string_value(json_array_get(layers, i - 1));
                struct error none CLEANUP(error_release) = { 0 };
                r = proc_must(
                        (const char *const[]){ "sh", "-c", "tar -xOf \"$1\" \"$2\" >\"$3\"", "sh", image->path, name ? name : "", layer, NULL }, NULL, err);
                if (r == 0)
                        found = proc_must((const char *const[]){ "tar", "-xf", layer, "-C", d->dir, "--strip-components=3", inside, NULL }, NULL, &none) == 0;
                unlink(layer);
        }
        json_decref(list);
        if (r == 0 && (!found || access(to, X_OK) < 0))
                r = error_set(err, ENOENT, EXIT_INTERNAL, "the image %s has no program %s", image->name, inside);
        return r;
}

static int take_program(struct drill *d, const struct item *item, struct error *err)
{
        return proc_must((const char *const[]){ "install", "-m", "0755", item->path, in_dir(d, item->name), NULL }, NULL, err);
}

static void on_fetched(struct error *err, void *arg)
{
        struct step *s = arg;
        struct drill *d = s->arg;
        struct error own CLEANUP(error_release) = { 0 };
        int r = 0;
        for (size_t i = 0; !err && r == 0 && i < d->site->item_count; i++)
                r = d->site->items[i].image ? unpack_api(d, &d->site->items[i], &own) : take_program(d, &d->site->items[i], &own);
        step_done(s, err ? err : r < 0 ? &own : NULL);
}

static bool is_needed(const struct item *i)
{
        return i->image ? strstr(i->name, "/kube-apiserver:") != NULL : streq(i->name, "etcd") || streq(i->name, "etcdctl") || streq(i->name, "etcdutl");
}

static void step_programs(struct step *s)
{
        struct drill *d = s->arg;
        struct site *site = d->site;
        struct error err CLEANUP(error_release) = { 0 };
        size_t count = 0, n;
        site->items = fetch_items(site->cluster, site->arena, &count, &err);
        for (size_t i = 0; site->items && i < count; i++)
                if (is_needed(&site->items[i]))
                        site->items[site->item_count++] = site->items[i];
        struct fetch_request request = { .cluster = site->cluster,
                .arch = "amd64",
                .items = site->items,
                .count = site->item_count,
                .on_progress = on_fetch,
                .on_done = on_fetched,
                .arg = s };
        request.agent = agent_bytes(&n);
        request.agent_len = n;
        if (!site->items || dir_remove(d->dir, &err) < 0 || dir_make(d->dir, 0700, &err) < 0 || fetch_start(site->base, &request, &site->fetch, &err) < 0)
                step_done(s, &err);
}

/* ---- etcd ---- */

static int free_port(void)
{
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t n = sizeof(a);
        int fd CLEANUP(close_p) = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || getsockname(fd, (struct sockaddr *)&a, &n) < 0)
                return 0;
        return ntohs(a.sin_port);
}

static int put(struct drill *d, const char *name, const char *text, struct error *err)
{
        return text ? file_write(in_dir(d, name), text, strlen(text), 0600, 0, NULL, err) : 0;
}

/* The cluster's own keys: nobody but us reads what the drill serves, also on a computer with other people on it. */
static int write_keys(struct drill *d, struct error *err)
{
        struct site *s = d->site;
        size_t i = 0, k = 0;
        const struct node *control = cluster_next(s->cluster, ROLE_CONTROL_PLANE, &i), *store = cluster_next(s->cluster, ROLE_ETCD, &k);
        struct member *m = site_member(s, control->name);
        struct node_identity etcd = { 0 };
        struct facts facts = { 0 };
        struct nodespec spec = { 0 };
        int r = m->leaves.leaf[LEAF_SUPER_ADMIN].cert ? 0 : identity_node(&s->identity, s->cluster, control, &m->leaves, err);
        if (r == 0)
                r = identity_node(&s->identity, s->cluster, store, &etcd, err);
        const struct {
                const char *name, *text;
        } files[] = { { "etcd-ca.crt", s->identity.ca[CA_ETCD].cert }, { "server.crt", etcd.leaf[LEAF_ETCD_SERVER].cert },
                { "server.key", etcd.leaf[LEAF_ETCD_SERVER].key }, { "client.crt", m->leaves.leaf[LEAF_APISERVER_ETCD_CLIENT].cert },
                { "client.key", m->leaves.leaf[LEAF_APISERVER_ETCD_CLIENT].key }, { "ca.crt", s->identity.ca[CA_CLUSTER].cert },
                { "apiserver.crt", m->leaves.leaf[LEAF_APISERVER].cert }, { "apiserver.key", m->leaves.leaf[LEAF_APISERVER].key },
                { "sa.key", s->identity.sa_key }, { "sa.pub", s->identity.sa_pub } };
        for (size_t n = 0; r == 0 && n < ARRAY_SIZE(files); n++)
                r = put(d, files[n].name, files[n].text, err);
        if (r == 0)
                r = facts_for(NULL, control, &facts, err);
        struct spec_input in = { .cluster = s->cluster, .identity = &s->identity, .leaves = &m->leaves, .node = control, .facts = &facts };
        if (r == 0 && (r = node_render(&in, &spec, err)) == 0) {
                const struct spec_entry *e = nodespec_find(&spec, SPEC_FILE, "/etc/kubernetes/encryption/config.yaml");
                r = e ? put(d, "encryption.yaml", e->content, err) : 0;
                nodespec_release(&spec);
        }
        node_identity_release(&etcd);
        return r;
}

static void on_restored(struct proc *p, int status, void *arg)
{
        struct drill *d = arg;
        d->other = NULL;
        if (status)
                ended(d, "etcdutl snapshot restore", status);
        else
                good(d);
}

static void step_drill_restore(struct step *s)
{
        struct drill *d = s->arg;
        struct error err CLEANUP(error_release) = { 0 };
        d->client_port = free_port();
        d->peer_port = free_port();
        d->api_port = free_port();
        char *path CLEANUP(free_p) = realpath(d->snapshot->path, NULL);
        if (!path || write_keys(d, &err) < 0) {
                step_done(s, err.code ? &err : NULL);
                return;
        }
        const char *peer = arena_printf(d->site->arena, "https://127.0.0.1:%d", d->peer_port);
        d->step = s;
        start(d,
                (const char *const[]){ program(d, "etcdutl"), "snapshot", "restore", path, "--data-dir", in_dir(d, "data"), "--name", "drill",
                        "--initial-cluster", arena_printf(d->site->arena, "drill=%s", peer), "--initial-advertise-peer-urls", peer, NULL },
                &d->other, on_restored);
}

static const char **etcdctl(struct drill *d, const char *const *words)
{
        const char **v = arena_array(d->site->arena, const char *, 24);
        const char *const head[] = { program(d, "etcdctl"), "--endpoints", arena_printf(d->site->arena, "https://127.0.0.1:%d", d->client_port), "--cacert",
                in_dir(d, "etcd-ca.crt"), "--cert", in_dir(d, "client.crt"), "--key", in_dir(d, "client.key"), "--dial-timeout", "5s", "--command-timeout",
                "300s" };
        memcpy(v, head, sizeof(head));
        for (size_t n = ARRAY_SIZE(head); *words; n++)
                v[n] = *words++;
        return v;
}

static void again(struct drill *d, event_callback_fn fn)
{
        static const struct timeval soon = { .tv_usec = 300000 };
        event_base_once(d->site->base, -1, EV_TIMEOUT, fn, d, &soon);
}

/* Keys by lines; the revision is the restored one, which the API is asked for: so what the API server itself writes does not count. */
static void on_keys(struct proc *p, int status, void *arg)
{
        struct drill *d = arg;
        static const char root[] = "/registry/";
        size_t n = 0;
        d->other = NULL;
        if (status) {
                ended(d, "etcdctl get", status);
                return;
        }
        for (const char *c = str_text(&d->out); *c; c++)
                n += *c == '\n';
        d->keys = arena_array(d->site->arena, const char *, n + 1);
        char *text = arena_strdup(d->site->arena, str_text(&d->out));
        for (char *line; (line = strsep(&text, "\n"));)
                if (has_prefix(line, root))
                        d->keys[d->key_count++] = line + sizeof(root) - 1;
        if (d->key_count)
                good(d);
        else
                fail(d, EXIT_UNHEALTHY, "take another snapshot", "the snapshot has no key of Kubernetes (/registry/)");
}

static void ask_state(evutil_socket_t fd, short what, void *arg);

static void on_state(struct proc *p, int status, void *arg)
{
        struct drill *d = arg;
        struct etcd_state s;
        d->other = NULL;
        json_t *answer = status == 0 ? etcd_json(str_text(&d->out)) : NULL;
        bool known = etcd_state(answer, &s) && s.leader;
        int64_t revision = s.revision;
        json_decref(answer);
        if (!known) {
                if (d->step)
                        again(d, ask_state);
                return;
        }
        d->revision = revision;
        if (d->snapshot->revision >= 0 && d->revision != d->snapshot->revision)
                fail(d, EXIT_UNHEALTHY, "take another snapshot", "the restored store is at revision %" PRId64 ", and the snapshot was taken at %" PRId64,
                        d->revision, d->snapshot->revision);
        else
                start(d, etcdctl(d, (const char *const[]){ "get", "/registry/", "--prefix", "--keys-only", NULL }), &d->other, on_keys);
}

static void ask_state(evutil_socket_t fd, short what, void *arg)
{
        struct drill *d = arg;
        if (d->step && d->etcd)
                start(d, etcdctl(d, (const char *const[]){ "endpoint", "status", "-w", "json", NULL }), &d->other, on_state);
}

static void step_drill_etcd(struct step *s)
{
        struct drill *d = s->arg;
        struct arena *a = d->site->arena;
        const char *client = arena_printf(a, "https://127.0.0.1:%d", d->client_port), *peer = arena_printf(a, "https://127.0.0.1:%d", d->peer_port);
        d->step = s;
        step_deadline(s, PATIENCE, "run it again when this computer is less busy");
        if (start(d,
                    (const char *const[]){ program(d, "etcd"), "--name", "drill", "--data-dir", in_dir(d, "data"), "--listen-client-urls", client,
                            "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster",
                            arena_printf(a, "drill=%s", peer), "--cert-file", in_dir(d, "server.crt"), "--key-file", in_dir(d, "server.key"),
                            "--client-cert-auth", "--trusted-ca-file", in_dir(d, "etcd-ca.crt"), "--peer-cert-file", in_dir(d, "server.crt"), "--peer-key-file",
                            in_dir(d, "server.key"), "--peer-client-cert-auth", "--peer-trusted-ca-file", in_dir(d, "etcd-ca.crt"), "--unsafe-no-fsync",
                            "--log-level", "warn", "--quota-backend-bytes", "17179869184", NULL },
                    &d->etcd, on_etcd_end))
                ask_state(-1, 0, d);
}

/* ---- the API server ---- */

static void on_ready(void *arg)
{
        struct drill *d = arg;
        d->site->wait = NULL;
        good(d);
}

static void run_api(struct drill *d)
{
        struct arena *a = d->site->arena;
        struct error err CLEANUP(error_release) = { 0 };
        char cidr[IP_TEXT + 4];
        const char *v[40] = { in_dir(d, "kube-apiserver"), arena_printf(a, "--etcd-servers=https://127.0.0.1:%d", d->client_port), "--etcd-cafile=etcd-ca.crt",
                "--etcd-certfile=client.crt", "--etcd-keyfile=client.key", "--etcd-compaction-interval=0", "--bind-address=127.0.0.1",
                arena_printf(a, "--secure-port=%d", d->api_port), "--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none",
                "--tls-cert-file=apiserver.crt", "--tls-private-key-file=apiserver.key", "--client-ca-file=ca.crt", "--service-account-key-file=sa.pub",
                "--service-account-signing-key-file=sa.key", "--service-account-issuer=https://kubernetes.default.svc", "--authorization-mode=RBAC",
                "--anonymous-auth=false", "--disable-admission-plugins=MutatingAdmissionWebhook,ValidatingAdmissionWebhook", "--runtime-config=api/all=true",
                "--cert-dir=.", "--profiling=false" };
        size_t n = 22;
        if (d->site->cluster->network.services.n)
                v[n++] = arena_printf(a, "--service-cluster-ip-range=%s", cidr_format(&d->site->cluster->network.services.v[0], cidr));
        if (access(in_dir(d, "encryption.yaml"), F_OK) == 0)
                v[n++] = "--encryption-provider-config=encryption.yaml";
        size_t i = 0;
        const struct member *m = site_member(d->site, cluster_next(d->site->cluster, ROLE_CONTROL_PLANE, &i)->name);
        const struct leaf *admin = &m->leaves.leaf[LEAF_SUPER_ADMIN];
        const char **servers = arena_array(a, const char *, 2);
        servers[0] = arena_printf(a, "https://127.0.0.1:%d", d->api_port);
        struct kube_target target = { .servers = servers, .ca = d->site->identity.ca[CA_CLUSTER].bundle, .cert = admin->cert, .key = admin->key };
        if (!start(d, v, &d->api, on_api_end))
                return;
        if (kube_open(d->site->base, &target, &d->kube, &err) < 0)
                fail(d, EXIT_INTERNAL, NULL, "%s", err.message);
        else
                d->site->wait = kube_wait_ready(d->kube, 300, on_ready, d);
}

static void on_cleared(struct proc *p, int status, void *arg)
{
        struct drill *d = arg;
        d->other = NULL;
        if (status)
                ended(d, "etcdctl del", status);
        else
                run_api(d);
}

/* Aggregated APIs are taken out first, or their servers in the live cluster would be called; at the restored revision they are still read. */
static void step_drill_api(struct step *s)
{
        struct drill *d = s->arg;
        d->step = s;
        step_deadline(s, PATIENCE, "run it again when this computer is less busy");
        start(d, etcdctl(d, (const char *const[]){ "del", "/registry/apiregistration.k8s.io/apiservices/", "--prefix", NULL }), &d->other, on_cleared);
}

/* ---- all of it ---- */

void drill_steps(struct drill *d, struct site *s, struct snapshot *snapshot)
{
        static const struct {
                const char *name;
                void (*start)(struct step *);
        } rows[] = { { "programs", step_programs }, { "restore", step_drill_restore }, { "etcd", step_drill_etcd }, { "API server", step_drill_api },
                { "read back", step_drill_count } };
        char *dir CLEANUP(free_p) = path_join(s->identity.dir, "drill");
        struct step *before = NULL;
        char *absolute = has_prefix(dir, "/") ? NULL : getcwd(NULL, 0);
        *d = (struct drill){ .site = s, .snapshot = snapshot, .dir = absolute ? path_join(absolute, dir) : xstrdup(dir) };
        free(absolute);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct step *step = run_step(&s->run, rows[i].name, NULL, rows[i].start, d);
                step_after(step, before);
                before = step;
        }
}

void drill_release(struct drill *d)
{
        struct error ignored CLEANUP(error_release) = { 0 };
        kube_free(d->kube);
        proc_free(d->other);
        proc_free(d->api);
        proc_free(d->etcd);
        for (size_t i = 0; i < d->kind_count; i++)
                free(d->kinds[i].trouble);
        free(d->kinds);
        str_release(&d->said);
        str_release(&d->out);
        str_release(&d->orphans);
        if (d->dir)
                dir_remove(d->dir, &ignored);
        free(d->dir);
}
