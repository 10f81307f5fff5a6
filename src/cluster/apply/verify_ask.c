/* What the probes connect to, and what their answers mean. kubectl on a control-plane node runs
 * them, which also tests exec and logs: connections from the API server to every kubelet. */
#include "cluster/apply/verify.h"
#include "config/fabric.h"

#define AT_ONCE 8 /* kubectl processes, which need much memory */
/* Maximum of nodes that one probe connects to; together the probes reach every node. */
#define OTHERS      16
#define ASK_SECONDS "10" /* kube-proxy's rules may be a little later than the pods */
#define AGAIN       3    /* repetitions of one probe */
/* Milliseconds until an API server tries to connect to a kubelet again. */
#define PAUSE_MS   1000
#define OUTPUT_MAX (64 << 10)
#define TARGETS    8 /* maximum of a probe beside the other nodes */

#define WORDS 24 /* kubectl's arguments before the URLs */

static void verify_ask_next(struct verify *v);
static void run_exec(struct probe *p);
static void run_logs(struct probe *p);

static const char *kubectl_of(const struct member *m)
{
        const struct spec_entry *e =
                m->plan.rendered ? nodespec_find(&m->plan.spec, SPEC_ARTIFACT, "kubectl") : NULL;
        return e && e->path ? e->path : "kubectl";
}

/* Puts kubectl and its options into argv; returns their number. kubectl must not write its cache
 * into root's home. It uses the node's own load balancer, because it would wait for minutes if the
 * virtual IP moved. */
static size_t kubectl_words(const struct verify *v, const char **argv)
{
        const struct api *api = &v->site->cluster->api;
        const char *const words[] = { kubectl_of(v->from),
                "--kubeconfig=/etc/kubernetes/admin.conf", "--cache-dir=/var/lib/slipway/kubectl",
                "-n", VERIFY_NAMESPACE };
        memcpy(argv, words, sizeof(words));
        size_t n = ARRAY_SIZE(words);
        if (api->local_balancer)
                argv[n++] = arena_printf(
                        v->site->arena, "--server=https://127.0.0.1:%ld", api->local_port);
        return n;
}

static const char *name_of(const struct probe *p) { return p->member->node->name; }

/* ---- targets ---- */

static void verify_ask_add(struct probe *p, enum verify_check kind, const struct probe *to,
        const char *scheme, const char *host, const char *rest)
{
        bool six = strchr(host, ':') != NULL;
        char *bare CLEANUP(free_p) = six ? xasprintf("[%s]", host) : xstrdup(host);
        p->urls[p->count] = arena_printf(p->verify->site->arena, "%s%s%s", scheme, bare, rest);
        p->targets[p->count++] = (struct target){ kind, to };
}

static void targets_make(struct probe *p)
{
        struct verify *v = p->verify;
        struct arena *a = v->site->arena;
        size_t self = (size_t)(p - v->probes),
               others = v->count - 1 < OTHERS ? v->count - 1 : OTHERS;
        p->urls = arena_array(a, const char *, 2 * others + TARGETS);
        p->targets = arena_array(a, struct target, 2 * others + TARGETS);
        /* a single probe connects to itself */
        for (size_t i = v->count > 1; i <= others; i++) {
                const struct probe *to = &v->probes[(self + i) % v->count];
                for (size_t k = 0; k < ARRAY_SIZE(to->ip) && to->ip[k]; k++)
                        verify_ask_add(p, CHECK_POD, to, "http://", to->ip[k], ":8080/");
        }
        /* who serves Services is not slipway's */
        if (v->site->cluster->network.proxy_mode == PROXY_NONE &&
                !cluster_fabric(v->site->cluster)->replaces_proxy)
                return;
        for (size_t k = 0; k < ARRAY_SIZE(v->service) && v->service[k]; k++)
                verify_ask_add(p, CHECK_SERVICE, NULL, "http://", v->service[k], "/");
        verify_ask_add(p, CHECK_NAME, NULL, "http://",
                arena_printf(a, "%s." VERIFY_NAMESPACE ".svc.%s.", v->name,
                        v->site->cluster->network.domain),
                "/");
        verify_ask_add(p, CHECK_API, NULL, "tcp://", "kubernetes.default.svc", ":443");
}

/* ---- answers ---- */

/* "w2 (10.244.1.3:8080)", or the URL. */
static const char *target_text(const struct probe *p, size_t i)
{
        struct arena *a = p->verify->site->arena;
        const struct target *t = &p->targets[i];
        const char *url = strstr(p->urls[i], "://") + 3;
        int n = (int)strcspn(url, "/");
        return t->to ? arena_printf(a, "%s (%.*s)", name_of(t->to), n, url)
                     : arena_printf(a, "%.*s", n, url);
}

