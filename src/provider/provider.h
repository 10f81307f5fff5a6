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
};

struct provider_run {
        struct event_base *base;
        struct cluster *cluster;
        /* STATE/NAME, which has host keys and slipway's own ssh key pair */
        const char *state;
        struct arena *arena;
};

struct provider_ops {
        const char *name;
        bool makes_machines;
        /* The machines of all nodes, in the cluster's order. Synchronous, fast, changes nothing. */
        int (*list)(struct provider_run *run, struct machine *out, struct error *err);
        /* The same for one node, which need not be in cluster.yaml. */
        int (*find)(struct provider_run *run, const struct node *n, struct machine *out,
                struct error *err);
        /* Names of machines that exist and are not in cluster.yaml; in the arena. NULL: this
         * provider cannot list them. */
        int (*others)(struct provider_run *run, struct strings *out, struct error *err);
        /* Creates what all machines share (a base root, a bridge, a key). Calls fn once; err NULL
         * on success. */
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
        /* After the last machine: removes what prepare created for this cluster alone. */
        int (*cleanup)(struct provider_run *run, struct error *err);
        /* Switches one machine off and on, for tests and users. NULL: the provider cannot. */
        int (*stop)(
                struct provider_run *run, const struct machine *m, bool hard, struct error *err);
        int (*start)(struct provider_run *run, const struct machine *m, struct error *err);
};

/* NULL: not implemented yet (openstack, aws) */
const struct provider_ops *provider_for(const struct cluster *c);

/* A machine on this computer outlives the run that created it: the program starts itself again as
 * the machine's keeper, so main() calls this before anything else. False: this is no such call.
 * True: it was one, and *status is what main returns. */
bool provider_keeper(int argc, char **argv, int *status);

#endif
