/* Changes running nodes: one at a time where necessary, with a health check before the next. */
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
void step_cordon(struct step *s); /* cordons and drains; unchanged without an API */
/* Moves the virtual IP to another node before this node's API server stops; unchanged if the
 * address is elsewhere. */
void step_leave_address(struct step *s);
/* Restarts the kubelet and the fabric, which register only when they start. */
void step_register(struct step *s);
/* The script of that step, for other callers; prints the seconds since 1970. */
#define REGISTER_SCRIPT \
        "date +%s && systemctl restart --no-block kubelet.service && { systemctl try-restart --no-block flanneld.service calico-node.service 2>/dev/null || :; }"
/* Reboots the machine and connects to it again. */
void step_reboot(struct step *s);
void step_healthy(struct step *s); /* the restarted parts run as wanted */
void step_uncordon(struct step *s);

/* Cordons the member's node (m->seen.object), evicts its pods and ends the step. Uncordons it if
 * pods cannot be evicted. */
void member_drain(struct member *m, struct step *s);
/* The number of workers that may change at the same time. */
size_t workers_at_once(const struct site *s);

#endif
