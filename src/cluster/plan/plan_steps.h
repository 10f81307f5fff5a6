/* The steps of a plan: typed values, made from the observed and the wanted state. They are
 * shown, saved, approved and carried out: plan_begin turns each into a step of the run, and
 * adds no others. */
#ifndef SLIPWAY_PLAN_STEPS_H
#define SLIPWAY_PLAN_STEPS_H

#include <jansson.h>

#include "cluster/site/site.h"

enum plan_kind {
        PLAN_PREPARE,      /* what the provider needs once */
        PLAN_MACHINE,      /* created or started */
        PLAN_CONNECT,      /* to a machine that did not exist or was off before */
        PLAN_CHECK,        /* preflight of that machine */
        PLAN_CHECK_NEW,    /* of one that was made anew */
        PLAN_SNAPSHOT,     /* of etcd, before an upgrade */
        PLAN_REMEMBER,     /* stores the version that rollback returns to */
        PLAN_STAGE,        /* programs are sent, but not used yet */
        PLAN_STAGED,       /* done on all nodes */
        PLAN_DRAIN,        /* cordon the node and evict its pods */
        PLAN_ADDRESS,      /* move the virtual IP to another node */
        PLAN_ETCD_JOIN,    /* as a learner */
        PLAN_APPLY,        /* apply the NodeSpec */
        PLAN_REGISTER,     /* the kubelet creates its Node again */
        PLAN_REBOOT,       /* the machine is booted again */
        PLAN_ETCD_PROMOTE, /* the learner becomes a voter */
        PLAN_HEALTHY,      /* restarted parts run again */
        PLAN_UNCORDON,     /* pods may come back */
        PLAN_IMAGES,       /* of the cluster's own kube-proxy and CoreDNS */
        PLAN_API_OPTIONAL, /* for nodes to be removed; with force, not required */
        PLAN_ETCD_QUORUM,  /* of the remaining members */
        PLAN_LEAVE_DRAIN,  /* evict the pods of a node to be removed */
        PLAN_MEMBERS,      /* the provider's balancer no longer sends to it */
        PLAN_MEMBERS_BACK, /* it sends to a machine that was made anew, once that serves */
        PLAN_API_LEAVE,    /* stop its API server */
        PLAN_ETCD_LEAVE,   /* remove its etcd member */
        PLAN_DELETE_NODE,  /* delete the Node object */
        PLAN_DESTROY,      /* destroy the machine */
        PLAN_RETIRE,       /* destroy an outdated machine, which is made anew */
        PLAN_RESET,        /* remove Kubernetes from the host */
        PLAN_GONE,         /* delete the Node again if it came back */
        PLAN_UNRECORD,     /* delete it from the record */
        PLAN_API,          /* the API answers */
        PLAN_OBJECTS,      /* objects of every cluster, in the API */
        PLAN_FABRIC,       /* from the user's own manifests */
        PLAN_READY,        /* the Node is Ready */
        PLAN_DNS,
        PLAN_CHORES, /* small changes in the API: tokens that go, certificates that are approved */
        PLAN_SHUT_OUT,    /* people who are no longer in the file */
        PLAN_VERIFY,      /* from inside pods */
        PLAN_UNINSTALL,   /* a chart that is no longer in the file */
        PLAN_NAMESPACES,  /* of services.namespaces */
        PLAN_CRDS,        /* of the charts' crds/ */
        PLAN_MANIFESTS,   /* of services.addons and services.manifests */
        PLAN_CHART,       /* installed or upgraded */
        PLAN_END_RELEASE, /* uninstalled, before the cluster goes */
        PLAN_POLICIES,    /* of volumes: what becomes of them, before the cluster goes */
        PLAN_BALANCERS,   /* Services of type LoadBalancer, before the cluster goes */
        PLAN_VOLUMES,     /* that go with their claims, before the cluster goes */
        PLAN_KINDS
};

struct plan;

struct plan_step {
        struct plan *plan;
        enum plan_kind kind;
        struct member *member; /* NULL: the cluster */
        const char *subject;   /* a part of the cluster, e.g. a chart's name; NULL: all */
        void *arg;             /* for a step with a subject */
        size_t number;         /* from 1 */
        struct plan_step **waits;
        size_t wait_count;
        struct step *step; /* while it runs */
        struct plan_step *next;
};

struct plan {
        struct arena *arena;
        struct plan_step *first, *last;
        size_t count;
};

struct plan_step *plan_add(struct plan *p, enum plan_kind kind, struct member *m);
/* The same for a part of the cluster; `arg` is passed to the run's step. */
struct plan_step *plan_add_for(struct plan *p, enum plan_kind kind, const char *subject, void *arg);
/* `s` waits for `other`, which may be NULL. */
void plan_after(struct plan_step *s, struct plan_step *other);
/* The name of the run's step. */
const char *plan_kind_name(enum plan_kind kind);
json_t *plan_steps_json(const struct plan *p);

#endif
