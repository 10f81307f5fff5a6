/* The pipe to the operator and the programs the agent runs: one poll over all of them, so that a cut connection is seen while anything is waited for. */
#ifndef SLIPWAY_SESSION_H
#define SLIPWAY_SESSION_H

#include <sys/types.h>

#include "base/error.h"
#include "deliver/wire.h"

#define CHILD_TEXT ((size_t)1 << 20) /* kept of what a program prints; the rest is dropped */

struct words { /* an argument vector, always NULL-terminated; borrows the words */
        const char **v;
        size_t n, cap;
};
void words_add(struct words *w, const char *word);
void words_release(struct words *w);
#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

struct child {
        struct child *next;
        pid_t pid;
        int status; /* as waitpid has it, when ended */
        bool ended;
        int fd[3]; /* the other ends of its standard input, output and error; -1: closed */
        struct str input;
        size_t sent;
        bool run;    /* of a RUN: what it prints goes to the operator */
        uint64_t id; /* of that RUN */
        bool keep;   /* goes on when the connection is cut: a package manager stopped half-way does harm */
        struct str text[2];
};

struct session {
        int in, out, signals;
        uint8_t *buf; /* never moves in memory, so that secrets are in one place and can be wiped */
        size_t start, end;
        bool cut;    /* the input ended, the output broke, or a signal said stop */
        bool eof;    /* no more input; whole frames may still be in the buffer */
        bool broken; /* nobody reads any more */
        struct str outgoing;
        struct child *children;
};

int session_init(struct session *s, int in, int out, struct error *err);
void session_release(struct session *s); /* ends the children too */
/* Sends what is outgoing, then deals with whatever comes within `ms` (-1: until something does): input, signals, children. */
void session_turn(struct session *s, int ms);
/* 1 with a frame, 0 when more input is needed, -EPROTO. It stays valid until session_drop. */
void session_flush(struct session *s);
int session_frame(struct session *s, struct wire_frame *out);
void session_drop(struct session *s, const struct wire_frame *f);
/* False when the connection was cut: looked at before each thing that is done. */
bool session_alive(struct session *s);

/* Starts a program with its own process group. `keep`: see struct child. Failure to execute is an exit status of 127. */
struct child *child_start(struct session *s, const char *const *argv, bool keep);
/* Waits for its end; 0 when its status is 0. Otherwise the sentence ends with the last line it wrote. -ECANCELED when cut, -ETIMEDOUT. */
int child_wait(struct session *s, struct child *c, int seconds, struct error *err);
void child_free(struct session *s, struct child *c); /* ends it if it still runs */
/* The three in one; `out` (may be NULL) gets what it printed. */
int tool(struct session *s, const char *const *argv, int seconds, struct str *out, struct error *err);

/* WIRE_RUN. */
int session_run(struct session *s, const struct wire_frame *f, struct error *err);

#endif
