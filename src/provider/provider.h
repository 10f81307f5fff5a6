/* A Provider makes, finds and deletes Machines. One struct of functions each; nobody else knows which one it is. */
#ifndef SLIPWAY_PROVIDER_H
#define SLIPWAY_PROVIDER_H

#include "config/cluster.h"
#include "deliver/link.h"

struct event_base;

enum machine_state { MACHINE_ABSENT, MACHINE_STOPPED, MACHINE_RUNNING };

struct machine {
        const struct node *node;
        enum machine_state state;
        bool booting;              /* it runs, but not for long: a run that was killed may have started it, and its sshd does not answer yet */
        struct link_target target; /* how to reach it; strings live in the arena given to list */
};

struct provider_run {
        struct event_base *base;
        struct cluster *cluster;
        const char *state; /* STATE/NAME: host keys and an ssh key pair of our own are kept there */
        struct arena *arena;
};

struct provider_ops {
        const char *name;
        bool makes_machines;
        /* What is there now: one row a node, in the cluster's order. Foreground, quick, changes nothing. */
        int (*list)(struct provider_run *run, struct machine *out, struct error *err);
        /* The same for one node, which need not be in the file (any longer). */
        int (*find)(struct provider_run *run, const struct node *n, struct machine *out, struct error *err);
        /* Names of machines that are there and not in the file; in the arena. NULL: this provider cannot know. */
        int (*others)(struct provider_run *run, struct strings *out, struct error *err);
        /* What only has to be there once for all machines (a base root, a bridge, a key). fn once; err NULL on success. */
        void (*prepare)(struct provider_run *run, void (*say)(const char *what, int permille, void *arg), void (*fn)(struct error *err, void *arg), void *arg);
        /* Makes or starts one machine until ssh can be tried; fn once. Several at once. */
        void (*create)(struct provider_run *run, struct machine *m, void (*fn)(struct machine *m, struct error *err, void *arg), void *arg);
        /* Takes one machine away with all it had; no error when it is not there. fn once. */
        void (*destroy)(struct provider_run *run, struct machine *m, void (*fn)(struct machine *m, struct error *err, void *arg), void *arg);
        /* After the last machine: what prepare made for this cluster alone. */
        int (*cleanup)(struct provider_run *run, struct error *err);
        /* For tests and people: power. NULL where there is none. */
        int (*stop)(struct provider_run *run, const struct machine *m, bool hard, struct error *err);
        int (*start)(struct provider_run *run, const struct machine *m, struct error *err);
};

/* NULL: not made yet (openstack, aws). */
const struct provider_ops *provider_for(const struct cluster *c);

/* A machine on this computer outlives the run that made it: the program starts itself again as the machine's keeper, so main() asks here before anything
 * else. False: this is no such call. True: it was one, and *status is what main returns. */
bool provider_keeper(int argc, char **argv, int *status);

#endif
