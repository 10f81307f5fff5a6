/* Verification: a probe on every node asks the others as a program in a pod would; what does not
 * answer is reported as sentences, and each check as a row. At the end of `up` (step_verify), or on
 * its own (verify_cluster). */
#ifndef SLIPWAY_VERIFY_H
#define SLIPWAY_VERIFY_H

#include "base/clock.h"
#include "cluster/apply/roll.h"

#define VERIFY_NAMESPACE "slipway-verify"

/* What is checked, in the order of the rows; the words are a table in verify_rows.c. */
enum verify_check {
        CHECK_NODE,    /* its Node is Ready; only verify_cluster asks */
        CHECK_START,   /* a pod starts on it */
        CHECK_POD,     /* from pod to pod, for each pair of nodes */
        CHECK_SERVICE, /* the address of a Service, where kube-proxy is slipway's; so the next two
                        */
        CHECK_NAME,    /* its name: DNS */
        CHECK_API,     /* the API through its Service */
        CHECK_EXEC,    /* kubectl exec: from the API server to the kubelet */
        CHECK_LOGS,    /* kubectl logs */
        CHECK_LOGIN, /* services.dex answers at the address that people use; only verify_cluster */
        CHECK_COUNT
};

struct probe { /* on one node */
        struct verify *verify;
        struct member *member;
        const char *pod;     /* NULL until it runs */
        const char *ip[2];   /* one a family */
        const char *waiting; /* why it does not run yet */
        const char **urls;
        struct target {
                enum verify_check kind;
                const struct probe *to; /* CHECK_POD */
        } * targets;                    /* one a URL */
        size_t count;
        unsigned again; /* how often it was asked anew */
};

struct verify {
        struct site *site;
        struct step *step;
        bool forced;         /* probes of an earlier run were struck from the API */
        struct member *from; /* where kubectl runs */
        struct probe *probes;
        size_t count, at, open; /* at: the next to ask; open: under way */
        bool cut;               /* nothing more can be run */
        bool logs;              /* they were asked; now their logs are read */
        const char *name; /* the service's: another each run, because CoreDNS remembers for half a
                             minute */
        const char *service[2]; /* its addresses */
        char digest[65];        /* of what is verified */
        int64_t deadline;
        struct error err; /* the first failure */
        size_t failures;
        bool alone;    /* of verify_cluster: whatever was verified before, and without a record */
        json_t *rows;  /* verify_row's; NULL: nobody reads them */
        json_t *nodes; /* alone: the API's list of Nodes */
        const char *login; /* alone: what is wrong with services.dex; NULL: nothing */
};

/* The control-plane node where kubectl runs; NULL: none is reached. */
struct member *verify_from(struct site *s);
/* Every probe asks, a few at a time; then their logs are read; then verify_end. */
void verify_ask(struct verify *v);
/* A sentence about what does not work, with what to look at. */
void verify_failed(struct verify *v, const char *hint, const char *fmt, ...) PRINTF(3, 4);
/* The namespace goes; then the step ends. */
void verify_end(struct verify *v);
/* The result of one check: from a node, to a node, an address or a name (NULL: the node itself).
 * why NULL: it works. */
void verify_row(struct verify *v, enum verify_check check, const char *from, const char *to,
        const char *why);
/* Probes on these nodes; begins when the probes of an earlier run are removed. */
struct verify *verify_new(struct site *site, struct step *s);
void verify_add(struct verify *v, struct member *m);
void verify_start(struct verify *v);

/* All checks on a running cluster. Blocks. {"cluster", "works": bool, "checks": [{"check", "from",
 * "to" (or null), "works": bool, "why" (or null)}]}; also when some fail, which is an error with
 * EXIT_UNHEALTHY. *out is NULL when nothing could be checked. */
int verify_cluster(struct site *s, json_t **out, struct error *err);

#endif
