/* The etcd of a drill: restored with the cluster's own keys, on the loopback address only. */
#include <event2/event.h>

#include "cluster/etcd/drill/drill.h"
#include "cluster/etcd/etcd.h"

static void on_etcd_end(struct proc *p, int status, void *arg)
{
        struct drill *d = arg;
        d->etcd = NULL;
        drill_ended(d, "etcd", status);
}

static void on_restored(struct proc *p, int status, void *arg)
{
        struct drill *d = arg;
        d->other = NULL;
        if (status)
                drill_ended(d, "etcdutl snapshot restore", status);
        else
                drill_good(d);
}

void step_drill_restore(struct step *s)
{
        struct drill *d = s->arg;
        struct error err CLEANUP(error_release) = { 0 };
        d->client_port = drill_port();
        d->peer_port = drill_port();
        d->api_port = drill_port();
        char *path CLEANUP(free_p) = realpath(d->snapshot->path, NULL);
        if (!path || drill_keys(d, &err) < 0) {
                step_done(s, err.code ? &err : NULL);
                return;
        }
        const char *peer = arena_printf(d->site->arena, "https://127.0.0.1:%d", d->peer_port);
        d->step = s;
        drill_start(d,
                (const char *const[]){ drill_program(d, "etcdutl"), "snapshot", "restore", path,
                        "--data-dir", drill_path(d, "data"), "--name", "drill", "--initial-cluster",
                        arena_printf(d->site->arena, "drill=%s", peer),
                        "--initial-advertise-peer-urls", peer, NULL },
                &d->other, on_restored);
}

const char **drill_etcdctl(struct drill *d, const char *const *words)
{
        const char **v = arena_array(d->site->arena, const char *, 24);
        const char *const head[] = { drill_program(d, "etcdctl"), "--endpoints",
                arena_printf(d->site->arena, "https://127.0.0.1:%d", d->client_port), "--cacert",
                drill_path(d, "etcd-ca.crt"), "--cert", drill_path(d, "client.crt"), "--key",
                drill_path(d, "client.key"), "--dial-timeout", "5s", "--command-timeout", "300s" };
        memcpy(v, head, sizeof(head));
        for (size_t n = ARRAY_SIZE(head); *words; n++)
                v[n] = *words++;
        return v;
}

static void drill_etcd_again(struct drill *d, event_callback_fn fn)
{
        static const struct timeval soon = { .tv_usec = 300000 };
        event_base_once(d->site->base, -1, EV_TIMEOUT, fn, d, &soon);
}

/* One key per line. The API is queried at the restored revision, so what the drill's API server
 * writes is not counted. */
static void on_keys(struct proc *p, int status, void *arg)
{
        struct drill *d = arg;
        static const char root[] = "/registry/";
        size_t n = 0;
        d->other = NULL;
        if (status) {
                drill_ended(d, "etcdctl get", status);
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
                drill_good(d);
        else
                drill_fail(d, EXIT_UNHEALTHY, "take another snapshot",
                        "the snapshot has no key of Kubernetes (/registry/)");
}

static void ask_state(evutil_socket_t fd, short what, void *arg);

static void on_drill_etcd_state(struct proc *p, int status, void *arg)
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
                        drill_etcd_again(d, ask_state);
                return;
        }
        d->revision = revision;
        if (d->snapshot->revision >= 0 && d->revision != d->snapshot->revision)
                drill_fail(d, EXIT_UNHEALTHY, "take another snapshot",
                        "the restored store is at revision %" PRId64
                        ", and the snapshot was taken at %" PRId64,
                        d->revision, d->snapshot->revision);
        else
                drill_start(d,
                        drill_etcdctl(d, (const char *const[]){ "get", "/registry/", "--prefix",
                                                 "--keys-only", NULL }),
                        &d->other, on_keys);
}

static void ask_state(evutil_socket_t fd, short what, void *arg)
{
        struct drill *d = arg;
        if (d->step && d->etcd)
                drill_start(d,
                        drill_etcdctl(d,
                                (const char *const[]){ "endpoint", "status", "-w", "json", NULL }),
                        &d->other, on_drill_etcd_state);
}

void step_drill_etcd(struct step *s)
{
        struct drill *d = s->arg;
        struct arena *a = d->site->arena;
        const char *client = arena_printf(a, "https://127.0.0.1:%d", d->client_port),
                   *peer = arena_printf(a, "https://127.0.0.1:%d", d->peer_port);
        d->step = s;
        step_deadline(s, DRILL_PATIENCE, "run it again when this computer is less busy");
        if (drill_start(d,
                    (const char *const[]){ drill_program(d, "etcd"), "--name", "drill",
                            "--data-dir", drill_path(d, "data"), "--listen-client-urls", client,
                            "--advertise-client-urls", client, "--listen-peer-urls", peer,
                            "--initial-advertise-peer-urls", peer, "--initial-cluster",
                            arena_printf(a, "drill=%s", peer), "--cert-file",
                            drill_path(d, "server.crt"), "--key-file", drill_path(d, "server.key"),
                            "--client-cert-auth", "--trusted-ca-file", drill_path(d, "etcd-ca.crt"),
                            "--peer-cert-file", drill_path(d, "server.crt"), "--peer-key-file",
                            drill_path(d, "server.key"), "--peer-client-cert-auth",
                            "--peer-trusted-ca-file", drill_path(d, "etcd-ca.crt"),
                            "--unsafe-no-fsync", "--log-level", "warn", "--quota-backend-bytes",
                            "17179869184", NULL },
                    &d->etcd, on_etcd_end))
                ask_state(-1, 0, d);
}
