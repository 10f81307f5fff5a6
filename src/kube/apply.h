/* Inside the room: one apply and its documents. */
#ifndef SLIPWAY_KUBE_APPLY_H
#define SLIPWAY_KUBE_APPLY_H

#include "kube/call.h"
#include "kube/kinds.h"

struct document {
        struct apply *apply;
        json_t *object;
        const char *api_version, *kind, *name, *ns; /* borrowed from it */
        char *label;                                /* "ConfigMap kube-system/x" */
        bool built_in;
        struct request *request; /* in flight */
        struct event *timer;     /* the next try */
        unsigned pause;          /* milliseconds */
        int64_t since;           /* of the first try */
};

struct apply {
        struct kube_call call;
        struct document *documents;
        size_t count, left; /* left of this phase */
        unsigned phase, failed;
        json_t *crds; /* those among the documents */
        struct str errors;
        struct event *timer; /* the next phase */
        void (*fn)(const char *error, void *arg);
        void *arg;
};

/* One try: find its path (maybe by discovery), apply it. Ends in one of the three below. */
void document_go(struct document *d);
void document_done(struct document *d);
void document_failed(struct document *d, const char *why);
void document_again(struct document *d, unsigned at_least_ms);

/* The sentence without any value of a Secret in it; malloc'd. */
char *document_without_secrets(const struct document *d, const char *why);

#endif
