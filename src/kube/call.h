/* Internal: calls, and the two curl engines that run them. HTTP/1.1 on purpose: over HTTP/2 all
 * calls share one connection, so when a machine dies silently every call, new ones too, hangs until
 * TCP times out. Short calls share up to CALLS_AT_ONCE connections; each watch has its own, in a
 * second engine, so that watches cannot starve calls. */
#ifndef SLIPWAY_KUBE_CALL_H
#define SLIPWAY_KUBE_CALL_H

#include "base/clock.h"
#include "base/curl_loop.h"
#include "kube/kube.h"

#define CALLS_AT_ONCE   16
#define MAX_BODY        ((size_t)64 << 20)
#define DEFAULT_TIMEOUT 30000
#define CONNECT_TIMEOUT 5000  /* TCP and TLS to one server, when there are others */
#define TUNNEL_PAUSE    150   /* between checks of tunnels that are not open yet */
#define SILENCE         10000 /* a peer that acknowledges nothing for so long is considered dead */

struct event;

struct engine {
        struct kube *k;
        struct curl_loop loop;
};

struct kube {
        struct event_base *base;
        char **servers, **sockets; /* sockets: NULL without tunnels */
        const char *(*why)(size_t server, void *arg);
        void *why_arg;
        size_t count, current;
        char *ca, *cert, *key;
        struct engine calls, streams;
        struct kube_call *first; /* calls of callers; internal requests belong to these calls */
        json_t *discovered;      /* "apps/v1" → its APIResourceList */
        char *trouble;
        unsigned busy; /* inside a callback: kube_free is delayed until it returns */
        bool dead;
};

/* First member of everything that can be cancelled. */
struct kube_call {
        struct kube *k;
        struct kube_call *prev, *next;
        bool linked;
        void (*destroy)(struct kube_call *c); /* stops and frees it without a callback */
};

void call_link(struct kube *k, struct kube_call *c);
void call_unlink(struct kube_call *c);

/* Around everything called from the loop: a callback may free the kube. After kube_leave it may no
 * longer exist. */
void kube_enter(struct kube *k);
void kube_leave(struct kube *k);

int engine_init(struct engine *e, struct kube *k, long at_once);

/* What internal callbacks know beyond the reply, which is the first member. */
struct answer {
        struct kube_reply reply;
        /* no answer, for a reason that may be temporary: not an untrusted certificate */
        bool again;
        bool refused;         /* nothing listens there */
        unsigned retry_after; /* milliseconds, from the API's Retry-After */
};

struct request {
        struct kube_call call;
        struct engine *engine;
        char *method, *path, *type, *body;
        const char *accept; /* NULL: JSON */
        unsigned timeout_ms;
        int64_t deadline;
        kube_fn fn;
        void *arg;
        /* Gets the body of a successful answer in pieces, inside curl: it may only store the bytes.
         * False ends the request. */
        bool (*sink)(const char *data, size_t n, void *arg);
        int pinned;    /* index of the only server to ask; -1: any */
        bool patient;  /* pinned, and waits for the tunnel of that server */
        size_t server; /* index of the current server */
        unsigned tries;
        struct event *pause; /* between attempts, while no tunnel is open */
        CURL *easy;
        struct curl_slist *headers;
        struct str text;
        bool too_large;
        char why[CURL_ERROR_SIZE];
};

/* Not linked: it belongs to its creator, who drops the pointer in fn and may destroy it before. */
struct request *request_new(
        struct kube *k, const char *method, const char *path, kube_fn fn, void *arg);
void request_start(struct request *r);
void request_done(struct request *r, CURLcode code); /* from the engine */
void request_destroy(struct request *r);             /* NULL is fine */

/* Error sentences, malloc'd. */
char *message_transport(const struct request *r, CURLcode code);
char *message_api(const struct request *r, int status, const json_t *body);
bool message_refused(const struct request *r, CURLcode code);

void event_after(struct event *e, unsigned ms);

#endif
