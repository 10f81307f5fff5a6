/* Drives src/kube for the tests, which give it a real API server. Prints one JSON object a line.
 *
 *   kube_tool --ca F --cert F --key F --server URL... VERB ARGUMENT... */
#include <event2/event.h>

#include "base/file.h"
#include "kube/documents.h"
#include "kube/drain.h"
#include "kube/kube.h"
#include "kube/wait.h"

static struct event_base *base;
static struct kube *k;
static unsigned left; /* answers to wait for */

static void print(json_t *line)
{
        char *text = json_dumps(line, JSON_COMPACT | JSON_ENCODE_ANY);
        puts(text);
        fflush(stdout);
        free(text);
        json_decref(line);
}

static void read_into(const char *path, struct str *out)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (file_read(path, (size_t)128 << 20, out, &err) < 0) {
                fprintf(stderr, "%s\n", err.message);
                exit(1);
        }
}

static void run(void)
{
        while (left)
                if (event_base_loop(base, EVLOOP_ONCE) != 0)
                        exit(3);
}

static unsigned number(const char *text) { return (unsigned)strtoul(text, NULL, 10); }

static void on_reply(const struct kube_reply *r, void *arg)
{
        print(json_pack("{s:i, s:O?, s:s?, s:i}", "status", r->status, "body", r->body, "error",
                r->error, "size", (int)strlen(r->text)));
        left--;
}

/* request METHOD PATH TYPE|- BODYFILE|none TIMEOUT */
static void verb_request(char **v)
{
        struct str body CLEANUP(str_release) = { 0 };
        if (!streq(v[3], "none"))
                read_into(v[3], &body);
        left = 1;
        kube_request(k, v[0], v[1], streq(v[2], "-") ? NULL : v[2],
                streq(v[3], "none") ? NULL : str_text(&body), number(v[4]), on_reply, NULL);
        run();
}

/* parallel COUNT PATH */
static void verb_parallel(char **v)
{
        left = number(v[0]);
        for (unsigned i = left; i; i--)
                kube_request(k, "GET", v[1], NULL, NULL, 0, on_reply, NULL);
        run();
}

static void verb_get(char **v)
{
        struct error err CLEANUP(error_release) = { 0 };
        json_t *body = NULL;
        if (kube_get(k, v[0], &body, &err) < 0)
                print(json_pack("{s:s, s:i, s:i}", "error", err.message, "code", err.code, "exit",
                        (int)err.status));
        else
                print(json_pack("{s:o}", "body", body));
}

static void on_applied(const char *error, void *arg)
{
        print(json_pack("{s:s?}", "error", error));
        left--;
}

/* apply FILE... all at the same time */
static void verb_apply(char **v)
{
        for (; *v; v++) {
                struct str text CLEANUP(str_release) = { 0 };
                read_into(*v, &text);
                left++;
                kube_apply(k, str_text(&text), on_applied, NULL);
        }
        run();
}

static struct kube_call *watched;

static void on_change(const char *type, json_t *object, void *arg)
{
        print(json_pack("{s:s, s:s, s:s?, s:O?}", "type", type, "name", object_name(object),
                "message", json_string_value(json_object_get(object, "message")), "object",
                object));
        if (arg && streq(object_name(object), arg)) {
                kube_cancel(watched);
                left--;
        }
}

/* watch PATH QUERY|"" LAST: until an object of that name is seen */
static void verb_watch(char **v)
{
        left = 1;
        watched = kube_watch(k, v[0], v[1], on_change, v[2]);
        run();
}

static void on_ready(void *arg)
{
        print(json_string("ready"));
        left--;
}

static struct kube_call *waiting;

static void on_patience_end(evutil_socket_t fd, short what, void *arg)
{
        print(json_pack("{s:s?}", "trouble", kube_trouble(k)));
        kube_cancel(waiting);
        left = 0;
}

/* ready INTERVAL SECONDS */
static void verb_ready(char **v)
{
        struct event *timer = evtimer_new(base, on_patience_end, NULL);
        left = 1;
        waiting = kube_wait_ready(k, number(v[0]), on_ready, NULL);
        event_add(timer, &(struct timeval){ number(v[1]), 0 });
        run();
        event_free(timer);
}

static void never(const struct kube_reply *r, void *arg)
{
        puts("\"a cancelled call was answered\"");
        exit(3);
}

static void ignore_change(const char *type, json_t *object, void *arg) {}
static void ignore_reply(const struct kube_reply *r, void *arg) {}
static void ignore_ready(void *arg) {}
static void ignore_applied(const char *error, void *arg) {}

static void on_free(const struct kube_reply *r, void *arg)
{
        kube_free(TAKE(k));
        left--;
}

/* cancel PATH BODYFILE ROUNDS: calls of all kinds, half of them cancelled, the rest freed after so
 * many turns of the loop (0: inside a callback) */
