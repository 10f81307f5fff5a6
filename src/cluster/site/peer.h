/* Members of etcd as etcd lists them: rows that a site keeps, and the node that each belongs to. */
#ifndef SLIPWAY_PEER_H
#define SLIPWAY_PEER_H

#include "cluster/site/site.h"

struct etcd_peer { /* a row of `member list` */
        uint64_t id;
        const char *name;          /* "" until it has started */
        const char *peer, *client; /* the first URL of each, "" when there is none */
        bool learner;
};
/* The row of a node: by its name, else by its peer URL (before it has started it has no name).
 * NULL: it is no member. */
const struct etcd_peer *etcd_peer_of(
        const struct etcd_peer *peers, size_t n, const struct node *node);
/* https://ADDRESS:2380 */
char *etcd_peer_url(const struct node *n); /* malloc'd */

#endif
