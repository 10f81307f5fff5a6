/* In place of base/proc.c: an ssh that is no process. What a link writes to it is kept, and the
 * harness says what it answers. */
#ifndef FUZZ_FAKE_PROC_H
#define FUZZ_FAKE_PROC_H

#include <event2/event.h>

#include "base/proc.h"

struct proc {
        struct event_base *base;
        struct proc_spec spec;
        struct str written;
        bool ending; /* its input has ended, or it was killed */
        void *user;  /* the harness's own */
};

/* Told of a new one, and when the link has written or wants its end. */
static void fake_event(struct proc *p);

static inline void fake_exit(struct proc *p, int status)
{
        struct proc_spec spec = p->spec;
        spec.on_exit(p, status, spec.arg);
        proc_free(p);
}

int proc_start(
        struct event_base *base, const struct proc_spec *spec, struct proc **out, struct error *err)
{
        struct proc *p = *out = xcalloc(1, sizeof(*p));
        p->base = base;
        p->spec = *spec;
        fake_event(p);
        return 0;
}

void proc_write(struct proc *p, const void *data, size_t n)
{
        str_addn(&p->written, data, n);
        fake_event(p);
}

size_t proc_queued(const struct proc *p) { return 0; }

void proc_end_input(struct proc *p)
{
        p->ending = true;
        fake_event(p);
}

void proc_kill(struct proc *p, int signal) { proc_end_input(p); }

static void fake_forget(struct proc *p);

void proc_free(struct proc *p)
{
        if (!p)
                return;
        fake_forget(p);
        str_release(&p->written);
        free(p);
}

int proc_run(const char *const *argv, const void *input, size_t n, size_t max, struct str *out,
        struct str *errors, int *status, struct error *err)
{
        abort();
}

int proc_must(const char *const *argv, struct str *out, struct error *err) { abort(); }

void proc_errors(struct proc *p); /* where proc.h has it */
void proc_errors(struct proc *p) {}

/* The agent that a link carries: the harnesses send none that could run. */
const void *agent_bytes(size_t *n)
{
        static const char agent[1000];
        *n = sizeof(agent);
        return agent;
}

#endif