static void tell(struct probe *p, size_t i, const char *why)
{
        static const char *const hints[] = {
                [CHECK_POD] =
                        "see whether a firewall between these nodes drops the fabric's packets (VXLAN: UDP port 8472 of flannel, 4789 of calico), and the log of flanneld or calico-node on both",
                [CHECK_SERVICE] = "see kube-proxy's journal on that node",
                [CHECK_NAME] =
                        "see the pods of CoreDNS (kubectl -n kube-system get pods -l k8s-app=kube-dns -o wide) and whether that node reaches them",
                [CHECK_API] =
                        "see kube-proxy's journal on that node, and whether it reaches the control plane",
        };
        const struct target *t = &p->targets[i];
        const char *url = strstr(p->urls[i], "://") + 3;
        bool custom = !cluster_fabric(p->verify->site->cluster)->parts;
        int n = (int)strcspn(url, "/");
        verify_row(p->verify, t->kind, name_of(p), target_text(p, i), why);
        if (t->kind == CHECK_POD)
                verify_failed(p->verify,
                        custom ? "see the pods of the fabric on both nodes, and whether a firewall between them drops its packets"
                               : hints[t->kind],
                        "from a pod on %s to the pod on %s (%.*s): %s", name_of(p), name_of(t->to),
                        n, url, why);
        else
                verify_failed(p->verify, hints[t->kind], "from a pod on %s to the %s %.*s: %s",
                        name_of(p), t->kind == CHECK_SERVICE ? "service address" : "service name",
                        n, url, why);
}

/* "ok URL ANSWER" or "failed URL: WHY", in the order of the URLs. False: neither. */
static bool read_line(struct probe *p, size_t i, const char *line)
{
        size_t n = strlen(p->urls[i]);
        bool good = has_prefix(line, "ok "), bad = has_prefix(line, "failed ");
        const char *url = line + (good ? 3 : 7);
        if ((!good && !bad) || strncmp(url, p->urls[i], n) != 0)
                return false;
        const char *rest = url + n;
        if (bad)
                tell(p, i, has_prefix(rest, ": ") ? rest + 2 : rest);
        else if (p->targets[i].kind == CHECK_POD &&
                 !(*rest == ' ' && streq(rest + 1, name_of(p->targets[i].to)))) {
                char *why CLEANUP(free_p) =
                        xasprintf("'%.64s' answered instead", *rest ? rest + 1 : rest);
                tell(p, i, why);
        } else
                verify_row(p->verify, p->targets[i].kind, name_of(p), target_text(p, i), NULL);
        return true;
}

static void not_run(struct probe *p, enum verify_check check, int status, const char *errors)
{
        const char *what = check == CHECK_EXEC ? "exec" : "the log";
        char *why CLEANUP(free_p) = str_last_line_of(errors ? errors : "");
        p->verify->cut |= status < 0;
        verify_row(p->verify, check, name_of(p), NULL, *why ? why : "there was no error message");
        verify_failed(p->verify,
                "see whether the control plane reaches port 10250 of that node, and the kubelet's journal there",
                "%s of a pod on %s %s: %.300s", what, name_of(p),
                status < 0 ? "did not finish, because the connection was lost" : "does not work",
                *why ? why : "there was no error message");
}

static void verify_ask_over(struct verify *v)
{
        v->open--;
        verify_ask_next(v);
}

/* kubectl lost its connection to the API. In the first minutes of a cluster the virtual IP may
 * still move; that says nothing about the node. */
static bool api_cut(const char *errors)
{
        static const char *const signs[] = { "connection reset by peer", "connection refused",
                "unexpected EOF", "client connection lost", "connection timed out", "i/o timeout",
                "TLS handshake timeout" };
        for (size_t i = 0; i < ARRAY_SIZE(signs); i++)
                if (strstr(errors, signs[i]))
                        return true;
        return false;
}

static void on_verify_ask_pause(evutil_socket_t fd, short what, void *arg)
{
        struct probe *p = arg;
        if (p->verify->logs)
                run_logs(p);
        else
                run_exec(p);
}

/* Whether the probe is repeated. The API server did not reach the kubelet ("dialing backend"):
 * after a change either may have restarted, or the API server closed its connections because it
 * read a new client certificate. A timeout is not repeated, since it has taken long enough. */
static bool interrupted(struct probe *p, int status, const char *errors)
{
        const struct timeval pause = { .tv_usec = PAUSE_MS % 1000 * 1000,
                .tv_sec = PAUSE_MS / 1000 };
        bool backend = errors && strstr(errors, "dialing backend");
        if (status <= 0 || !errors ||
                (backend ? strstr(errors, "timeout") != NULL : !api_cut(errors)) ||
                p->again++ >= AGAIN)
                return false;
        if (backend)
                event_base_once(
                        p->verify->site->base, -1, EV_TIMEOUT, on_verify_ask_pause, p, &pause);
        else
                on_verify_ask_pause(-1, 0, p);
        return true;
}

/* Only Services do not answer yet. After a control-plane node was removed, the next controller
 * manager may not be leader yet: until then the pods of CoreDNS on that node are not replaced, and
 * their addresses stay in the Service. An API server that stopped without notice stays in the API's
 * Service for 15 seconds until its Lease expires; a kube-proxy connected to it notices after 45
 * seconds and then reconnects. */
