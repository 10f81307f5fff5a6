/* Which nodes `slipway reboot` reboots, and when that is refused. The step itself is in
 * cluster/apply/reboot.c. */
#ifndef SLIPWAY_REBOOT_H
#define SLIPWAY_REBOOT_H

#include "cluster/plan/plan.h"

/* What was asked for. No names and not `all`: the nodes whose operating system needs a reboot. */
struct reboot_request {
        const struct strings *names;
        bool all;
};

/* Names that the cluster does not have are refused. */
int reboot_ask(struct site *s, const struct reboot_request *request, struct error *err);
/* Why the node's operating system needs a reboot, as its agent reported it; NULL: it does not. */
const char *member_reboot_why(const struct member *m);
/* Which boot of its machine the agent reported; NULL: unknown. */
const char *member_boot(const struct member *m);
/* After the node's fate was decided: plans its reboot if it was asked for. */
void reboot_decide(struct member *m);
/* Refuses reboots in a cluster that differs from its file or that could lose its quorum. */
int reboot_check(const struct site *s, struct error *err);

#endif
