/* A site: the cluster, its machines, and the connections to them, for as long as a run lasts. Steps
 * of all operations share it. */
#ifndef SLIPWAY_SITE_H
#define SLIPWAY_SITE_H

#include "addon/addon.h"
#include "cluster/site/record.h"
#include "run/run.h"
#include "deliver/link/link.h"
#include "deliver/link/slots.h"
#include "kube/kube.h"
#include "provider/provider.h"

struct site;
struct op;
struct connecting;
struct applying;
struct etcd_peer;
struct outsiders;
struct plan;
struct plan_step;
struct chores;
struct services_found;
struct outside;
struct helm;

/* Parts of the cluster's own that are kept as pods; see own_images.h. */
enum own_image { OWN_IMAGE_PROXY, OWN_IMAGE_DNS, OWN_IMAGE_COUNT };

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

/* What was seen of a node: said by its agent, the API, etcd and our record. Steps that look write
 * it; the plan and what is shown only read it, so it stays when the link was given back. */
struct observed {
        json_t *said, *drift; /* of its agent's HELLO, */
        char digest[65];      /* and its digest */
        const char *host_key; /* as its link told it; NULL: not known */
        char applied[65];     /* that digest, "" where all is to be sent in spite of it */
        struct facts facts;   /* of `said`, for rendering */
        bool looked;          /* preflight was content with it */
        bool answers;         /* its machine could be reached */
        bool known; /* FATE_REMOVE: the record or the provider knows its host: no other may be
                       touched */
        const char *refused; /* and why its host is not touched all the same; NULL: nothing against
                                it */
        bool etcd_healthy;   /* its etcd votes and follows a leader; only asked when a member is to
                              * leave
                              */
        json_t *object;      /* the Node as the API has it */
        const char *before;  /* the version of its kubelet when the plan was made; NULL: none */
        bool was_ready;      /* when the plan was made */
};

/* What is to become of a node. Decided before anything changes. */
struct planned {
        enum fate fate;
        unsigned leaving; /* enum reset_how bits: it goes out of the cluster */
        bool optional;    /* a run goes on when it cannot be reached */
        bool spare;       /* the same for a worker, while enough others are Ready: readiness.h */
        struct node_identity leaves;
        struct nodespec spec;
        char wanted[65];       /* the digest of the spec */
        bool rendered, issued; /* spec; leaves */
        bool dropped;          /* the spec's texts were freed; `wanted` is still its digest */
        struct change *changes;
        size_t change_count;
        unsigned restarts;        /* enum part bits */
        bool drains;              /* its pods have to leave before it changes */
        bool joins;               /* its etcd comes as a learner to members that live */
        bool promotes;            /* and one that came earlier has yet to become a voter */
        bool registers;           /* it runs, and the API does not know it (any more) */
        bool commands;            /* commands of the user run there: what they disrupt is unknown */
        const char *etcd_initial; /* those it joins, and itself; NULL: all are born together */
        const char *note;         /* what the plan tells of it beside its fate; NULL: nothing */
        struct plan_step *apply, *healthy;
};

/* What a run does with a node: its link, what happens on it, and how far the run has come. */
struct running {
        struct link *link;  /* NULL: none is open now; see member_reachable */
        bool parked;        /* it was given back, and is opened again when it is needed */
        bool pooled;        /* its link is one of pool.c, not of somebody who only asks */
        bool touched;       /* something was sent to be applied there */
        uint64_t used;      /* when, among all links: a count */
        struct op *waiters; /* told once when the link closes; op.h */
        struct connecting *connecting;
        struct applying *applying; /* the agent takes one spec at a time */
        const char *failure; /* of the first entry that could not be applied; NULL: none yet */
        int tries;           /* how often the machine was knocked at in vain while it booted */
        bool made;           /* this run made or started the machine: it may still be booting */
        bool named;          /* our labels were sent to its Node */
        bool labelled;       /* and are on it */
        bool cordoned;       /* by this run */
        bool left;           /* it is no member of etcd any more */
        const char *missing; /* it is spare, and could not be reached: why; NULL: it was reached */
        bool late;           /* it is spare, and was not Ready in time */
        const char *lacking; /* the run went on without it: why it is not Ready; NULL: it is */
        struct step *create, *connect, *compare, *apply, *healthy, *ready;
};

