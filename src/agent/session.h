/* The connection to the operator and the programs that the agent runs: one poll for all of them, so
 * that a cut connection is noticed while anything is waited for. */
#ifndef SLIPWAY_SESSION_H
#define SLIPWAY_SESSION_H

#include <sys/types.h>

#include "base/error.h"
#include "deliver/wire.h"

/* Of a program's output: the end is kept, for its last lines. */
#define CHILD_TEXT ((size_t)1 << 20)

/* Of output that is parsed: the rules of ten thousand services are about 20 MB. */
#define CHILD_WHOLE ((size_t)64 << 20)

struct words { /* a NULL-terminated argument vector; borrows its words */
        const char **v;
        size_t n, cap;
};
void words_add(struct words *w, const char *word);
void words_release(struct words *w);
#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

struct child {
        struct child *next;
        pid_t pid;
        int status; /* from waitpid, once ended */
        bool ended;
        int fd[3]; /* the agent's ends of its stdin, stdout and stderr; -1: closed */
        struct str input;
        size_t sent;
        bool run;    /* started by a RUN order: its output goes to the operator */
        uint64_t id; /* of that RUN order */
        /* continues when the connection is cut: a package manager must not be stopped half-way */
        bool keep;
        /* its whole output is kept, and more than this is an error; 0: only the end is kept */
        size_t whole;
        struct str text[2];
        bool over; /* it printed more than `whole` */
};

struct session {
        int in, out, signals;
        uint8_t *buf; /* never reallocated, so that secrets stay in one place and can be wiped */
        size_t start, end;
        bool cut;    /* the input ended, the output failed, or a signal asked to stop */
        bool eof;    /* no more input; complete frames may still be in the buffer */
        bool broken; /* the output is closed */
        struct str outgoing;
        struct child *children;
};

int session_init(struct session *s, int in, int out, struct error *err);
void session_release(struct session *s); /* ends the children too */
/* Sends the outgoing bytes, then handles input, signals and children for up to `ms` (-1: until
 * something happens). */
void session_turn(struct session *s, int ms);
/* 1 with a frame, 0 when more input is needed, -EPROTO. It stays valid until session_drop. */
void session_flush(struct session *s);
int session_frame(struct session *s, struct wire_frame *out);
void session_drop(struct session *s, const struct wire_frame *f);
/* False when the connection was cut; asked before each change. */
bool session_alive(struct session *s);

/* Starts a program in its own process group. `keep`: see struct child. When it cannot be executed,
 * its exit status is 127. */
struct child *child_start(struct session *s, const char *const *argv, bool keep);
/* Waits until it ends; 0 when its status is 0, else an error with its last line. -ECANCELED when
 * cut, -ETIMEDOUT. */
int child_wait(struct session *s, struct child *c, int seconds, struct error *err);
void child_free(struct session *s, struct child *c); /* kills it if it still runs */
/* Starts, waits and frees; `out` (may be NULL) gets the output. */
int tool(struct session *s, const char *const *argv, int seconds, struct str *out,
        struct error *err);

/* WIRE_RUN. */
int session_run(struct session *s, const struct wire_frame *f, struct error *err);

#endif
