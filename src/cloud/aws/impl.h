/* Between the files of the session. */
#ifndef SLIPWAY_CLOUD_AWS_IMPL_H
#define SLIPWAY_CLOUD_AWS_IMPL_H

#include "cloud/aws/aws.h"
#include "cloud/aws/source.h"
#include "cloud/session.h"

struct proc;

struct keys {
        char *id, *secret, *token; /* token: may be NULL */
        int64_t expires;           /* clock_ms; 0: never */
        int64_t life;              /* milliseconds from when they were fetched */
};

struct aws_session {
        struct session session;
        struct aws_files files; /* empty in sessions that fetch keys for another */
        const struct source *source;
        char *region, *endpoint;
        struct aws_session *owner; /* whose settings are used; NULL: its own */
        struct keys keys;
        unsigned serial; /* of the keys and the clock */
        int64_t skew;    /* seconds that AWS's clock is ahead of ours */
        int64_t again;   /* clock_ms: no renewal before, after one that failed */
        /* While keys are fetched: */
        bool fetching;
        struct fault *starting; /* it may end before keys_fetch returns: where it says why */
        struct session_plain plain;
        struct aws_session *helper;
        struct call *call;
        struct proc *proc;
        struct str said; /* by the program */
        char *instance_token;
};

/* Starts to fetch; ends in keys_done. */
void keys_fetch(struct aws_session *s);
void keys_stop(struct aws_session *s);
void keys_release(struct keys *k);
/* The outcome: a document with keys, or NULL and why. */
void keys_done(struct aws_session *s, const json_t *document, const char *why);
struct aws_session *aws_helper(struct aws_session *owner, const struct source *source);
extern const struct call_row aws_assume_role, aws_assume_web;

#endif