struct member { /* a node in a run */
        struct site *site;
        struct node *node;
        struct machine *machine;
        struct observed seen;
        struct planned plan;
        struct running run;
};

/* What was found of the cluster as a whole, beside its nodes. */
struct found {
        struct host_records record; /* whom we know, by our own record */
        struct member **removed;    /* nodes that are no longer in the file */
        size_t removed_count;
        struct etcd_peer *peers; /* etcd's members, by its own word */
        size_t peer_count;
        /* people to be shut out (outsiders.h); NULL: nobody */
        struct outsiders *outsiders;
        const char *warning;             /* of the provider of auth.oidc (issuer.h); NULL: none */
        struct chores *chores;           /* small things to do in the API (chores.h); NULL: none */
        struct services_found *services; /* of services.* (addon/service.h); NULL: the file has
                                            none, and neither has the cluster */
        struct outside *outside;         /* of a cluster that goes: what it has outside itself
                                            (addon/outside.h); NULL: nobody asked */
        bool live;                 /* etcd has a quorum: who comes now joins something that lives */
        bool api_up;               /* the API answered when it was looked at */
        json_t *nodes;             /* all Nodes it has then */
        json_t *bindings, *spaces; /* those of auth.bindings, and Namespaces, it has then */
        char *version; /* the oldest version an API server of it may have: what it runs now; NULL:
                          unknown */
        const char *proxy_mode_now; /* of a kube-proxy that is the cluster's own; NULL: unknown, or
                                       there is none */
        const char *own_images_now[OWN_IMAGE_COUNT]; /* their images, as they are; NULL: unknown, or
                                                        nobody asks */
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
        struct item *items; /* for each architecture in turn, item_count of them */
        size_t item_count;
        const char *archs[2]; /* of the machines; known when the artifacts are fetched */
        size_t arch_count, arch_at;
        struct fetch *fetch;
        struct http *http; /* what is asked of others than nodes and the API; NULL: nothing */
        char *lock_path;   /* bundle.lock */
        struct found found;
        struct kube *removed_kube; /* the API of those of found.removed that had the control plane,
                                     while none that is in the file has one */
        const char *snapshot_path; /* taken before an upgrade; NULL: none */
        bool force;                /* go on in spite of what a look warns of */
        bool allow_down;           /* an older version than the one that runs is meant */
        bool only_stage;           /* the plan ends when the nodes have got what an upgrade needs */
        unsigned cleanup; /* seconds for what a cluster that goes has outside itself; 0: it is left
                             there */
        struct step *artifacts, *plan;
        struct plan *steps; /* the plan's, from the end of `plan` on */
        struct kube *kube;
        struct tunnel **tunnels; /* to the API servers, in the order of control-plane nodes; none
                                    when they are reached directly */
        const char **sockets;
        size_t tunnel_count;
        char *tunnel_dir;
        struct kube_call *watch, *wait;
        struct event *dns_timer, *verify_timer, *api_timer, *own_images_timer;
        struct step *api;
        struct { /* links: pool.c */
                struct slot_owner owner;
                struct event *timer;
                uint64_t uses;
        } pool;
        struct helm *helm;     /* cluster/services/helm.h; NULL: not needed so far */
        struct op *operations; /* all of the run, over or not */
        struct run run;
};

/* Opens the Identity (and holds its lock), finds the machines. */
int site_open(struct site *s, struct event_base *base, struct arena *a, struct cluster *c,
        const char *state, const char *verb, struct error *err);
