/* A failure as a sentence: what, where, why, and what to do next. */
#ifndef SLIPWAY_ERROR_H
#define SLIPWAY_ERROR_H

#include "base/base.h"

/* Exit statuses, documented in the man page. */
enum exit_status {
        EXIT_OK = 0,
        /* an unexpected failure of this computer: disk, memory, a child process */
        EXIT_INTERNAL = 1,
        EXIT_USAGE = 2,       /* the command line is wrong */
        EXIT_CONFIG = 3,      /* cluster.yaml is wrong */
        EXIT_PREFLIGHT = 4,   /* a machine is not fit */
        EXIT_UNREACHABLE = 5, /* a machine or the API cannot be reached */
        EXIT_STEP = 6,        /* a step failed on a node or the cluster */
        EXIT_UNHEALTHY = 7,   /* the cluster is up but not healthy */
        EXIT_STATE = 8,       /* the state directory is locked, damaged or not ours */
        EXIT_CHANGES = 9,     /* plan --exit-code: something would change */
};

/* Starts zeroed: struct error err CLEANUP(error_release) = { 0 }; */
struct error {
        int code; /* errno value, 0 when nothing failed */
        enum exit_status status;
        char *message; /* one sentence, no final full stop, no newline */
        char *hint;    /* the next thing to do, or NULL */
};

/* Sets the error and returns -code, so that `return error_set(...)` reads well. `code`
 * 0 means EINVAL. */
int error_set(struct error *err, int code, enum exit_status status, const char *fmt, ...)
        PRINTF(4, 5);
/* The same with a hint (NULL: none), for functions that take the words as their own arguments. */
int error_vset(struct error *err, int code, enum exit_status status, const char *hint,
        const char *fmt, va_list ap) PRINTF(5, 0);
/* Puts "prefix: " in front of the message; returns -err->code. */
int error_wrap(struct error *err, const char *fmt, ...) PRINTF(2, 3);
/* Sets the hint; returns -err->code. */
int error_hint(struct error *err, const char *fmt, ...) PRINTF(2, 3);
void error_release(struct error *err);

#endif
