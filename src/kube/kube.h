/* The Kubernetes API over libcurl, on the event loop: many requests at once, none blocks. Bodies
 * are JSON (jansson); documents to apply may be YAML. */
#ifndef SLIPWAY_KUBE_H
#define SLIPWAY_KUBE_H

#include <jansson.h>

#include "base/error.h"
#include "base/str.h"

struct event_base;
struct kube;
struct kube_call;

struct kube_target {
        /* https://host:port, NULL-terminated: the first that answers is used, and the next when
         * that one stops answering */
        const char *const *servers;
        const char *ca, *cert, *key; /* PEM texts */
        /* For servers behind a tunnel: the unix socket of each, in the order of servers, whose
         * addresses then only say which certificate is expected. A request waits for a missing
         * socket until its timeout. NULL: no tunnels. */
        const char *const *sockets;
        /* why the server's tunnel is not open, or NULL */
        const char *(*why)(size_t server, void *arg);
        void *arg;
};

/* Whether any server answers within that time with a certificate of the cluster: then no tunnel is
 * needed. Blocks. */
bool kube_direct(const struct kube_target *target, unsigned ms);
int kube_open(struct event_base *base, const struct kube_target *target, struct kube **out,
        struct error *err);
void kube_free(struct kube *k); /* cancels its calls without callbacks; may be called inside one */
/* The last error as a sentence, or NULL when the last answer was good: for "not ready after
 * 5 min: ...". */
const char *kube_trouble(const struct kube *k);

struct kube_reply {
        int status;       /* HTTP status, 0 without an answer */
        json_t *body;     /* borrowed; NULL when it is not JSON */
        const char *text; /* the body as it came */
        /* a sentence when status is 0 or >= 400: the API's own message, or the transport
         * error; else NULL */
        const char *error;
};
typedef void (*kube_fn)(const struct kube_reply *reply, void *arg);

/* method GET, DELETE, POST, PUT, PATCH (PATCH: `type` is the content type). `body` may be NULL.
 * Tried on the next server when a connection fails before an answer (GET and server-side apply;
 * others only when nothing was sent yet). timeout in milliseconds, 0: 30 s. Returns a handle that
 * is valid until the callback. */
struct kube_call *kube_request(struct kube *k, const char *method, const char *path,
        const char *type, const char *body, unsigned timeout_ms, kube_fn fn, void *arg);
/* GET from one server, by its index in the target's list. Does not change which server is used for
 * other requests. */
struct kube_call *kube_ask(struct kube *k, size_t server, const char *path, unsigned timeout_ms,
        kube_fn fn, void *arg);
void kube_cancel(struct kube_call *c);

/* Server-side apply of YAML/JSON documents (separated by ---), field manager "slipway", force. The
 * path of a kind comes from a table of the built-in kinds, else from discovery. Order: namespaces
 * and CRDs; the rest at once; bare Pods, webhooks and APIServices. Temporary errors (an API server
 * that restarts, a CRD that is not served yet) are retried for up to 30 s. fn is called once, from
 * the loop: error NULL when all are applied. */
void kube_apply(
        struct kube *k, const char *documents, void (*fn)(const char *error, void *arg), void *arg);

/* The same for what else is done with many objects:
 * KUBE_CHECK  the API judges each as if it were applied, and nothing changes (dryRun=All). What it
 *             cannot judge yet, because the namespace or the kind does not exist, passes.
 * KUBE_DELETE each is deleted; only apiVersion, kind and name are read. What is not there is fine.
 *             The order is the reverse. */
enum kube_verb { KUBE_APPLY, KUBE_CHECK, KUBE_DELETE, KUBE_GET };
void kube_objects(struct kube *k, enum kube_verb verb, const char *documents,
        void (*fn)(const char *error, void *arg), void *arg);
/* The same, and what the API answers: each object as it is (KUBE_GET; one that is not there is no
 * error) or as it would be (KUBE_CHECK). objects is borrowed, in the order of the documents, null
 * where there is none; NULL with an error. */
void kube_answers(struct kube *k, enum kube_verb verb, const char *documents,
        void (*fn)(json_t *objects, const char *error, void *arg), void *arg);

/* Lists a collection's objects ("/api/v1/secrets"), or only their metadata, page by page, at most
 * `max` of them. `query` is added to the address ("fieldSelector=..."), and may be "". items is
 * borrowed, NULL with an error. fn is called once, from the loop. */
void kube_list(struct kube *k, const char *path, const char *query, bool metadata, size_t max,
        void (*fn)(json_t *items, const char *error, void *arg), void *arg);
/* Only metadata, by a label selector. */
void kube_list_metadata(struct kube *k, const char *path, const char *selector, size_t max,
        void (*fn)(json_t *items, const char *error, void *arg), void *arg);
/* The index of the server that is used now, and its address: for programs that are to
 * use the same. */
size_t kube_current(const struct kube *k, const char **server, const char **socket);

/* Watches a collection ("/api/v1/nodes"), beginning with its current objects: fn for every ADDED,
 * MODIFIED, DELETED, and "SYNCED" after the first list. Reconnects from the last resourceVersion,
 * and lists again on 410 (missed changes are reported; a DELETED object then has only its
 * metadata). Failures are reported as "ERROR" with a Status object (message, code; 0 without an
 * answer) and retried. Runs until cancelled. `query` is added to the address ("labelSelector=..."),
 * may be NULL. */
struct kube_call *kube_watch(struct kube *k, const char *path, const char *query,
        void (*fn)(const char *type, json_t *object, void *arg), void *arg);

/* Calls fn when GET /readyz of any server says ok; asks again after `interval_ms`, or after 100 ms
 * when the connection was refused. That server is then used first. Runs until cancelled;
 * kube_trouble says what is wrong until then. */
struct kube_call *kube_wait_ready(
        struct kube *k, unsigned interval_ms, void (*fn)(void *arg), void *arg);

/* Synchronous: runs the loop until this call is answered. For verbs that make a single request. */
int kube_get(struct kube *k, const char *path, json_t **out, struct error *err);
/* The same with any method and a JSON body (NULL: none); status (0: no answer) and out
 * may be NULL. */
int kube_do(struct kube *k, const char *method, const char *path, const char *body, int *status,
        json_t **out, struct error *err);

#endif