static bool may_come(const struct probe *p, const char *out)
{
        char *text CLEANUP(free_p) = xstrdup(out ? out : ""), *rest = text;
        bool any = false;
        size_t i = 0;
        for (char *line; i < p->count && (line = strsep(&rest, "\n")); i++) {
                if (!has_prefix(line, "failed "))
                        continue;
                if (p->targets[i].kind == CHECK_POD)
                        return false;
                any = true;
        }
        if (!any || clock_ms() >= p->verify->deadline)
                return false;
        step_doing(p->verify->step, -1, "waiting for services and names on %s", name_of(p));
        return true;
}

static void on_verify_ask_asked(
        struct link *l, int status, const char *out, const char *errors, void *arg)
{
        struct probe *p = arg;
        if (may_come(p, out)) {
                run_exec(p);
                return;
        }
        char *text CLEANUP(free_p) = xstrdup(out ? out : ""), *rest = text;
        size_t i = 0;
        for (char *line; i < p->count && (line = strsep(&rest, "\n")) && read_line(p, i, line);)
                i++;
        if (i == 0 && interrupted(p, status, errors))
                return;
        if (i < p->count)
                not_run(p, CHECK_EXEC, status, errors);
        else
                verify_row(p->verify, CHECK_EXEC, name_of(p), NULL, NULL);
        verify_ask_over(p->verify);
}

static void on_logs(struct link *l, int status, const char *out, const char *errors, void *arg)
{
        struct probe *p = arg;
        if (interrupted(p, status, errors))
                return;
        if (status != 0 || !out)
                not_run(p, CHECK_LOGS, status, errors);
        else if (!strstr(out, "GET /") && !p->verify->failures) {
                verify_row(p->verify, CHECK_LOGS, name_of(p), NULL,
                        "it does not show the requests that the pod answered");
                verify_failed(p->verify, "see the kubelet's journal there",
                        "the log of a pod on %s does not show the requests that the pod answered",
                        name_of(p));
        } else
                verify_row(p->verify, CHECK_LOGS, name_of(p), NULL, NULL);
        verify_ask_over(p->verify);
}

/* ---- a few at a time ---- */

const char **verify_exec(struct probe *p, const char *const *words, size_t n)
{
        const char **argv = arena_array(p->verify->site->arena, const char *, n + WORDS);
        const char *const before[] = { "--request-timeout=60s", "exec", p->pod, "--", "/probe" };
        size_t k = kubectl_words(p->verify, argv);
        memcpy(argv + k, before, sizeof(before));
        memcpy(argv + k + ARRAY_SIZE(before), words, n * sizeof(*words));
        return argv;
}

static void run_exec(struct probe *p)
{
        if (!p->urls)
                targets_make(p);
        const char **words = arena_array(p->verify->site->arena, const char *, p->count + 3);
        words[0] = "ask";
        words[1] = "-t";
        words[2] = ASK_SECONDS;
        memcpy(words + 3, p->urls, p->count * sizeof(*words));
        member_run(p->verify->from, verify_exec(p, words, p->count + 3), NULL, OUTPUT_MAX,
                on_verify_ask_asked, p);
}

static void run_logs(struct probe *p)
{
        struct member *m = p->verify->from;
        const char *argv[WORDS] = { NULL };
        const char *const words[] = { "--request-timeout=30s", "logs", "--tail=100",
                "--limit-bytes=60000", p->pod };
        memcpy(argv + kubectl_words(p->verify, argv), words, sizeof(words));
        member_run(m, argv, NULL, OUTPUT_MAX, on_logs, p);
}

static void verify_ask_next(struct verify *v)
{
        step_doing(v->step, -1, v->logs ? "reading the probes' logs" : "the probes ask each other");
        while (!v->cut && v->at < v->count && v->open < AT_ONCE) {
                struct probe *p = &v->probes[v->at++];
                v->open++;
                if (v->logs)
                        run_logs(p);
                else
                        run_exec(p);
        }
        if (v->open)
                return;
        if (v->cut) {
                verify_kept(v);
                return;
        }
        if (v->logs) {
                verify_policy(v);
                return;
        }
        v->logs = true;
        v->at = 0;
        verify_ask_next(v);
}

struct member *verify_from(struct site *s)
{
        for (size_t i = 0; i < s->count; i++)
                if (member_reachable(&s->members[i]) &&
                        s->members[i].node->pool->roles & ROLE_CONTROL_PLANE)
                        return &s->members[i];
        return NULL;
}

void verify_ask(struct verify *v)
{
        struct error ignored CLEANUP(error_release) = { 0 };
        v->from = verify_from(v->site);
        if (v->from) {
                /* the spec has the path of kubectl */
                if (!v->from->plan.rendered)
                        member_render(v->from, &ignored);
                v->deadline = verify_patience(v);
                verify_ask_next(v);
                return;
        }
        verify_failed(
                v, "run again", "no control-plane node is connected to verify the cluster from");
        verify_end(v);
}
