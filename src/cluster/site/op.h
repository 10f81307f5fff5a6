/* Operations: what one step does on the event loop, from its start to its end.
 *
 * Each has a context of its own: a struct that begins with `struct op`, in the site's arena, so
 * that an answer that comes late still finds it. An operation ends its step once, however many
 * answers, timers and cut links come afterwards; its callbacks ask op_over first. Whoever needs a
 * member's link waits for it (op_wait) and is told once when it closes, with all others that wait
 * for the same link. A link that is given back for a while (pool.c) has not closed. */
#ifndef SLIPWAY_OP_H
#define SLIPWAY_OP_H

#include "cluster/site/site.h"

struct op {
        struct step *step;
        struct site *site;
        struct member *at; /* whose link it waits for; NULL: nobody's */
        void (*on_cut)(struct op *o,
                struct error
                        *err); /* that link closed: err is NULL when it was closed in good order */
        void (*on_time)(struct op *o);
        void (*release)(struct op *o); /* the run is over, ended or not: frees what the operation
                                          holds; NULL: nothing */
        struct event *timer;
        bool ended;
        struct op *next, *next_waiter; /* of the site's; of those that wait for the same link */
};

void op_begin(struct op *o, struct site *site, struct step *s);
/* It has ended, or its step has (its deadline passed): an answer that comes now means nothing. */
bool op_over(const struct op *o);
/* Tells it once when the member's link closes. */
void op_wait(struct op *o, struct member *m, void (*on_cut)(struct op *o, struct error *err));
void op_unwait(struct op *o);
/* Calls fn in so many milliseconds, unless it is over by then. One at a time: the last counts. */
void op_later(struct op *o, unsigned ms, void (*fn)(struct op *o));
/* Ends it without its step: another operation goes on with that. */
void op_drop(struct op *o);
/* Ends it and its step; nothing when it is over already. */
void op_done(struct op *o, struct error *err);
void op_unchanged(struct op *o);
/* For op_wait: ends it and its step with why the link closed. */
void op_cut(struct op *o, struct error *err);
void op_fail(struct op *o, int code, enum exit_status status, const char *hint, const char *fmt,
        ...) PRINTF(5, 6);

/* ---- the link of a member ---- */

/* Makes the member's node equal to m->spec. The agent's remarks become the step's. fn is called
 * once, from the loop: `failed` entries, or why the link closed before the end. fn NULL: the step
 * ends with it. */
typedef void (*apply_fn)(struct member *m, unsigned failed, struct error *cut, void *arg);
struct apply_request {
        const struct item *items;
        size_t count;
        enum apply_mode mode;
        /* The spec is made when its turn has come (member_render), and freed afterwards. NULL: it
         * is there, and stays. */
        int (*make)(struct member *m, struct error *err);
        apply_fn fn;
        void *arg;
};
void member_apply(struct member *m, struct step *s, const struct apply_request *request);
/* Ends a step as what was applied asks for. */
void member_applied(struct member *m, struct step *s, unsigned failed, struct error *cut);
/* The link closed: tells all that wait for it. */
void member_closed(struct member *m, struct error *err);

/* When the run is over. */
void ops_release(struct site *s);

#endif
