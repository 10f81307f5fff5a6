/* helm as a child process. It renders charts and keeps releases, so that people can go on with it.
 *
 * It is found in PATH (version 3), else fetched or built as the catalogue says. It gets a home of
 * its own, which lasts as long as the run: the user's own settings and repositories do not matter,
 * and are not changed. Passwords are in files there (0600), never in arguments. It reaches the API
 * as slipway's own client does. */
#ifndef SLIPWAY_HELM_H
#define SLIPWAY_HELM_H

#include "cluster/site/op.h"

struct helm_result {
        int status;          /* 0: it did what was asked */
        const char *out;     /* standard output, at most HELM_OUT_MAX bytes */
        const char *trouble; /* one sentence, when status is not 0 */
        const char *hint;    /* may be NULL */
};
typedef void (*helm_fn)(const struct helm_result *r, void *arg);

#define HELM_OUT_MAX    ((size_t)64 << 20)
#define HELM_ARGS_MAX   40
#define HELM_CHART_SIZE ((int64_t)64 << 20) /* bytes of the largest file that it may write */

struct helm_call {
        const char *args[HELM_ARGS_MAX]; /* without the program, NULL-terminated; copied */
        bool api;                        /* it talks to the API */
        unsigned seconds;                /* after which it is ended */
        helm_fn fn;                      /* once, from the loop; not when the run ends before */
        void *arg;
};

/* Queues the call: a few run at the same time. `step` says meanwhile that helm is fetched or
 * built. */
void helm_run(struct site *s, struct step *step, const struct helm_call *call);
/* How many processes were started so far: for tests. */
size_t helm_started(const struct site *s);

/* ---- helm_home.c ---- */

/* Makes the home, once. */
int helm_home(struct helm *h, struct error *err);
/* A file in the home, 0600; its path is in the site's arena. */
int helm_file(
        struct site *s, const char *name, const char *text, const char **path, struct error *err);
/* A new directory in the home. */
int helm_dir(struct site *s, const char *name, const char **path, struct error *err);

/* ---- between helm.c and helm_home.c ---- */
struct proc;
struct relay;
struct helm_job;
struct helm {
        struct op op;  /* for its end */
        char *home;    /* a scratch directory */
        char *program; /* NULL: not found yet */
        bool finding;
        struct proc *asked; /* for its version */
        struct str version;
        struct fetch *fetch;
        struct item item; /* helm, of the catalogue */
        struct relay *relay;
        const char *relayed;           /* the socket that the relay leads to */
        struct helm_job *first, *last; /* in the order they were asked for; running ones too */
        size_t running, started;
        const char *env[24]; /* NULL-terminated */
};
/* Makes it, once for a site. */
struct helm *helm_of(struct site *s, struct step *step);
/* Writes the kubeconfig for the server that the API's client uses now. */
int helm_kubeconfig(struct helm *h, struct error *err);

#endif
