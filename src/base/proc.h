/* Child processes: argument vectors, never a shell string. Either run to the end (proc_run), or
 * driven by the event loop (proc_start). */
#ifndef SLIPWAY_PROC_H
#define SLIPWAY_PROC_H

#include "base/error.h"
#include "base/str.h"

struct event_base;
struct proc;

struct proc_spec {
        const char *const *argv; /* NULL-terminated; argv[0] is looked up in PATH */
        const char *dir;         /* working directory, NULL: ours */
        const char *const *env;  /* NAME=value, NULL-terminated, added to ours; NULL: none */
        int64_t file_max;        /* bytes of the largest file it may write; 0: as we may */
        /* Called from the loop. Data arrives in pieces as it was read. After on_exit the proc is
         * gone. All may be NULL. */
        void (*on_out)(struct proc *p, const char *data, size_t n, void *arg);
        void (*on_err)(struct proc *p, const char *data, size_t n, void *arg);
        /* The input queue ran empty: more may be written. */
        void (*on_drain)(struct proc *p, void *arg);
        /* status: exit status, or 128 + signal. Both outputs have been read to their end. */
        void (*on_exit)(struct proc *p, int status, void *arg);
        void *arg;
};

int proc_start(struct event_base *base, const struct proc_spec *spec, struct proc **out,
        struct error *err);
/* Queues bytes for its standard input. */
void proc_write(struct proc *p, const void *data, size_t n);
size_t proc_queued(const struct proc *p);
/* Reads the standard error that has arrived so far, for callers that need it before the standard
 * output. on_err must not free the proc. */
void proc_errors(struct proc *p);
/* Closes its standard input once the queue is empty. */
void proc_end_input(struct proc *p);
/* Sends a signal to its whole process group; on_exit follows. */
void proc_kill(struct proc *p, int signal);
/* Frees it without callbacks: kills, reaps, frees. p may be NULL. */
void proc_free(struct proc *p);

/* Runs to the end, in the foreground. Output beyond `max` bytes is dropped. `*status` as in
 * on_exit. Fails only when it cannot be started. */
int proc_run(const char *const *argv, const void *input, size_t n, size_t max, struct str *out,
        struct str *errors, int *status, struct error *err);
/* proc_run that must succeed: a status other than 0 is an error with the last line
 * the program said. */
int proc_must(const char *const *argv, struct str *out, struct error *err);

#endif