static void verb_cancel(char **v)
{
        struct kube_call *calls[64];
        struct str text CLEANUP(str_release) = { 0 };
        unsigned rounds = number(v[2]);
        read_into(v[1], &text);
        for (size_t i = 0; i < 60; i++)
                calls[i] = kube_request(
                        k, "GET", v[0], NULL, NULL, 0, i < 30 ? never : ignore_reply, NULL);
        for (size_t i = 60; i < 62; i++)
                calls[i] = kube_watch(k, v[0], NULL, ignore_change, NULL);
        for (size_t i = 62; i < 64; i++)
                calls[i] = kube_wait_ready(k, 10, ignore_ready, NULL);
        kube_apply(k, str_text(&text), ignore_applied, NULL);
        for (size_t i = 0; i < 30; i++)
                kube_cancel(calls[i]);
        kube_cancel(calls[60]);
        kube_cancel(calls[62]);
        if (!rounds) {
                left = 100;
                kube_request(k, "GET", v[0], NULL, NULL, 0, on_free, NULL);
                while (k)
                        event_base_loop(base, EVLOOP_ONCE);
        }
        for (; rounds > 1; rounds--)
                event_base_loop(base, EVLOOP_NONBLOCK);
        kube_free(TAKE(k));
        print(json_string("freed"));
}

/* cordon NODE on|off */
static void on_cordoned(const struct kube_reply *reply, void *arg)
{
        on_applied(reply->error, arg);
}

static void verb_cordon(char **v)
{
        left = 1;
        kube_cordon(k, v[0], streq(v[1], "on"), on_cordoned, NULL);
        run();
}

static void on_drain_progress(size_t n, const char *held, void *arg)
{
        print(json_pack("{s:i, s:s}", "left", (int)n, "held", held));
}

static void on_drain_orphan(const char *pod, void *arg)
{
        print(json_pack("{s:s}", "orphan", pod));
}

/* drain NODE SECONDS [free]: ends with {"error":..}; with free it is let go in the middle, and ends
 * without a word */
static void verb_drain(char **v)
{
        struct drain_events e = { on_drain_progress, on_drain_orphan, on_applied, NULL };
        struct drain *d = drain_start(k, base, v[0], number(v[1]), &e);
        left = 1;
        if (!v[2]) {
                run();
                return;
        }
        for (int i = 0; i < 20 && left; i++)
                event_base_loop(base, EVLOOP_ONCE);
        if (left)
                drain_free(d);
        print(json_string("freed"));
}

/* documents FILE: no server needed, likewise state */
static void verb_documents(char **v)
{
        struct str text CLEANUP(str_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        json_t *objects = NULL;
        read_into(v[0], &text);
        if (documents_read(str_text(&text), &objects, &err) < 0)
                print(json_pack("{s:s}", "error", err.message));
        else
                print(objects);
}

static void verb_state(char **v)
{
        struct str text CLEANUP(str_release) = { 0 };
        read_into(v[0], &text);
        json_auto_t *o = json_loadb(str_text(&text), text.len, 0, NULL);
        json_auto_t *pods = json_pack("{s:[O]}", "items", o);
        char *why CLEANUP(free_p) = pods_failing(pods);
        print(json_pack("{s:b, s:s?, s:b, s:b, s:b, s:b, s:s?, s:s?, s:s?}", "node", node_ready(o),
                "ip", node_internal_ip(o), "pod", pod_ready(o), "deployment",
                deployment_available(o), "daemonset", daemonset_ready(o), "crd", crd_established(o),
                "why", condition_why(o, "Ready"), "failing",
                json_string_value(json_object_get(pod_failing(o), "name")), "pods", why));
}

static const struct verb {
        const char *name;
        void (*run)(char **v);
        int arguments; /* at least */
} verbs[] = {
        { "request", verb_request, 5 },
        { "parallel", verb_parallel, 2 },
        { "get", verb_get, 1 },
        { "apply", verb_apply, 1 },
        { "watch", verb_watch, 3 },
        { "ready", verb_ready, 2 },
        { "cancel", verb_cancel, 3 },
        { "cordon", verb_cordon, 2 },
        { "drain", verb_drain, 2 },
        { "documents", verb_documents, 1 },
        { "state", verb_state, 1 },
};

static int open_and_run(const struct kube_target *target, const struct verb *verb, char **v)
{
        struct error err CLEANUP(error_release) = { 0 };
        base = event_base_new();
        int r = kube_open(base, target, &k, &err);
        if (r < 0)
                print(json_pack("{s:s}", "error", err.message));
        else
                verb->run(v);
        kube_free(k);
        event_base_free(base);
        libevent_global_shutdown();
        return r < 0;
}

int main(int argc, char **argv)
{
        const char *servers[8] = { "https://127.0.0.1:1" }, *sockets[8] = { NULL };
        size_t n = 0;
        struct str pem[3] = { 0 };
        int i = 1;
        for (; i + 1 < argc && has_prefix(argv[i], "--"); i += 2) {
                if (streq(argv[i], "--server") && n < ARRAY_SIZE(servers) - 1)
                        servers[n++] = argv[i + 1];
                else if (streq(argv[i], "--socket") && n) /* of the server before it */
                        sockets[n - 1] = argv[i + 1];
                else
                        read_into(argv[i + 1], &pem[streq(argv[i], "--ca")        ? 0
                                                       : streq(argv[i], "--cert") ? 1
                                                                                  : 2]);
        }
        int status = 2;
        struct kube_target target = { servers, pem[0].data, pem[1].data, pem[2].data,
                sockets[0] ? sockets : NULL };
        for (size_t v = 0; i < argc && v < ARRAY_SIZE(verbs); v++)
                if (streq(verbs[v].name, argv[i]) && argc - i - 1 >= verbs[v].arguments)
                        status = open_and_run(&target, &verbs[v], argv + i + 1);
        for (size_t p = 0; p < ARRAY_SIZE(pem); p++)
                str_release(&pem[p]);
        return status;
}
