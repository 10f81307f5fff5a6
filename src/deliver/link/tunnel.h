/* A way to one TCP port of a node through ssh, for what is behind a jump host: ssh's own forwarding
 * from a unix socket, so that nobody else on this computer gets in and no port is taken. ssh is
 * started again when it ends; while it is not there the socket refuses, and whoever connects tries
 * elsewhere. */
#ifndef SLIPWAY_TUNNEL_H
#define SLIPWAY_TUNNEL_H

#include "deliver/link/link.h"

struct tunnel;

/* Begins; `socket` appears when it is open. `to` is host:port as the node sees it (an IPv6 address
 * in brackets). The target may go after the call. */
struct tunnel *tunnel_open(struct event_base *base, const struct link_target *target,
        const char *to, const char *socket);
/* Why it is not open, as a sentence, or NULL. */
const char *tunnel_trouble(const struct tunnel *t);
void tunnel_free(struct tunnel *t); /* NULL is fine */

/* Whether ssh goes to the target through another host: the bastion, or what the user's own
 * configuration says (asked of `ssh -G`, which connects nowhere). */
bool tunnel_wanted(const struct link_target *target);

#endif
