/* Operations: what one step does on the event loop, from its start to its end. An operation's
 * context is a struct that begins with `struct op`. It is allocated in the site's arena, so a late
 * answer still finds it. An operation ends its step exactly once, however many answers, timers and
 * closed links follow; its callbacks check op_over first. An operation that needs a member's link
 * waits for it (op_wait) and is notified once when the link closes. Parking a link (pool.c) does
 * not count as closing it. */
#ifndef SLIPWAY_OP_H
#define SLIPWAY_OP_H

#include "cluster/site/site.h"

struct op {
        struct step *step;
        struct site *site;
        struct member *at; /* the member whose link it waits for, or NULL */
        /* that link closed; err is NULL if it was closed normally */
        void (*on_cut)(struct op *o, struct error *err);
        void (*on_time)(struct op *o);
        /* called at the end of the run to free what the operation holds; may be NULL */
        void (*release)(struct op *o);
        struct event *timer;
        bool ended;
        /* the lists of all operations of the site, and of those that wait for the same link */
        struct op *next, *next_waiter;
};

void op_begin(struct op *o, struct site *site, struct step *s);
/* The operation or its step (deadline) has ended: late answers are ignored. */
bool op_over(const struct op *o);
/* Calls on_cut once when the member's link closes. */
void op_wait(struct op *o, struct member *m, void (*on_cut)(struct op *o, struct error *err));
void op_unwait(struct op *o);
/* Calls fn after this many milliseconds, unless the operation is over by then. There is one timer:
 * a second call replaces the first. */
void op_later(struct op *o, unsigned ms, void (*fn)(struct op *o));
/* Ends the operation but not its step, which another operation continues. */
void op_drop(struct op *o);
/* Ends the operation and its step; no effect if it is over already. */
void op_done(struct op *o, struct error *err);
void op_unchanged(struct op *o);
/* A callback for op_wait: ends the operation and its step with the link's error. */
void op_cut(struct op *o, struct error *err);
void op_fail(struct op *o, int code, enum exit_status status, const char *hint, const char *fmt,
        ...) PRINTF(5, 6);

/* ---- the link of a member ---- */

/* Applies m->spec to the member's node. The agent's remarks become the step's. fn is called once,
 * from the loop, with the number of failed entries or with the reason why the link closed early. If
 * fn is NULL, the step ends with the result. */
typedef void (*apply_fn)(struct member *m, unsigned failed, struct error *cut, void *arg);
struct apply_request {
        const struct item *items;
        size_t count;
        enum apply_mode mode;
        /* Renders the spec when the request starts (member_render); it is freed afterwards. NULL:
         * the spec exists already and is kept. */
        int (*make)(struct member *m, struct error *err);
        apply_fn fn;
        void *arg;
};
void member_apply(struct member *m, struct step *s, const struct apply_request *request);
/* Ends a step according to the result of an apply. */
void member_applied(struct member *m, struct step *s, unsigned failed, struct error *cut);
/* The link closed: notifies every operation that waits for it. */
void member_closed(struct member *m, struct error *err);

/* Called at the end of a run. */
void ops_release(struct site *s);

#endif
