/* A run: Steps with what each waits for, executed all at once as far as that allows, journalled before and after. The runner knows nothing about Kubernetes.
 *
 * A step is begun when everything it waits for is done; its `start` begins something on the event loop and step_done is called when it ends. Steps may be
 * added while a run goes on (what a machine needs is known only when it has answered). */
#ifndef SLIPWAY_RUN_H
#define SLIPWAY_RUN_H

#include "base/arena.h"
#include "base/error.h"

struct event_base;
struct event;
struct run;

enum step_state { STEP_WAITING, STEP_RUNNING, STEP_DONE, STEP_KEPT /* was so already */, STEP_FAILED, STEP_SKIPPED /* what it waits for failed */ };

struct step {
        const char *name;              /* "apply", "etcd healthy": names a row of the plan; unique with node */
        const char *node;              /* NULL: the cluster */
        const char *what;              /* for the plan: "12 files, 3 units" */
        const char *disrupts;          /* "nothing", "restarts the API server", …; NULL: nothing */
        void (*start)(struct step *s); /* must end in step_done, now or later */
        void *arg;
        /* the runner's: */
        struct run *run;
        struct step **waits;
        size_t wait_count;
        enum step_state state;
        int permille;         /* -1: unknown */
        const char *doing;    /* the latest remark */
        int64_t began, ended; /* milliseconds since the run began */
        struct error err;
        struct event *deadline;
        const char *late; /* the hint when the deadline passes */
        bool expired;     /* it did: what the step began may still call step_done, which then means nothing */
        struct step *next;
};

struct run_observer {
        void (*on_step)(struct run *r, struct step *s, void *arg);                       /* state changed */
        void (*on_progress)(struct run *r, struct step *s, void *arg);                   /* doing or permille changed */
        void (*on_change)(struct run *r, struct step *s, const char *change, void *arg); /* something was changed on a node: a line */
        void *arg;
};

struct run {
        struct event_base *base;
        struct arena *arena;
        const char *verb, *cluster;
        struct step *first, *last;
        size_t count, open;
        int64_t began; /* wall clock, milliseconds */
        struct run_observer observers[4];
        size_t observer_count;
        bool failed, interrupted;
};

void run_init(struct run *r, struct event_base *base, struct arena *a, const char *verb, const char *cluster);
void run_observe(struct run *r, const struct run_observer *o);
struct step *run_step(struct run *r, const char *name, const char *node, void (*start)(struct step *), void *arg);
/* `s` begins only after `other` is done. NULL is fine. Must be called before `s` begins. */
void step_after(struct step *s, struct step *other);
void step_doing(struct step *s, int permille, const char *fmt, ...) PRINTF(3, 4);
void step_changed(struct step *s, const char *fmt, ...) PRINTF(2, 3);
/* From now on it may take so long: after that it fails, saying what it was doing. For steps that wait for something that may never come. */
void step_deadline(struct step *s, unsigned seconds, const char *hint);
/* err NULL: done. Else it failed: the error is copied, prefixed with the node and step. */
void step_done(struct step *s, struct error *err);
/* step_done with an error of these words; hint may be NULL. */
void step_fail(struct step *s, int code, enum exit_status status, const char *hint, const char *fmt, ...) PRINTF(5, 6);
void step_kept(struct step *s);
/* It was waiting for something that will not come, because of another step's failure: that one is told, not this one. */
void step_skipped(struct step *s);
/* Runs the loop until no step is left that can begin. 0, or the first failure in err (the others are in the steps). SIGINT and SIGTERM stop the run between steps: -EINTR. */
int run_execute(struct run *r, struct error *err);
void run_release(struct run *r);
int64_t run_now(const struct run *r); /* milliseconds since it began */

/* ---- the journal: STATE/NAME/journal.jsonl, one line before and one after each step ---- */

struct journal;
/* Opens it; `*last` (in the arena) says where the run before was when it ended without saying so ("up, begun 21:05:12 UTC, was in: apply w1, apply w2"), NULL when it ended properly. */
int journal_open(const char *dir, struct run *r, struct journal **out, const char **last, struct error *err);
void journal_close(struct journal *j, const char *result); /* "done", "failed", "interrupted" */

#endif
