/* The steps of a plan: typed values, made from what was observed and what is wanted, before anybody
 * is asked. They are what is shown, saved, approved and done: plan_begin makes a step of the run of
 * each, and of nothing else. */
#ifndef SLIPWAY_PLAN_STEPS_H
#define SLIPWAY_PLAN_STEPS_H

#include <jansson.h>

#include "cluster/site/site.h"

enum plan_kind {
        PLAN_PREPARE,      /* what the provider needs once */
        PLAN_MACHINE,      /* made, or started */
        PLAN_CONNECT,      /* to a machine that was not there when the plan was made */
        PLAN_CHECK,        /* preflight of those */
        PLAN_SNAPSHOT,     /* of etcd, before an upgrade */
        PLAN_REMEMBER,     /* the version that rollback returns to */
        PLAN_STAGE,        /* programs are sent; nothing uses them yet */
        PLAN_STAGED,       /* on all nodes */
        PLAN_DRAIN,        /* cordon, and move pods away */
        PLAN_ADDRESS,      /* the virtual address goes to another node */
        PLAN_ETCD_JOIN,    /* as a learner */
        PLAN_APPLY,        /* the node becomes equal to its NodeSpec */
        PLAN_REGISTER,     /* its kubelet makes its Node again */
        PLAN_ETCD_PROMOTE, /* the learner votes */
        PLAN_HEALTHY,      /* what was restarted runs again */
        PLAN_UNCORDON,     /* pods may come back */
        PLAN_IMAGES,       /* of kube-proxy and CoreDNS that are the cluster's own */
        PLAN_API_OPTIONAL, /* is asked for nodes that leave; forced, they leave without it */
        PLAN_ETCD_QUORUM,  /* of the members that stay */
        PLAN_LEAVE_DRAIN,  /* pods are moved away from a node that leaves */
        PLAN_API_LEAVE,    /* its API server stops in order */
        PLAN_ETCD_LEAVE,   /* it is no member any more */
        PLAN_DELETE_NODE,  /* from the API */
        PLAN_DESTROY,      /* its machine */
        PLAN_RESET,        /* Kubernetes is taken off its host */
        PLAN_GONE,         /* the Node is deleted again if it came back meanwhile */
        PLAN_UNRECORD,     /* the record has it no more */
        PLAN_API,          /* answers */
        PLAN_OBJECTS,      /* of every cluster, in the API */
        PLAN_FABRIC,       /* of the user's own manifests */
        PLAN_READY,        /* says the API of a node */
        PLAN_DNS,
        PLAN_CHORES, /* small changes in the API: tokens that go, certificates that are approved */
        PLAN_SHUT_OUT,    /* people who are no longer in the file */
        PLAN_VERIFY,      /* from inside pods */
        PLAN_UNINSTALL,   /* a chart that is no longer in the file */
        PLAN_NAMESPACES,  /* of services.namespaces */
        PLAN_MANIFESTS,   /* of services.addons and services.manifests */
        PLAN_CHART,       /* installed or upgraded */
        PLAN_END_RELEASE, /* uninstalled, before the cluster goes */
        PLAN_BALANCERS,   /* Services of type LoadBalancer, before the cluster goes */
        PLAN_VOLUMES,     /* that go with their claims, before the cluster goes */
        PLAN_KINDS
};

struct plan;

struct plan_step {
        struct plan *plan;
        enum plan_kind kind;
        struct member *member; /* NULL: the cluster */
        const char *subject;   /* what of the cluster: a chart's name; NULL: all of it */
        void *arg;             /* of a step with a subject */
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
/* The same for something of the cluster; `arg` is what the run's step gets. */
struct plan_step *plan_add_for(struct plan *p, enum plan_kind kind, const char *subject, void *arg);
/* `s` waits for `other`; NULL is fine. */
void plan_after(struct plan_step *s, struct plan_step *other);
/* What the run calls a step of this kind. */
const char *plan_kind_name(enum plan_kind kind);
json_t *plan_steps_json(const struct plan *p);

#endif
