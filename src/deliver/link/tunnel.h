/* A tunnel to one TCP port of a node through ssh, for nodes behind a jump host. It is ssh's own
 * forwarding from a unix socket, so that no other user of this computer has access and no port
 * is used. ssh is restarted when it ends; meanwhile the socket refuses connections, and clients
 * use another server. */
#ifndef SLIPWAY_TUNNEL_H
#define SLIPWAY_TUNNEL_H

#include "deliver/link/link.h"

struct tunnel;

/* Starts it; `socket` appears when it is open. `to` is host:port as seen from the node (an IPv6
 * address in brackets). The target may be freed after the call. */
struct tunnel *tunnel_open(struct event_base *base, const struct link_target *target,
        const char *to, const char *socket);
/* Why it is not open, as a sentence, or NULL. */
const char *tunnel_trouble(const struct tunnel *t);
void tunnel_free(struct tunnel *t); /* t may be NULL */

/* Whether ssh reaches the target through another host: the bastion, or one in the user's own
 * configuration (from `ssh -G`, which does not connect). */
bool tunnel_wanted(const struct link_target *target);

#endif
