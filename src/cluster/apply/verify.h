/* Verification: a probe on every node connects to the others like a program in a pod. Failures
 * are reported as sentences, and each check as a row. Used at the end of `up` (step_verify) and
 * on its own (verify_cluster). */
#ifndef SLIPWAY_VERIFY_H
#define SLIPWAY_VERIFY_H

#include <event2/event.h>

#include "base/clock.h"
#include "cluster/apply/roll.h"

#define VERIFY_NAMESPACE      "slipway-verify"
#define VERIFY_NAMESPACE_PATH "/api/v1/namespaces/" VERIFY_NAMESPACE

/* The checks, in the order of the rows; their names are in verify_rows.c. */
enum verify_check {
        CHECK_NODE,  /* the Node is Ready; only in verify_cluster */
        CHECK_START, /* a pod starts on the node */
        CHECK_POD,   /* from pod to pod, between nodes */
        /* the address of a Service; this and the next two only if slipway knows who serves it */
        CHECK_SERVICE,
        CHECK_NAME, /* the name of a Service: DNS */
        CHECK_API,  /* the API through its Service */
        CHECK_EXEC, /* kubectl exec: from the API server to the kubelet */
        CHECK_LOGS, /* kubectl logs */
        /* NetworkPolicies between nodes; only if the fabric enforces them and there are two nodes
         */
        CHECK_POLICY,
        /* services.dex answers at the address that people use; only in verify_cluster */
        CHECK_LOGIN,
        /* what addons of the file promise (verify_promises.c) */
        CHECK_METRICS, /* metrics.k8s.io has the node */
        CHECK_STORAGE, /* a volume of the default class keeps its data */
        CHECK_INGRESS, /* an Ingress leads to the probes, by HTTP and by TLS */
        CHECK_TARGETS, /* Prometheus gets metrics from all its targets */
        CHECK_COUNT
};

struct probe { /* on one node */
        struct verify *verify;
        struct member *member;
        const char *pod;     /* NULL until it runs */
        const char *ip[2];   /* one per address family */
        const char *waiting; /* why it is not running yet */
        const char **urls;
        struct target {
                enum verify_check kind;
                const struct probe *to; /* CHECK_POD */
        } * targets;                    /* one per URL */
        size_t count;
        unsigned again;     /* number of repetitions */
        bool proven;        /* the current NetworkPolicy has the wanted effect on it */
        bool asked;         /* the probe answered the last question */
        const char *denied; /* why the last connection failed; NULL: it did not */
};

struct verify {
        struct site *site;
        struct step *step;
        /* pods of an earlier run were deleted with force */
        bool forced;
        struct member *from; /* where kubectl runs */
        struct probe *probes;
        size_t count, at, open; /* at: next to start; open: running */
        bool cut;               /* no more probes can be run */
        bool logs;              /* probes are done; now their logs are read */
        /* of the Service: a new one in each run, because CoreDNS caches for 30 seconds */
        const char *name;
        const char *service[2]; /* its addresses */
        const char *waiting;    /* for what an addon promises: why it is not there yet */
        size_t promise;         /* the row of verify_promises.c that is checked next */
        bool reads;             /* storage: the second pod, which reads what the first wrote */
        bool tls;               /* ingress: HTTP works, now TLS */
        char digest[65];        /* of what is verified */
        bool allows;     /* verify_policy: the second policy, which lets the probes connect */
        unsigned rounds; /* verify_policy: how often the probes were asked */
        int64_t deadline;
        struct error err; /* the first failure */
        size_t failures;
        /* verify_cluster: also if verified before, and without storing the result */
        bool alone;
        json_t *rows;      /* from verify_row; NULL: not needed */
        json_t *nodes;     /* alone: the API's list of Nodes */
        const char *login; /* alone: what is wrong with services.dex; NULL: nothing */
};

/* The control-plane node where kubectl runs; NULL: none can be reached. */
struct member *verify_from(struct site *s);
/* Runs all probes, a few at a time; then reads their logs; then calls verify_policy. */
void verify_ask(struct verify *v);
/* The addons whose promises are checked, one per line: part of what is verified. */
void verify_promises(const struct cluster *c, struct str *out);
/* What addons promise; then calls verify_end. */
void verify_kept(struct verify *v);
/* How long something that was just installed is waited for, from now. */
int64_t verify_patience(const struct verify *v);
/* Calls fn soon; one at a time. */
void verify_later(struct verify *v, event_callback_fn fn);
/* Why a pod does not run, as the API says it; NULL: unknown. */
const char *verify_pod_why(const json_t *pod);
/* kubectl's arguments to run /probe in the pod; `n` of the words are followed by a NULL. */
const char **verify_exec(struct probe *p, const char *const *words, size_t n);
/* Whether NetworkPolicies block and let through what they say; then calls verify_kept. */
void verify_policy(struct verify *v);
/* Reports a failure as a sentence, with a hint. */
void verify_failed(struct verify *v, const char *hint, const char *fmt, ...) PRINTF(3, 4);
/* Deletes the namespace, then ends the step. */
void verify_end(struct verify *v);
/* The result of one check: from a node, to a node, an address or a name (NULL: the node itself).
 * why NULL: success. */
void verify_row(struct verify *v, enum verify_check check, const char *from, const char *to,
        const char *why);
/* A verification with probes on the nodes that are added. verify_start begins when the probes of an
 * earlier run are deleted. */
struct verify *verify_new(struct site *site, struct step *s);
void verify_add(struct verify *v, struct member *m);
void verify_start(struct verify *v);

/* Runs all checks on a running cluster. Blocks. *out is {"cluster", "works": bool, "checks":
 * [{"check", "from", "to" (or null), "works": bool, "why" (or null)}]}, also if some fail, which is
 * an error with EXIT_UNHEALTHY; NULL if nothing could be checked. */
int verify_cluster(struct site *s, json_t **out, struct error *err);

#endif
