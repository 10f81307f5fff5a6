/* A site: the cluster, its machines, and the connections to them, for as long as a run lasts. Steps of all operations share it. */
#ifndef SLIPWAY_SITE_H
#define SLIPWAY_SITE_H

#include "addon/addon.h"
#include "cluster/run.h"
#include "deliver/link.h"
#include "kube/kube.h"
#include "provider/provider.h"

struct site;
struct etcd_peer;
struct outsiders;

/* Parts of the cluster's own that are kept as pods; see keep.h. */
enum keep_part { KEEP_PROXY, KEEP_DNS, KEEP_COUNT };

/* What becomes of a node in a run. */
enum fate {
        FATE_KEEP,    /* it is as wanted */
        FATE_MAKE,    /* there is no machine yet */
        FATE_START,   /* its machine is off */
        FATE_INSTALL, /* a machine with nothing of ours on it */
        FATE_CHANGE,  /* some of it differs */
        FATE_REMOVE,  /* it is no longer in the file */
        FATE_COUNT
};

struct change { /* an entry that differs, as the node's agent says */
        enum spec_kind kind;
        enum wire_state state;
        const char *name, *detail;
};

struct member { /* a node in a run */
        struct site *site;
        struct node *node;
        struct machine *machine;
        struct link *link;
        struct step *user; /* the step that waits for the link */
        int tries;
        unsigned leaving; /* enum reset_how bits: it goes out of the cluster */
        bool optional;    /* a run goes on when it cannot be reached */
        bool made;        /* this run made or started the machine: it may still be booting */
        json_t *said, *drift;
        char applied[65], wanted[65];
        struct facts facts;
        struct node_identity leaves;
        struct nodespec spec;
        bool rendered, issued, looked; /* spec; leaves; preflight was content with it */
        json_t *object;                /* the Node as the API has it */
        bool named;                    /* our labels were sent to it */
        bool labelled;                 /* and are on it */
        /* the plan's */
        enum fate fate;
        const char *before; /* the version of its kubelet when the plan was made; NULL: none */
        int64_t well_by;    /* milliseconds of the run: a node that is upgraded goes back when it is not well by then */
        struct change *changes;
        size_t change_count;
        unsigned restarts;        /* enum part bits */
        bool was_ready;           /* when the plan was made */
        bool etcd_answered;       /* while it is looked at until it is well: its etcd is */
        bool drains;              /* its pods have to leave before it changes */
        bool joins;               /* its etcd comes as a learner to members that live */
        bool promotes;            /* and one that came earlier has yet to become a voter */
        bool registers;           /* it runs, and the API does not know it (any more) */
        const char *etcd_initial; /* those it joins, and itself; NULL: all are born together */
        bool etcd_well;           /* its etcd votes and follows a leader; only asked when a member is to leave */
        bool answers;             /* FATE_REMOVE: its machine can be reached */
        bool comparing;           /* the agent only says what would change */
        bool cordoned;            /* by this run */
        bool left;                /* it is no member of etcd any more */
        const char *trouble;
        /* instead of the step's end, when its entries were applied: for who applies more than once in a step */
        void (*on_applied)(struct member *m, unsigned failed, void *arg);
        void *on_applied_arg;
        struct drain *drain;
        struct step *draining;
        struct event *timer; /* of the step that looks again and again */
        struct step *create, *connect, *compare, *apply, *promote, *healthy, *ready;
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
        /* what was found */
        struct member **gone; /* nodes that are no longer in the file */
        size_t gone_count;
        struct member
                *former; /* those of them that had the control plane or etcd, by our own record: who else would say where they are? Some may be gone for long */
        size_t former_count;
        struct kube *former_kube; /* their API, while none that is in the file has one */
        struct etcd_peer *peers;  /* etcd's members, by its own word */
        size_t peer_count;
        /* people to be shut out (outsiders.h); NULL: nobody */
        struct outsiders *outsiders;
        bool live;                        /* etcd has a quorum: who comes now joins something that lives */
        bool api_up;                      /* the API answered when it was looked at */
        json_t *nodes;                    /* all Nodes it has then */
        char *version;                    /* the oldest version an API server of it may have: what it runs now; NULL: unknown */
        const char *keep_now[KEEP_COUNT]; /* their images, as they are; NULL: unknown, or nobody asks */
        const char *snapshot_path;        /* taken before an upgrade; NULL: none */
        bool force;                       /* go on in spite of what a look warns of */
        bool allow_down;                  /* an older version than the one that runs is meant */
        /* Shown the plan before anything changes: 0 to go on, -ECANCELED not to (err may say why). NULL: nobody is asked. */
        int (*approve)(struct site *s, struct error *err);
        void *approve_arg;
        /* Called when they said yes, before the first change: what else that means. NULL: nothing. */
        int (*accepted)(struct site *s, struct error *err);
        void *accepted_arg;
        bool only_plan;  /* the run ends with it */
        bool only_stage; /* the run ends when the nodes have got what an upgrade needs */
        bool declined;   /* they said no */
        struct step *artifacts, *stage, *plan;
        struct kube *kube;
        struct tunnel **tunnels; /* to the API servers, in the order of control-plane nodes; none when they are reached directly */
        const char **sockets;
        size_t tunnel_count;
        char *tunnel_dir;
        struct kube_call *watch, *wait;
        struct event *dns_timer, *verify_timer, *api_timer, *fabric_timer, *keep_timer;
        struct step *api;
        struct run run;
};

/* Opens the Identity (and holds its lock), finds the machines. */
int site_open(struct site *s, struct event_base *base, struct arena *a, struct cluster *c, const char *state, const char *verb, struct error *err);
/* The same for verbs that only ask: no lock, nothing written. Also when the Identity was not made yet: then identity.prefix is NULL. */
int site_look(struct site *s, struct event_base *base, struct arena *a, struct cluster *c, const char *state, struct error *err);
/* Opens the client of the API as the administrator, once; no request is made. */
int site_kube(struct site *s, struct error *err);
/* The same for former members: s->former_kube. Only directly. */
int site_former_kube(struct site *s, struct error *err);
/* Inside site_kube: opens tunnels when the API can only be reached through another host, and puts them into the target. */
int site_tunnels(struct site *s, struct kube_target *target, struct error *err);
void site_tunnels_free(struct site *s);
void site_release(struct site *s);
struct member *site_member(struct site *s, const char *name);
/* Ends the step when the member's link is gone: true. */
bool member_cut(const struct member *m, struct step *s);
int member_leaves(struct member *m, struct error *err);
/* Renders the member's NodeSpec from what its agent said; `wanted` becomes its digest. */
int member_render(struct member *m, struct error *err);
/* It is of a cluster that is being taken over: no record of ours yet, but our authority is its own. */
bool member_adopted(const struct member *m);
/* So that the next time it is rendered anew. */
void member_forget_spec(struct member *m);

/* ---- steps: each begins something and ends in step_done ---- */
void step_artifacts(struct step *s);  /* arg: site */
void step_prepare(struct step *s);    /* arg: site */
void step_create(struct step *s);     /* arg: member */
void step_connect(struct step *s);    /* arg: member */
void step_preflight(struct step *s);  /* arg: site */
void step_apply(struct step *s);      /* arg: member */
void step_compare(struct step *s);    /* arg: member */
void step_observe(struct step *s);    /* arg: site */
void step_plan(struct step *s);       /* arg: site */
void step_api(struct step *s);        /* arg: site */
void api_look(struct site *s);        /* a node could not be applied: is the API still worth waiting for? */
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
