/* A site: the cluster, its machines, and the connections to them, for as long as a run lasts. Steps of all operations share it. */
#ifndef SLIPWAY_SITE_H
#define SLIPWAY_SITE_H

#include "addon/addon.h"
#include "cluster/run.h"
#include "deliver/link.h"
#include "kube/kube.h"
#include "provider/provider.h"

struct site;

struct member { /* a node in a run */
        struct site *site;
        struct node *node;
        struct machine *machine;
        struct link *link;
        struct step *user; /* the step that waits for the link */
        int tries;
        bool made; /* this run made or started the machine: it may still be booting */
        json_t *said, *drift;
        char applied[65], wanted[65];
        struct facts facts;
        struct node_identity leaves;
        struct nodespec spec;
        bool rendered;
        json_t *object; /* the Node as the API has it */
        bool labelled;  /* and our labels are on it */
        struct step *create, *connect, *apply, *ready;
};

struct site {
        struct event_base *base;
        struct arena *arena;
        struct cluster *cluster;
        struct identity identity;
        struct provider_run provider;
        const struct provider_ops *ops;
        struct machine *machines;
        struct member *members;
        size_t count;
        struct item *items;
        size_t item_count;
        struct fetch *fetch;
        char *lock_path; /* bundle.lock */
        struct kube *kube;
        struct kube_call *watch, *wait;
        struct event *dns_timer, *verify_timer, *fabric_timer;
        struct run run;
};

/* Opens the Identity (and holds its lock), finds the machines. */
int site_open(struct site *s, struct event_base *base, struct arena *a, struct cluster *c, const char *state, const char *verb, struct error *err);
/* The same for verbs that only ask: no lock, nothing written. Also when the Identity was not made yet: then identity.prefix is NULL. */
int site_look(struct site *s, struct event_base *base, struct arena *a, struct cluster *c, const char *state, struct error *err);
/* Opens the client of the API as the administrator; no request is made. */
int site_kube(struct site *s, struct error *err);
void site_release(struct site *s);
struct member *site_member(struct site *s, const char *name);
/* Renders the member's NodeSpec from what its agent said; `wanted` becomes its digest. */
int member_render(struct member *m, struct error *err);

/* ---- steps: each begins something and ends in step_done ---- */
void step_artifacts(struct step *s);  /* arg: site */
void step_prepare(struct step *s);    /* arg: site */
void step_create(struct step *s);     /* arg: member */
void step_connect(struct step *s);    /* arg: member */
void step_preflight(struct step *s);  /* arg: site */
void step_apply(struct step *s);      /* arg: member */
void step_api(struct step *s);        /* arg: site */
void step_objects(struct step *s);    /* arg: site */
void step_manifests(struct step *s);  /* arg: site; only where the fabric is custom, as the next */
void step_fabric(struct step *s);     /* arg: site */
void step_node_ready(struct step *s); /* arg: member */
void step_dns(struct step *s);        /* arg: site */
void step_verify(struct step *s);     /* arg: site */
void step_destroy(struct step *s);    /* arg: member */

/* ---- operations: what to do, as steps ---- */
void up_steps(struct site *s);
void down_steps(struct site *s);

#endif
