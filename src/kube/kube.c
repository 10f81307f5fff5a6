#include <event2/event.h>

#include "kube/call.h"

void call_link(struct kube *k, struct kube_call *c)
{
        c->next = k->first;
        c->prev = NULL;
        if (k->first)
                k->first->prev = c;
        k->first = c;
        c->linked = true;
}

void call_unlink(struct kube_call *c)
{
        if (!c->linked)
                return;
        if (c->prev)
                c->prev->next = c->next;
        else
                c->k->first = c->next;
        if (c->next)
                c->next->prev = c->prev;
        c->linked = false;
}

void kube_cancel(struct kube_call *c)
{
        if (c)
                c->destroy(c);
}

static void kube_release(struct kube *k)
{
        curl_loop_release(&k->calls.loop);
        curl_loop_release(&k->streams.loop);
        for (size_t i = 0; i < k->count; i++) {
                free(k->servers[i]);
                if (k->sockets)
                        free(k->sockets[i]);
        }
        free(k->servers);
        free(k->sockets);
        free(k->ca);
        free(k->cert);
        if (k->key)
                wipe(k->key, strlen(k->key));
        free(k->key);
        free(k->trouble);
        json_decref(k->discovered);
        free(k);
        curl_global_cleanup();
}

void kube_enter(struct kube *k) { k->busy++; }

void kube_leave(struct kube *k)
{
        if (!--k->busy && k->dead)
                kube_release(k);
}

void kube_free(struct kube *k)
{
        if (!k || k->dead)
                return;
        k->dead = true;
        while (k->first)
                k->first->destroy(k->first);
        if (!k->busy)
                kube_release(k);
}

static int take_servers(struct kube *k, const char *const *servers, struct error *err)
{
        while (servers && servers[k->count])
                k->count++;
        if (!k->count)
                return error_set(
                        err, EINVAL, EXIT_INTERNAL, "no address of an API server is given");
        k->servers = xcalloc(k->count, sizeof(*k->servers));
        for (size_t i = 0; i < k->count; i++) {
                size_t n = strlen(servers[i]);
                while (n && servers[i][n - 1] == '/')
                        n--;
                k->servers[i] = xstrndup(servers[i], n);
        }
        for (size_t i = 0; i < k->count; i++)
                if (!has_prefix(k->servers[i], "https://") || !k->servers[i][8])
                        return error_set(err, EINVAL, EXIT_CONFIG,
                                "the address of the API server is \"%s\", but must be https://HOST:PORT",
                                k->servers[i]);
        return 0;
}

static void take_sockets(struct kube *k, const struct kube_target *target)
{
        k->why = target->why;
        k->why_arg = target->arg;
        k->sockets = target->sockets ? xcalloc(k->count, sizeof(*k->sockets)) : NULL;
        for (size_t i = 0; k->sockets && i < k->count; i++)
                k->sockets[i] = xstrdup(target->sockets[i]);
}

int kube_open(struct event_base *base, const struct kube_target *target, struct kube **out,
        struct error *err)
{
        struct kube *k = xcalloc(1, sizeof(*k));
        curl_global_init(CURL_GLOBAL_DEFAULT);
        k->base = base;
        k->ca = target->ca ? xstrdup(target->ca) : NULL;
        k->cert = target->cert ? xstrdup(target->cert) : NULL;
        k->key = target->key ? xstrdup(target->key) : NULL;
        k->discovered = json_object();
        int r = take_servers(k, target->servers, err);
        take_sockets(k, target);
        if (r == 0 && (engine_init(&k->calls, k, CALLS_AT_ONCE) < 0 ||
                              engine_init(&k->streams, k, 0) < 0))
                r = error_set(err, ENOMEM, EXIT_INTERNAL, "libcurl cannot be started");
        if (r < 0) {
                kube_release(k);
                return r;
        }
        *out = k;
        return 0;
}

size_t kube_current(const struct kube *k, const char **server, const char **socket)
{
        *server = k->servers[k->current];
        *socket = k->sockets ? k->sockets[k->current] : NULL;
        return k->current;
}

const char *kube_trouble(const struct kube *k) { return k->trouble; }

struct got {
        json_t *body;
        int status;
        bool done;
        struct error *err;
};

static void kube_on_got(const struct kube_reply *reply, void *arg)
{
        struct got *g = arg;
        int code = reply->status == 404                           ? ENOENT
                   : reply->status == 401 || reply->status == 403 ? EACCES
                   : reply->status                                ? EREMOTEIO
                                                                  : EHOSTUNREACH;
        g->done = true;
        g->status = reply->status;
        if (reply->error) {
                error_set(g->err, code, reply->status ? EXIT_STEP : EXIT_UNREACHABLE, "%s",
                        reply->error);
                if (!reply->status)
                        error_hint(g->err,
                                "check that the API server is running and that this computer can reach it");
        } else if (!reply->body) {
                error_set(g->err, EPROTO, EXIT_STEP, "the API server's answer is not JSON");
        } else {
                g->body = json_incref(reply->body);
        }
}

int kube_do(struct kube *k, const char *method, const char *path, const char *body, int *status,
        json_t **out, struct error *err)
{
        struct got g = { .err = err };
        if (k->busy)
                return error_set(err, EDEADLK, EXIT_INTERNAL,
                        "%s %s: a synchronous call inside a callback", method, path);
        struct kube_call *c = kube_request(
                k, method, path, body ? "application/json" : NULL, body, 0, kube_on_got, &g);
        while (!g.done)
                if (event_base_loop(k->base, EVLOOP_ONCE) != 0) {
                        kube_cancel(c);
                        return error_set(err, EIO, EXIT_INTERNAL,
                                "%s %s: the event loop ended before the answer", method, path);
                }
        if (status)
                *status = g.status;
        if (!g.body)
                return -err->code;
        if (out)
                *out = g.body;
        else
                json_decref(g.body);
        return 0;
}

int kube_get(struct kube *k, const char *path, json_t **out, struct error *err)
{
        return kube_do(k, "GET", path, NULL, NULL, out, err);
}
