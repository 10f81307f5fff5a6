/* What joining, promotion and leaving have in common. */
#ifndef SLIPWAY_ETCD_MEMBER_H
#define SLIPWAY_ETCD_MEMBER_H

#include <event2/util.h>

#include "cluster/etcd.h"

#define ETCD_ASK_SECONDS 20

/* A voter that can be asked and stays, other than `m` itself; by the site's peers. NULL: there is none. */
struct member *etcd_voter(const struct member *m);
/* Ends the step; why NULL: nobody could be asked. */
void etcd_member_fail(struct step *s, const char *what, const char *why);
void etcd_peers_read(struct site *s, const json_t *answer);
/* etcd changes its members only when all that vote have been together for five seconds: right after one came it says no, and means not yet. */
bool etcd_not_yet(const char *trouble);
/* fn(m) in a second; m->user is the step that waits. */
void etcd_later(struct member *m, const char *why, void (*fn)(evutil_socket_t fd, short what, void *arg));

#endif
