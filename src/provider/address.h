/* Addresses for machines that do not exist yet. They are chosen here, so that the plan and every
 * file can name them before the first machine is made. */
#ifndef SLIPWAY_PROVIDER_ADDRESS_H
#define SLIPWAY_PROVIDER_ADDRESS_H

#include "config/cluster.h"

#define ADDRESS_FIRST 10 /* the first ones of a network belong to routers and name servers */

struct address_pool {
        struct arena *arena;
        struct cidr net;
        struct ip from, to; /* the range that may be used; family 0: the whole network */
        struct ip *taken;   /* sorted */
        size_t taken_count, taken_cap;
        uint64_t next;
};

void address_taken(struct address_pool *p, const struct ip *ip);
/* The first free one, always the same for the same calls; it is taken then. False: none is
 * left. */
bool address_take(struct address_pool *p, struct ip *out);
/* Sets a node's address, as text in the cluster's arena, when it is another one. */
void node_set_address(struct cluster *c, struct node *n, const struct ip *ip);

#endif
