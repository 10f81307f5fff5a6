/* Inside the room: what a call is, and the two curl engines that drive it.
 *
 * HTTP/1.1 on purpose: over HTTP/2 all calls share one connection, so when a machine dies without a word every call, the new ones
 * too, hangs on it until TCP gives up. Short calls share up to CALLS_AT_ONCE connections; each watch has one of its own,
 * in a second engine, so that no number of them can starve the rest. */
#ifndef SLIPWAY_KUBE_CALL_H
#define SLIPWAY_KUBE_CALL_H

#include "base/curl_loop.h"
#include "kube/kube.h"

#define CALLS_AT_ONCE   16
#define MAX_BODY        ((size_t)64 << 20)
#define DEFAULT_TIMEOUT 30000
#define CONNECT_TIMEOUT 5000  /* TCP and TLS to one server, when there is another */
#define TUNNEL_PAUSE    150   /* between looks at tunnels that are not open yet */
#define SILENCE         10000 /* a peer that acknowledges nothing for so long is gone */

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
        struct kube_call *first; /* the callers' own; what they start inside belongs to them */
        json_t *discovered;      /* "apps/v1" → its APIResourceList */
        char *trouble;
        unsigned busy; /* inside a callback: kube_free waits for its end */
        bool dead;
};

/* The head of everything that can be cancelled. */
struct kube_call {
        struct kube *k;
        struct kube_call *prev, *next;
        bool linked;
        void (*destroy)(struct kube_call *c); /* stops it and frees it, no callback */
};

void call_link(struct kube *k, struct kube_call *c);
void call_unlink(struct kube_call *c);

/* Around everything that comes from the loop: a callback may free the kube. After leave it may be gone. */
void kube_enter(struct kube *k);
void kube_leave(struct kube *k);

int engine_init(struct engine *e, struct kube *k, long at_once);

/* What the room's own callbacks can know beyond the reply they get: reply is its first member. */
struct answer {
        struct kube_reply reply;
        bool again;           /* no answer, for a reason that may pass: not when the certificate is not trusted */
        bool refused;         /* nothing listens there */
        unsigned retry_after; /* milliseconds; what the API asked for */
};

struct request {
        struct kube_call call;
        struct engine *engine;
        char *method, *path, *type, *body;
        unsigned timeout_ms;
        int64_t deadline;
        kube_fn fn;
        void *arg;
        /* Takes the body of a good answer piece by piece instead, inside curl: it may only keep the bytes. False ends the request. */
        bool (*sink)(const char *data, size_t n, void *arg);
        int pinned;    /* this server only; -1: any */
        bool patient;  /* pinned, and waits for that server's tunnel */
        size_t server; /* that it is at */
        unsigned tries;
        struct event *pause; /* between tries, while no tunnel is open */
        CURL *easy;
        struct curl_slist *headers;
        struct str text;
        bool too_large;
        char why[CURL_ERROR_SIZE];
};

/* Not linked: it belongs to whoever makes it, who forgets it in fn and may destroy it before. */
struct request *request_new(struct kube *k, const char *method, const char *path, kube_fn fn, void *arg);
void request_start(struct request *r);
void request_done(struct request *r, CURLcode code); /* from the engine */
void request_destroy(struct request *r);             /* NULL is fine */

/* Sentences, malloc'd. */
char *message_transport(const struct request *r, CURLcode code);
char *message_api(const struct request *r, int status, const json_t *body);
bool message_refused(const struct request *r, CURLcode code);

int64_t now_ms(void);
void event_after(struct event *e, unsigned ms);

#endif
