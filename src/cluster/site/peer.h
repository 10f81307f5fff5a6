/* etcd's members as etcd lists them, and the node that each belongs to. */
#ifndef SLIPWAY_PEER_H
#define SLIPWAY_PEER_H

#include "cluster/site/site.h"

struct etcd_peer { /* a row of `member list` */
        uint64_t id;
        const char *name;          /* "" until it has started */
        const char *peer, *client; /* the first URL of each, or "" */
        bool learner;
};
/* The member of a node: by name, or by peer URL if the member has not started yet and so has no
 * name. NULL: the node is not a member. */
const struct etcd_peer *etcd_peer_of(
        const struct etcd_peer *peers, size_t n, const struct node *node);
/* https://ADDRESS:2380 */
char *etcd_peer_url(const struct node *n); /* malloc'd */

#endif
