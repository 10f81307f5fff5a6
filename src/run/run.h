/* A run executes Steps in parallel, each after the steps that it waits for, and writes each to the
 * journal before and after. It knows nothing about Kubernetes. A step starts when everything it
 * waits for is done; its `start` begins something on the event loop, and step_done ends it. Steps
 * may be added during a run (what a machine needs is known only after it has answered). */
#ifndef SLIPWAY_RUN_H
#define SLIPWAY_RUN_H

#include <event2/util.h>

#include "base/arena.h"
#include "base/error.h"

struct event_base;
struct event;
struct run;

enum step_state {
        STEP_WAITING,
        STEP_RUNNING,
        STEP_DONE,
        STEP_KEPT /* unchanged */,
        STEP_FAILED,
        STEP_SKIPPED /* a step that it waits for failed */
};

struct step {
        const char *name; /* "apply", "etcd healthy": names a row of the plan; unique with node */
        const char *node; /* NULL: the cluster */
        const char *what; /* for the plan: "12 files, 3 units" */
        const char *disrupts; /* "nothing", "restarts the API server", …; NULL: nothing */
        void (*start)(struct step *s); /* must end in step_done, now or later */
        void *arg;
        /* owned by the runner: */
        struct run *run;
        struct step **waits;
        size_t wait_count;
        enum step_state state;
        int permille;         /* -1: unknown */
        const char *doing;    /* the latest progress text */
        int64_t began, ended; /* milliseconds since the start of the run */
        struct error err;
        struct event *deadline;
        const char *late; /* hint of the error when the deadline passes */
        bool expired;     /* the deadline passed: a later step_done is ignored */
        struct step *next;
};

struct run_observer {
        void (*on_step)(struct run *r, struct step *s, void *arg); /* the state changed */
        void (*on_progress)(
                struct run *r, struct step *s, void *arg); /* doing or permille changed */
        void (*on_change)(struct run *r, struct step *s, const char *change,
                void *arg); /* something changed on a node: a line */
        void *arg;
};

struct run {
        struct event_base *base;
        struct arena *arena;
        const char *verb, *cluster;
        struct step *first, *last;
        size_t count, open;
        int64_t began,
                wall; /* milliseconds: monotonic, for durations; and wall clock, for display */
        struct run_observer observers[4];
        size_t observer_count;
        bool failed, interrupted;
};

void run_init(struct run *r, struct event_base *base, struct arena *a, const char *verb,
        const char *cluster);
void run_observe(struct run *r, const struct run_observer *o);
struct step *run_step(
        struct run *r, const char *name, const char *node, void (*start)(struct step *), void *arg);
/* `s` starts only after `other` is done. NULL is ignored. Must be called before `s` starts. */
void step_after(struct step *s, struct step *other);
void step_doing(struct step *s, int permille, const char *fmt, ...) PRINTF(3, 4);
void step_changed(struct step *s, const char *fmt, ...) PRINTF(2, 3);
/* Fails the step after so long, saying what it was doing. For steps that wait for something that
 * may never happen. */
void step_deadline(struct step *s, unsigned seconds, const char *hint);
/* The same, but calls fn(arg) instead of failing the step. */
void step_deadline_call(struct step *s, unsigned seconds,
        void (*fn)(evutil_socket_t fd, short what, void *arg), void *arg);
/* err NULL: done. Else it failed: the error is copied. */
void step_done(struct step *s, struct error *err);
/* step_done with an error of this text; hint may be NULL. */
void step_fail(struct step *s, int code, enum exit_status status, const char *hint, const char *fmt,
        ...) PRINTF(5, 6);
void step_unchanged(struct step *s);
/* Ends a step that waited for the result of a failed one: only the failed step is reported. */
void step_skipped(struct step *s);
/* Runs the loop until no step is left that can start. Returns 0, or the first failure in err (the
 * others are in the steps). SIGINT and SIGTERM stop the run between steps: -EINTR. */
int run_execute(struct run *r, struct error *err);
/* The same, but returns when that step is done: others may still run, and continue in the next
 * call. After a failure: as run_execute. */
int run_until(struct run *r, const struct step *last, struct error *err);
void run_release(struct run *r);
int64_t run_now(const struct run *r); /* milliseconds since its start */

/* ---- the journal: STATE/NAME/journal.jsonl, one line before and one after each step ---- */

struct journal;
/* Opens the journal. `*last` (in the arena) says where the previous run stopped if it did not end
 * properly ("'up', begun 2026-01-02 21:05:12 UTC, stopped in: apply w1, apply w2"), else NULL. */
int journal_open(
        const char *dir, struct run *r, struct journal **out, const char **last, struct error *err);
void journal_close(struct journal *j, const char *result); /* "done", "failed", "interrupted" */

#endif
