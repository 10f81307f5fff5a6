/* helm as a child process. It renders charts and stores releases as usual, so users can work with
 * them using helm. slipway uses a helm (3.13 or newer) in PATH, or fetches or builds it like other
 * programs. During the run it has a home of its own: the user's settings and repositories are
 * neither used nor changed. Passwords are in files there (0600), never in arguments. It connects to
 * the API as slipway's own client does. */
#ifndef SLIPWAY_HELM_H
#define SLIPWAY_HELM_H

#include "cluster/site/op.h"

struct helm_result {
        int status;          /* 0: success */
        const char *out;     /* standard output, at most HELM_OUT_MAX bytes */
        const char *trouble; /* one sentence if status is not 0 */
        const char *hint;    /* may be NULL */
};
typedef void (*helm_fn)(const struct helm_result *r, void *arg);

#define HELM_OUT_MAX    ((size_t)64 << 20)
#define HELM_ARGS_MAX   40
#define HELM_CHART_SIZE ((int64_t)64 << 20) /* maximum size of files that it writes */

struct helm_call {
        const char *args[HELM_ARGS_MAX]; /* without the program, NULL-terminated; copied */
        bool api;                        /* it uses the API */
        unsigned seconds;                /* after which it is stopped */
        helm_fn fn;                      /* called once, from the loop, unless the run ends first */
        void *arg;
};

/* Queues the call; a few run at the same time. `step` shows when helm is fetched or built first. */
void helm_run(struct site *s, struct step *step, const struct helm_call *call);
/* Whether slipway can use a helm that calls itself so ("v3.13.0"). */
bool helm_fits(const char *version);
/* The number of processes started, for tests. */
size_t helm_started(const struct site *s);

/* ---- helm_home.c ---- */

/* Creates the home, once. */
int helm_home(struct helm *h, struct error *err);
/* Writes a file in the home, 0600; its path is in the site's arena. */
int helm_file(
        struct site *s, const char *name, const char *text, const char **path, struct error *err);
/* Creates a directory in the home. */
int helm_dir(struct site *s, const char *name, const char **path, struct error *err);

/* ---- shared by helm.c and helm_home.c ---- */
struct proc;
struct relay;
struct helm_job;
struct helm {
        struct op op;  /* frees it at the end of the run */
        char *home;    /* a scratch directory */
        char *program; /* NULL: not found yet */
        bool finding;
        struct proc *asked; /* queries its version */
        struct str version;
        struct fetch *fetch;
        struct item item; /* helm in the catalogue */
        struct relay *relay;
        const char *relayed;           /* the socket that the relay connects to */
        struct helm_job *first, *last; /* in the order of the calls, including running ones */
        size_t running, started;
        const char *env[24]; /* NULL-terminated */
};
/* Creates it, once per site. */
struct helm *helm_of(struct site *s, struct step *step);
/* Writes the kubeconfig for the API server in use. */
int helm_kubeconfig(struct helm *h, struct error *err);

#endif
