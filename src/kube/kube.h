/* The Kubernetes API over libcurl, on the event loop: many requests at once, none blocks. Bodies are JSON (jansson); what is applied may be YAML text. */
#ifndef SLIPWAY_KUBE_H
#define SLIPWAY_KUBE_H

#include <jansson.h>

#include "base/error.h"
#include "base/str.h"

struct event_base;
struct kube;
struct kube_call;

struct kube_target {
        const char *const *servers;  /* https://host:port, NULL-terminated: the first that answers is used, and the next when it stops answering */
        const char *ca, *cert, *key; /* PEM texts */
        /* For servers behind a tunnel: the unix socket that leads to each, in the order of servers, which then say no more than whose certificate is expected.
         * A socket that is not there yet is waited for as long as a request has time. NULL: directly. */
        const char *const *sockets;
        const char *(*why)(size_t server, void *arg); /* why its tunnel is not open, or NULL */
        void *arg;
};

/* Whether any of the servers answers within that time, and with a certificate of the cluster: then no tunnel is needed. Waits for it. */
bool kube_direct(const struct kube_target *target, unsigned ms);
int kube_open(struct event_base *base, const struct kube_target *target, struct kube **out, struct error *err);
void kube_free(struct kube *k); /* ends its calls without callbacks; may be called inside one */
/* The last thing that went wrong, as a sentence, or NULL when the last answer was good: for "not ready after 5 min: ...". */
const char *kube_trouble(const struct kube *k);

struct kube_reply {
        int status;        /* HTTP, 0 when there was no answer */
        json_t *body;      /* borrowed; NULL when it is not JSON */
        const char *text;  /* the body as it came */
        const char *error; /* a sentence when status is 0 or >= 400: the API's own message, or what went wrong on the way; else NULL */
};
typedef void (*kube_fn)(const struct kube_reply *reply, void *arg);

/* method GET, DELETE, POST, PUT, PATCH (PATCH: content type by `type`). `body` may be NULL. Tried on the next server when a connection fails before an answer
 * (GET and server-side apply; others only when nothing was sent yet).
 * timeout in milliseconds, 0: 30 s. Returns a handle that is good until the callback. */
struct kube_call *kube_request(
        struct kube *k, const char *method, const char *path, const char *type, const char *body, unsigned timeout_ms, kube_fn fn, void *arg);
/* GET of one server and no other, by its place in the target's list: how that one is. Does not change which is used for the rest. */
struct kube_call *kube_ask(struct kube *k, size_t server, const char *path, unsigned timeout_ms, kube_fn fn, void *arg);
void kube_cancel(struct kube_call *c);

/* Server-side apply of one or many YAML/JSON documents (separated by ---), field manager "slipway", force. The path of each kind comes from a table of the
 * built-in kinds and else from discovery. Documents go in order of what they need (namespaces and CRDs; the rest at once; bare Pods, webhooks and APIServices).
 * What may pass (an API server that restarts, a CRD that is not served yet) is tried again for up to 30 s.
 * fn is called once, from the loop: error NULL when all are applied. */
void kube_apply(struct kube *k, const char *documents, void (*fn)(const char *error, void *arg), void *arg);

/* Watches a collection ("/api/v1/nodes"), beginning with what is there: fn for every ADDED, MODIFIED, DELETED, and "SYNCED" once the first list is through.
 * Reconnects by itself from the last resourceVersion, lists again on 410 (and tells what was missed: a DELETED object is then no more than its metadata).
 * Trouble is told as "ERROR" with a Status object (message, code; 0 when there was no answer), then tried again. Runs until cancelled.
 * `query` is added to the address ("labelSelector=..."), may be NULL. */
struct kube_call *kube_watch(struct kube *k, const char *path, const char *query, void (*fn)(const char *type, json_t *object, void *arg), void *arg);

/* Calls fn when GET /readyz of any server says ok; asks again after `interval_ms`, after 100 ms when the connection was refused.
 * That server is then used first. Runs until cancelled; kube_trouble says what it waits for. */
struct kube_call *kube_wait_ready(struct kube *k, unsigned interval_ms, void (*fn)(void *arg), void *arg);

/* Foreground: runs the loop until this one call is answered. For verbs that ask one thing. */
int kube_get(struct kube *k, const char *path, json_t **out, struct error *err);
/* The same with any method and a JSON body (NULL: none); status (0: no answer) and out may be NULL. */
int kube_do(struct kube *k, const char *method, const char *path, const char *body, int *status, json_t **out, struct error *err);

#endif
