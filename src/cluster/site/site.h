/* A site: the cluster, its machines and the connections to them during a run. The steps of all
 * operations share it. */
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
struct reboot_request;

/* The cluster's own components that run as pods; see own_images.h. */
enum own_image { OWN_IMAGE_PROXY, OWN_IMAGE_DNS, OWN_IMAGE_COUNT };

/* What a run does to a node. */
enum fate {
        FATE_KEEP,    /* nothing: it is as wanted */
        FATE_MAKE,    /* its machine does not exist yet */
        FATE_START,   /* its machine is switched off */
        FATE_INSTALL, /* a machine without anything of slipway's */
        FATE_CHANGE,  /* some entries differ */
        FATE_REPLACE, /* its machine is outdated: it is made anew */
        FATE_REMOVE,  /* it is no longer in the file */
        FATE_COUNT
};

struct change { /* an entry that differs, as reported by the agent */
        enum spec_kind kind;
        enum wire_state state;
        const char *name, *detail;
};

/* What was observed of a node, from its agent, the API, etcd and the record. Only observing steps
 * write it, so it stays valid when the link is parked. */
struct observed {
        json_t *said, *drift; /* of its agent's HELLO */
        int64_t said_at;      /* this computer's clock when it arrived, in seconds */
        char digest[65];      /* of the HELLO */
        const char *host_key; /* as its link reported it; NULL: unknown */
        /* the digest of the spec applied last; "" if everything must be sent again */
        char applied[65];
        struct facts facts; /* of `said`, for rendering */
        bool looked;        /* passed preflight */
        bool answers;       /* its machine can be reached */
        /* FATE_REMOVE: the record or the provider has its host (no other host may be touched) */
        bool known;
        /* why its host is not touched although it is known; NULL: no reason */
        const char *refused;
        /* its etcd member votes and has a leader; only queried if a member is to be removed */
        bool etcd_healthy;
        json_t *object;     /* its Node object in the API */
        const char *before; /* its version before the plan (versions.h); NULL: unknown */
        bool was_ready;     /* Ready before the plan */
};

/* What will be done to a node. Decided before anything changes. */
struct planned {
        enum fate fate;
        unsigned leaving; /* enum reset_how bits: it is to be removed */
        bool optional;    /* the run continues if it cannot be reached */
        bool spare;       /* optional like this while enough other workers are Ready: readiness.h */
        struct node_identity leaves;
        struct nodespec spec;
        char wanted[65];       /* digest of the wanted spec */
        bool rendered, issued; /* the spec was rendered; its leaves were issued */
        bool dropped;          /* the spec's texts were freed; `wanted` is still valid */
        struct change *changes;
        size_t change_count;
        unsigned restarts; /* enum part bits */
        bool drains;       /* its pods are evicted before it changes */
        bool joins;        /* its etcd member joins a running etcd as a learner */
        bool promotes;     /* its etcd member is a learner and must be promoted */
        bool registers;    /* it is running, but has no Node object */
        bool unproven;     /* an interrupted run gave it the wanted version; see proven.h */
        bool commands;     /* runs commands of the user, with unknown disruption */
        bool reboots;      /* its machine is rebooted */
        /* the members it joins and itself; NULL: all members start together */
        const char *etcd_initial;
        const char *note; /* shown in the plan beside its fate; may be NULL */
        struct plan_step *apply, *healthy;
};

