/* Between the calls and the two clouds' sessions. */
#ifndef SLIPWAY_CLOUD_SESSION_H
#define SLIPWAY_CLOUD_SESSION_H

#include "base/clock.h"
#include "cloud/cloud.h"
#include "cloud/exchange.h"
#include "cloud/limit.h"

enum session_state {
        SESSION_READY,
        SESSION_WAIT,   /* session_wake follows */
        SESSION_FAILED, /* the fault says why */
};

enum session_verdict {
        VERDICT_FINAL,
        VERDICT_AGAIN,      /* sign again and send again: it was refused before it was done */
        VERDICT_AGAIN_SAFE, /* the same, but only what can be sent twice */
        VERDICT_THROTTLED,
};

/* What is about to be sent. */
struct message {
        const char *method;
        struct str url, body;
        bool has_body;
        struct curl_slist *headers;
};

struct session_ops {
        /* Whether a call may be sent now: credentials, versions. */
        enum session_state (*ready)(struct session *s, struct call *c, struct fault *f);
        /* The address, the body's envelope and the headers of one attempt. */
        int (*write)(struct session *s, struct call *c, struct message *m, struct error *err);
        /* About a refusal: `f` has been read. */
        enum session_verdict (*judge)(
                struct session *s, struct call *c, const struct exchange *x, const struct fault *f);
        /* Why calls wait, as far as it is known: the fault of the last attempt to get credentials.
         */
        const struct fault *(*trouble)(struct session *s);
        const char *(*service_name)(
                struct session *s, const struct call_row *row); /* in sentences */
};

struct session {
        const struct session_ops *ops;
        struct cloud *cloud;
        struct trust trust;
};

struct service {
        char *name;
        struct limit limit;
        struct event *timer;
        struct service *next;
};

struct cloud {
        struct event_base *base;
        struct cloud_options options;
        struct curl_loop loop;
        struct service *services;
        struct call *first, *last; /* in the order of their start */
        struct secrets secrets;
        unsigned busy;
        bool dead;
};

enum call_state { CALL_SESSION, CALL_LIMIT, CALL_PAUSE, CALL_SENT };

struct call {
        struct session *session;
        struct service *service;
        const struct call_row *row;
        struct call *prev, *next;
        enum call_state state;
        struct arena arena; /* of the arguments */
        struct call_args args;
        size_t nargs;
        json_t *body, *list;
        struct pair page[PAGES_AT_ONCE]; /* the parameters of the next page */
        unsigned pages;
        char *marker; /* of the page before */
        int64_t deadline;
        unsigned attempts, signed_again;
        unsigned stamp; /* of the credentials that it was sent with */
        struct event *pause;
        struct exchange *exchange;
        struct str sent;   /* its body */
        struct fault last; /* of the attempt before */
        call_fn fn;
        void *arg;
};

/* A session without credentials, whose rows' paths are whole addresses ("{url}"): for what fetches
 * credentials. */
struct session_plain {
        struct session session;
        struct session_ops ops;
};
void session_plain_init(struct session_plain *s, struct cloud *c,
        const char *(*name)(struct session *s, const struct call_row *row));
/* Cancels the calls of a session that is about to be freed. */
void session_cancel(const struct session *s);

/* The session's credentials are there (fault NULL) or will not come. Waiting calls go on. */
void session_wake(struct session *s, const struct fault *fault);

/* ---- for sessions ---- */
const char *call_arg(const struct call *c, const char *name); /* NULL */
/* Appends the template with {name} filled in and escaped; -EINVAL: an argument is missing. */
int call_fill(const struct call *c, struct str *s, const char *template, struct error *err);
/* The row's path and query behind the address. */
int call_url(const struct call *c, struct message *m, struct error *err);
/* Appends name=value&… of the row's query and the page, escaped. */
void call_query(const struct call *c, struct str *s);
void uri_escape(struct str *s, const char *text, const char *also_safe);
void message_header(struct message *m, const char *name, const char *value);
void fault_copy(struct fault *to, const struct fault *from);

/* ---- within the room ---- */
void cloud_enter(struct cloud *c);
void cloud_leave(struct cloud *c);
struct service *cloud_service(struct cloud *c, const char *name);
void cloud_turn(struct cloud *c); /* starts what the limits allow */
void call_on_answer(struct exchange *x, void *arg);
void call_on_good(struct call *c, struct exchange *x);
void call_free(struct call *c);
void call_finish(struct call *c, struct call_reply *reply);
void call_fail(struct call *c, const struct fault *f);
void call_step(struct call *c); /* from the session on */
/* Takes the page's list; *more: there is another. -errno: the answer is not as it should be. */
int page_take(struct call *c, const json_t *body, bool *more, struct error *err);

#endif
