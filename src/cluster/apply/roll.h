/* Changing what lives: a node at a time where that matters, with a look at its health before the
 * next. */
#ifndef SLIPWAY_ROLL_H
#define SLIPWAY_ROLL_H

#include "cluster/plan/plan.h"

/* Steps on the API; arg: site. */
void step_api(struct step *s);
void step_objects(struct step *s);
void step_dns(struct step *s);
void step_verify(struct step *s);

/* Steps of a node; arg: member. */
void step_apply(struct step *s);
void step_node_ready(struct step *s);
void step_cordon(struct step *s); /* no new pods, then none: kept when the API is not there */
/* The virtual address goes to another node before this one's API server stops: kept when it is not
 * here. */
void step_leave_address(struct step *s);
/* The kubelet and the fabric say who they are only when they start: they start again. */
void step_register(struct step *s);
/* The same, for who has another way to run it; prints the seconds since 1970. */
#define REGISTER_SCRIPT \
        "date +%s && systemctl restart --no-block kubelet.service && { systemctl try-restart --no-block flanneld.service 2>/dev/null || :; }"
void step_healthy(struct step *s); /* what was restarted runs again, as it is wanted now */
void step_uncordon(struct step *s);

/* Cordons the member's node (m->object) and moves its pods away; ends the step. One that they will
 * not leave is uncordoned again. */
void member_drain(struct member *m, struct step *s);
/* How many workers may be away at once. */
size_t workers_at_once(const struct site *s);

#endif