/* The same for verbs that only ask: no lock, nothing written. Also when the Identity was not made
 * yet: then identity.prefix is NULL. */
int site_look(struct site *s, struct event_base *base, struct arena *a, struct cluster *c,
        const char *state, struct error *err);
/* Opens the client of the API as the administrator, once; no request is made. */
int site_kube(struct site *s, struct error *err);
/* The same for former members: s->removed_kube. Only directly. */
int site_removed_kube(struct site *s, struct error *err);
/* Inside site_kube: opens tunnels when the API can only be reached through another host, and puts
 * them into the target. */
int site_tunnels(struct site *s, struct kube_target *target, struct error *err);
void site_tunnels_free(struct site *s);
/* A private directory of this run, PREFIX-PID-…, and its end. Those of killed runs go first. */
int scratch_make(const char *prefix, char **out, struct error *err);
void scratch_remove(char **path); /* NULL inside is fine */
/* A kubeconfig of the administrator for a program on this computer. `server` and `name` (of its
 * certificate; NULL: the server's host) as the API's client has them. */
int site_kubeconfig(
        struct site *s, const char *server, const char *name, struct str *out, struct error *err);
void site_release(struct site *s);
struct member *site_member(struct site *s, const char *name);
/* Ends the step when the member's link is gone: true. */
bool member_cut(const struct member *m, struct step *s);
int member_leaves(struct member *m, struct error *err);
/* A leaf of the file's first control-plane node. */
int site_first_leaf(struct site *s, enum leaf_id id, const struct leaf **out, struct error *err);
/* Renders the member's NodeSpec from what its agent said; `wanted` becomes its digest. */
int member_render(struct member *m, struct error *err);
/* Its architecture, which its agent says; of a machine that is yet to be made, this computer's. */
const char *member_arch(const struct member *m);
/* The items for it: item_count of them. NULL: none were fetched for its architecture, which
 * member_render says. */
struct item *member_items(const struct member *m);
/* It is of a cluster that is being taken over: no record of ours yet, but our authority is its own.
 */
bool member_adopted(const struct member *m);
/* As its agent said it; NULL: it has none yet. */
const char *member_machine_id(const struct member *m);
/* A node has etcd's data, by its agent's word. */
bool member_has_etcd(const struct member *m);
/* So that the next time it is rendered anew. */
void member_forget_spec(struct member *m);
/* Frees its texts, which are most of what a node takes here: they can be made again. */
void member_drop_spec(struct member *m);
/* `wanted` is known; the spec itself may have been dropped. */
int member_wants(struct member *m, struct error *err);

/* ---- links: pool.c ---- */
void pool_begin(struct site *s);
void pool_end(struct site *s);
/* It was connected to, and nothing is known to be wrong with the way to it. */
bool member_reachable(const struct member *m);
/* Its link, opened again when it was given back; what is begun on it waits for its turn. NULL: it
 * is not reachable. */
struct link *member_link(struct member *m);
/* link_run_program and link_run over it; where it is not reachable fn hears so from the loop. */
void member_run_program(struct member *m, const struct link_program *p);
void member_run(struct member *m, const char *const *argv, const char *input, size_t max,
        void (*fn)(struct link *l, int status, const char *out, const char *errors, void *arg),
        void *arg);
/* Nothing goes on over its link now. */
void member_idle(struct member *m);
/* Frees its link; a later `connect` begins anew. */
void member_hang_up(struct member *m);
/* member_link.c: opens a link, for the first time or again. */
int member_open(struct member *m, struct error *err);

/* ---- steps: each begins something and ends in step_done ---- */
void step_artifacts(struct step *s); /* arg: site */
void step_prepare(struct step *s);   /* arg: site */
void step_create(struct step *s);    /* arg: member */
void step_connect(struct step *s);   /* arg: member */
void step_destroy(struct step *s);   /* arg: member */
void api_look(
        struct site *s); /* a node could not be applied: is the API still worth waiting for? */

#endif
