/* A Provider creates, finds and deletes Machines. Each is one struct of functions; no other code
 * knows which provider it uses. */
#ifndef SLIPWAY_PROVIDER_H
#define SLIPWAY_PROVIDER_H

#include "config/cluster.h"
#include "deliver/link/link.h"

struct event_base;

enum machine_state { MACHINE_ABSENT, MACHINE_STOPPED, MACHINE_RUNNING };

struct machine {
        const struct node *node;
        enum machine_state state;
        /* it runs, but was started a short time ago, perhaps by a killed run: its sshd may
         * not answer yet */
        bool booting;
        struct link_target target; /* how to reach it; strings live in the arena given to list */
        /* What a cloud says about it, NULL where it says nothing: the providerID of its Node
         * ("openstack:///ID"), its zone and region, and its state in the cloud's own word. They
         * are known at the latest when it was created. */
        const char *provider_id, *zone, *region, *detail;
        /* The file asks for something else than it was made from: what ("flavor m1.large instead of
         * m1.small"). NULL: nothing else, or nobody can tell. Set by survey. */
        const char *outdated;
};

struct provider_run {
        struct event_base *base;
        struct cluster *cluster;
        /* STATE/NAME, which has host keys and slipway's own ssh key pair */
        const char *state;
        struct arena *arena;
        /* identity.prefix: what the cluster has in a cloud is marked with it. NULL: there is no
         * Identity yet, so nothing there can be the cluster's */
        const char *prefix;
        /* a secret of the Identity for what the cluster's own programs need of a cloud; NULL as
         * above */
        const char *secret;
        /* the prefix is of another cluster, which is no more: nothing that it left is in use, and
         * nothing in `state` is its own */
        bool abandoned;
        /* sentences, in the arena: what cleanup leaves in the cloud on purpose */
        struct strings kept;
        void *own; /* the provider's, from the first call until close */
};

/* What prepare and create will do, known before the plan. Texts are in the arena. */
struct survey_problem {
        const char *what, *hint; /* hint: may be NULL */
};
struct survey {
        struct strings lines; /* of the plan: what is made, and what it costs */
        struct survey_problem *problems;
        size_t problem_count;
        bool changes; /* prepare has something to do, even if no machine is missing */
};
void survey_line(struct provider_run *run, struct survey *s, const char *fmt, ...) PRINTF(3, 4);
void survey_problem(struct provider_run *run, struct survey *s, const char *hint, const char *fmt,
        ...) PRINTF(4, 5);

/* Something in a cloud that has a mark of slipway's and belongs to no node of the file. What all
 * nodes share is none, as long as its cluster is not abandoned. */
struct leak {
        const char *kind, *id, *name; /* "port"; name may be NULL */
        const char *prefix;           /* of the cluster that made it */
        bool ours;                    /* that is run->prefix: it may be deleted */
};
struct leaks {
        struct leak *v;
        size_t n;
};

struct provider_ops {
        const char *name;
        bool makes_machines;
        const char *missing; /* hint about a machine that is not there; NULL: up creates it */
        bool remote;         /* list asks a cloud, which has the nodes' addresses */
        /* The machines of all nodes, in the cluster's order. Synchronous, fast, changes nothing.
         * Where a cloud has the addresses it sets them in the nodes: those that exist, and for
         * others the ones that prepare will ask for. It also sets cluster.balancer. */
        int (*list)(struct provider_run *run, struct machine *out, struct error *err);
        /* The same for one node, which need not be in cluster.yaml. */
        int (*find)(struct provider_run *run, const struct node *n, struct machine *out,
                struct error *err);
        /* Names of machines that exist and are not in cluster.yaml; in the arena. NULL: this
         * provider cannot list them. */
        int (*others)(struct provider_run *run, struct strings *out, struct error *err);
        /* What prepare and create would do, and all that would stop them; which machines are
         * outdated. After list; changes nothing. NULL: nothing to say. */
        int (*survey)(struct provider_run *run, struct machine *machines, struct survey *out,
                struct error *err);
        /* Creates what all machines share (a base root, a bridge, a key). Calls fn once; err NULL
         * on success. A cloud may give other addresses, or another balancer, than list expected:
         * they are set in the nodes and in cluster.balancer. */
        void (*prepare)(struct provider_run *run,
                void (*say)(const char *what, int permille, void *arg),
                void (*fn)(struct error *err, void *arg), void *arg);
        /* Creates or starts one machine, until ssh can be tried. Calls fn once. Several may
         * run at once. */
        void (*create)(struct provider_run *run, struct machine *m,
                void (*fn)(struct machine *m, struct error *err, void *arg), void *arg);
        /* Deletes one machine with its data; no error when it does not exist. Calls fn once. */
        void (*destroy)(struct provider_run *run, struct machine *m,
                void (*fn)(struct machine *m, struct error *err, void *arg), void *arg);
        /* Deletes one outdated machine, so that create makes it anew: its address, its name and its
         * volumes for data stay. Calls fn once; its state is MACHINE_ABSENT then. NULL: machines
         * of this provider are never outdated. */
        void (*retire)(struct provider_run *run, struct machine *m,
                void (*fn)(struct machine *m, struct error *err, void *arg), void *arg);
        /* After the last machine: removes what prepare created for this cluster alone. */
        int (*cleanup)(struct provider_run *run, struct error *err);
        /* Lets the provider's balancer send to exactly these control-plane nodes. Before one
         * leaves. Calls fn once. NULL: there is no such balancer. */
        void (*members)(struct provider_run *run, const struct node *const *nodes, size_t n,
                void (*fn)(struct error *err, void *arg), void *arg);
        /* The bastion that the file lets the provider make: prepare makes or starts it, cleanup
         * deletes it; it is no node. After list. NULL, also returned: there is none. */
        const struct machine *(*bastion)(struct provider_run *run);
        /* The end of a machine's console; NULL: the provider has none. */
        int (*console)(struct provider_run *run, const struct machine *m, struct str *out,
                struct error *err);
        /* What was left behind, in an order in which it can be deleted; after list. What an
         * abandoned cluster left is deleted by cleanup. NULL: the provider cannot tell. */
        int (*leaks)(struct provider_run *run, struct leaks *out, struct error *err);
        int (*leak_delete)(struct provider_run *run, const struct leak *l, struct error *err);
        void (*close)(struct provider_run *run); /* frees run->own; NULL: there is none */
        /* Switches one machine off and on, for tests and users. NULL: the provider cannot. */
        int (*stop)(
                struct provider_run *run, const struct machine *m, bool hard, struct error *err);
        int (*start)(struct provider_run *run, const struct machine *m, struct error *err);
};

/* Each kind of provider has one. */
const struct provider_ops *provider_for(const struct cluster *c);
/* The nodes' addresses and the balancer, for who needs nothing else of the provider: `state` and
 * `prefix` as in provider_run. Asks nobody where the file has the addresses. */
int provider_addresses(struct cluster *c, const char *state, const char *prefix, struct error *err);

/* A machine on this computer outlives the run that created it: the program starts itself again as
 * the machine's keeper, so main() calls this before anything else. False: this is no such call.
 * True: it was one, and *status is what main returns. */
bool provider_keeper(int argc, char **argv, int *status);

#endif
