/* Internal: one apply and its documents. */
#ifndef SLIPWAY_KUBE_APPLY_H
#define SLIPWAY_KUBE_APPLY_H

#include "kube/call.h"
#include "kube/kinds.h"

struct document {
        struct apply *apply;
        json_t *object;
        const char *api_version, *kind, *name, *ns; /* borrowed from object */
        char *label;                                /* "ConfigMap kube-system/x" */
        bool built_in;
        struct request *request; /* in flight */
        struct event *timer;     /* of the next attempt */
        unsigned pause;          /* milliseconds */
        int64_t since;           /* time of the first attempt */
};

struct apply {
        struct kube_call call;
        enum kube_verb verb;
        struct document *documents;
        size_t count, left; /* left: of this phase */
        unsigned phase, failed;
        json_t *crds; /* CRDs among the documents */
        struct str errors;
        struct event *timer;                      /* of the next phase */
        void (*fn)(const char *error, void *arg); /* one of the two */
        void (*told)(json_t *objects, const char *error, void *arg);
        json_t *answers; /* for `told`; else NULL */
        void *arg;
};

/* One attempt: finds its path, maybe by discovery, and applies it. Ends in one of
 * the three below. */
void document_go(struct document *d);
void document_done(struct document *d);
void document_failed(struct document *d, const char *why);
void document_again(struct document *d, unsigned at_least_ms);

/* The sentence without values of a Secret; malloc'd. */
char *document_without_secrets(const struct document *d, const char *why);

#endif