/* The progress of a run at a node: its link, and what happens on it. */
struct running {
        struct link *link;  /* NULL: not open now; see member_reachable */
        bool parked;        /* closed while idle, reopened when needed */
        bool pooled;        /* managed by pool.c; false for links that only query */
        bool touched;       /* a spec was sent to be applied */
        uint64_t used;      /* time of last use, as a count over all links */
        struct op *waiters; /* notified once when the link closes; op.h */
        struct connecting *connecting;
        struct applying *applying; /* the agent applies one spec at a time */
        const char *failure;       /* the first entry that failed; NULL: none */
        int tries;                 /* failed connections while the machine booted */
        bool made;       /* this run created or started the machine, which may still be booting */
        bool named;      /* slipway's labels were sent to its Node */
        bool labelled;   /* its Node has the labels */
        bool cordoned;   /* by this run */
        bool unbalanced; /* the provider's balancer no longer sends to it */
        bool left;       /* it is no longer an etcd member */
        bool back; /* it is rolled back: whether it becomes Ready before that does not count */
        const char *missing; /* a spare node that could not be reached: why; NULL: reached */
        bool late;           /* a spare node that was not Ready in time */
        const char *lacking; /* the run continued without it: why it is not Ready; otherwise NULL */
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

/* What was found about the cluster as a whole. */
struct found {
        struct host_records record; /* slipway's own record of hosts */
        struct member **removed;    /* nodes that are no longer in the file */
        size_t removed_count;
        struct etcd_peer *peers; /* etcd's members, as etcd lists them */
        size_t peer_count;
        /* users that lose access (outsiders.h); NULL: none */
        struct outsiders *outsiders;
        const char *warning;             /* of the provider of auth.oidc (issuer.h); NULL: none */
        struct chores *chores;           /* small things to do in the API (chores.h); NULL: none */
        struct services_found *services; /* of services.* (addon/service.h); NULL: the file has
                                            none, and neither has the cluster */
        struct outside *outside;         /* of a cluster that goes: what it has outside itself
                                            (addon/outside.h); NULL: nobody asked */
        struct survey survey;            /* what the provider will make, and why it cannot */
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
        struct item *items; /* item_count items for each architecture */
        size_t item_count;
        const char *archs[2]; /* of the machines; known after fetching artifacts */
        size_t arch_count, arch_at;
        struct fetch *fetch;
        struct http *http; /* for requests to others than nodes and the API; may be NULL */
        char *lock_path;   /* bundle.lock */
        struct found found;
        /* the API of removed control-plane nodes, if no node of the file has an API */
        struct kube *removed_kube;
        const char *snapshot_path; /* taken before an upgrade; NULL: none */
        bool force;                /* go on in spite of what a look warns of */
        bool allow_down;           /* an older version than the one that runs is meant */
        bool only_bastion;         /* machines run that are reached through a bastion that does not:
                                      the plan is to make it, and nothing is asked of nodes */
        bool only_stage;           /* the plan ends when the nodes have got what an upgrade needs */
        const struct reboot_request *reboot; /* asked for (plan/reboot.h); NULL: none */
        unsigned consoles; /* that were asked for, of machines that did not answer */
        unsigned cleanup;  /* seconds for what a cluster that goes has outside itself; 0: it is left
                              there */
        struct step *artifacts, *plan;
        struct plan *steps; /* the plan, once it was made */
        struct kube *kube;
        /* to the API servers, in the order of control-plane nodes; none if they
         * are reached directly */
        struct tunnel **tunnels;
        const char **sockets;
        size_t tunnel_count;
        char *tunnel_dir;
        struct kube_call *watch, *wait;
        struct event *verify_timer, *api_timer, *own_images_timer;
        struct step *api;
        struct { /* links: pool.c */
                struct slot_owner owner;
                struct event *timer;
                uint64_t uses;
        } pool;
        struct helm *helm;     /* cluster/services/helm.h; NULL: not started */
        struct op *operations; /* all of the run, also those that ended */
        struct run run;
};

/* Opens the Identity (and takes its lock) and finds the machines. */
int site_open(struct site *s, struct event_base *base, struct arena *a, struct cluster *c,
        const char *state, const char *verb, struct error *err);
/* The same without lock and without writing anything, for verbs that only query. If there is no
 * Identity yet, identity.prefix is NULL. */
int site_look(struct site *s, struct event_base *base, struct arena *a, struct cluster *c,
        const char *state, struct error *err);
/* Opens the API client as the administrator, once; makes no request. */
int site_kube(struct site *s, struct error *err);
/* The same for removed control-plane nodes (s->removed_kube), without tunnels. */
int site_removed_kube(struct site *s, struct error *err);
/* For site_kube: opens tunnels if the API is behind another host, and adds them to the target. */
int site_tunnels(struct site *s, struct kube_target *target, struct error *err);
void site_tunnels_free(struct site *s);
/* A private directory of this run, PREFIX-PID-…. Directories of killed runs are removed first. */
int scratch_make(const char *prefix, char **out, struct error *err);
void scratch_remove(char **path); /* *path may be NULL */
/* An administrator's kubeconfig for a program on this computer. `server` and `name` (in its
 * certificate; NULL: the server's host) have the same meaning as for the API client. */
int site_kubeconfig(
        struct site *s, const char *server, const char *name, struct str *out, struct error *err);
void site_release(struct site *s);
/* That the provider makes; NULL: there is none. */
const struct machine *site_bastion(struct site *s);
struct member *site_member(struct site *s, const char *name);
/* Ends the step and returns true if the member's link is closed. */
bool member_cut(const struct member *m, struct step *s);
int member_leaves(struct member *m, struct error *err);
/* A leaf of the file's first control-plane node. */
int site_first_leaf(struct site *s, enum leaf_id id, const struct leaf **out, struct error *err);
/* Renders the member's NodeSpec from the facts of its agent and sets `wanted` to its digest. */
int member_render(struct member *m, struct error *err);
/* The architecture that its agent reported; for a machine that does not exist
 * yet, this computer's. */
const char *member_arch(const struct member *m);
/* The items for its architecture (item_count). NULL: none were fetched;
 * member_render reports that. */
struct item *member_items(const struct member *m);
/* The node belongs to a cluster that is being adopted: it has no agent record, but slipway
 * has its CA. */
bool member_adopted(const struct member *m);
/* As its agent reported it; NULL: it has none yet. */
const char *member_machine_id(const struct member *m);
/* The agent reported that the node has etcd's data. */
bool member_has_etcd(const struct member *m);
/* Makes the next member_render render again. */
void member_forget_spec(struct member *m);
/* Frees the spec's texts, which are most of a member's memory; they can be rendered again. */
void member_drop_spec(struct member *m);
/* Makes sure that `wanted` is known; the spec itself may have been dropped. */
int member_wants(struct member *m, struct error *err);

/* ---- links: pool.c ---- */
void pool_begin(struct site *s);
void pool_end(struct site *s);
/* It was connected to, and its link has not failed since. */
bool member_reachable(const struct member *m);
/* Its link, reopened if it was parked; requests on it wait until it is open.
 * NULL: not reachable. */
struct link *member_link(struct member *m);
/* link_run_program and link_run on its link; if it is not reachable, fn gets the error
 * from the loop. */
void member_run_program(struct member *m, const struct link_program *p);
void member_run(struct member *m, const char *const *argv, const char *input, size_t max,
        void (*fn)(struct link *l, int status, const char *out, const char *errors, void *arg),
        void *arg);
/* Called when nothing uses the link any more. */
void member_idle(struct member *m);
/* Frees its link; a later `connect` opens a new one. */
void member_hang_up(struct member *m);
/* Connects to a machine that was rebooted, and ends the step: only with another boot of the same
 * machine than `before` (member_boot). */
void member_connect_again(struct member *m, struct step *s, const char *before);
/* Opens a link, for the first time or again (member_link.c). */
int member_open(struct member *m, struct error *err);

/* ---- steps: each begins something and ends in step_done ---- */
void step_artifacts(struct step *s); /* arg: site */
void step_prepare(struct step *s);   /* arg: site */
void step_create(struct step *s);    /* arg: member */
void step_connect(struct step *s);   /* arg: member */
void step_destroy(struct step *s);   /* arg: member */
void step_retire(struct step *s);    /* arg: member; the machine that step_create makes anew */
void api_look(struct site *s);       /* after a failed apply: can the API still start? */

#endif
