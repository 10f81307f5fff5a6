/* A bastion: the jump host that the machines of a cloud are reached through. The file names one
 * that exists, or lets the provider make one. That one is a machine like those of nodes, in a pool
 * without roles: its user-data only creates the login, and it is no node. Its host key is in the
 * cluster's own known_hosts, beside those of the nodes. */
#ifndef SLIPWAY_PROVIDER_BASTION_H
#define SLIPWAY_PROVIDER_BASTION_H

#include "provider/provider.h"

struct bastion_machine {
        bool wanted; /* the file wants one that is made */
        struct pool pool;
        struct node node;
        struct machine machine;
};

/* `name` must stay valid. Known also if the file wants none: then it goes. */
void bastion_begin(struct bastion_machine *b, const struct provider_run *run,
        const struct bastion *file, const char *name);
const char *bastion_user(const struct bastion *file, const char *user);
/* How the machine `t` leads to is reached: through the bastion, or directly. As long as one that is
 * made does not run, through a name that leads nowhere: a private address may be somebody else's
 * where slipway runs. With the first node it also sets cluster.bastion. */
void bastion_way(const struct provider_run *run, const struct bastion_machine *b,
        const struct bastion *file, struct link_target *t);

#endif
