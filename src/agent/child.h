/* Shared by session.c and child.c: the children's part of session_turn. */
#ifndef SLIPWAY_CHILD_H
#define SLIPWAY_CHILD_H

#include <poll.h>

#include "agent/session.h"

#define CHILDREN_MAX 64

/* Fills in the descriptors to poll; returns how many. */
size_t children_poll(struct session *s, struct pollfd *p);
void children_turn(struct session *s, const struct pollfd *p, size_t n);
void children_reap(struct session *s);
/* Ends all children, with SIGTERM and then SIGKILL, and waits for those with `keep`. */
void children_end(struct session *s);

#endif
