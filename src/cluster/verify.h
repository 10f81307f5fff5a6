/* Inside the step "verify": a probe on every node asks the others as a program in a pod would, and what does not answer is told as sentences. */
#ifndef SLIPWAY_VERIFY_H
#define SLIPWAY_VERIFY_H

#include "cluster/site.h"

#define VERIFY_NAMESPACE "slipway-verify"

struct probe { /* on one node */
        struct verify *verify;
        struct member *member;
        const char *pod;     /* NULL until it runs */
        const char *ip[2];   /* one a family */
        const char *waiting; /* why it does not run yet */
        const char **urls;
        struct target {
                enum target_kind { TO_POD, TO_SERVICE, TO_NAME, TO_API } kind;
                const struct probe *to; /* TO_POD */
        } * targets;                    /* one a URL */
        size_t count;
        unsigned again; /* how often it was asked anew */
};

struct verify {
        struct site *site;
        struct step *step;
        struct member *from; /* where kubectl runs */
        struct probe *probes;
        size_t count, at, open; /* at: the next to ask; open: under way */
        bool cut;               /* nothing more can be run */
        bool logs;              /* they were asked; now their logs are read */
        const char *name;       /* the service's: another each run, because CoreDNS remembers for half a minute */
        const char *service[2]; /* its addresses */
        char digest[65];        /* of what is verified */
        int64_t deadline;
        struct error err; /* the first failure */
        size_t failures;
};

/* Every probe asks, a few at a time; then their logs are read; then verify_end. */
void verify_ask(struct verify *v);
/* A sentence about what does not work, with what to look at. */
void verify_failed(struct verify *v, const char *hint, const char *fmt, ...) PRINTF(3, 4);
/* Milliseconds, for `deadline`. */
int64_t verify_now(void);
/* The namespace goes; then the step ends. */
void verify_end(struct verify *v);

#endif
