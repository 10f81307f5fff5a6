/* The plan: what stands between what is and what is wanted, node by node, with what it disrupts.
 * Made from what the agents, etcd and the API say; shown by `plan` and before `up` changes
 * anything. */
#ifndef SLIPWAY_PLAN_H
#define SLIPWAY_PLAN_H

#include "cluster/site/removed.h"

/* What starts again on a node, in the order it is told. */
enum part {
        PART_API = 1 << 0,
        PART_CONTROLLERS = 1 << 1,
        PART_ETCD = 1 << 2,
        PART_KUBELET = 1 << 3,
        PART_RUNTIME = 1 << 4,
        PART_PROXY = 1 << 5,
        PART_FABRIC = 1 << 6,
        PART_BALANCER = 1 << 7,
        PART_VIP = 1 << 8,
};
/* Those whose restart is felt beyond the node: one control-plane node after another. */
#define PARTS_ONE_BY_ONE (PART_API | PART_CONTROLLERS | PART_ETCD | PART_KUBELET | PART_RUNTIME)

/* Steps before the plan. */
void step_preflight(struct step *s); /* arg: site */
void step_observe(struct step *s);   /* arg: site */
void step_compare(struct step *s);   /* arg: member */

/* Decides fates, restarts and joins from what was observed. Fails, with nothing changed, on what
 * must not be done: quorum, skew, lost data. */
int plan_make(struct site *s, struct error *err);
/* Its part that needs no more than the API: before anything is fetched for a version that is
 * refused. */
int plan_check_version(const struct site *s, struct error *err);
bool plan_empty(const struct site *s);
/* For people, and for programs. */
void plan_text(const struct site *s, bool every_file, struct str *out);
json_t *plan_json(const struct site *s);
/* Whether a plan that was saved as JSON is the one that was made now; the sentence says what is not
 * as it was. */
int plan_compare(const struct site *s, const json_t *saved, struct error *err);
/* "restarts the API server and the kubelet"; "" when nothing does. */
void plan_restarts(unsigned parts, struct str *out);
const char *fate_name(enum fate f);
/* Which part a changed entry starts again: 0 when none. */
unsigned plan_part(const struct change *c);

/* The Node is of this machine, and not of one that had its name before. */
bool member_is(const struct member *m, const json_t *object);
/* The version a node's kubelet runs now ("1.36.1"), or NULL. */
const char *member_version(const struct member *m);
/* Its kubelet changes its version in this run. */
bool upgrade_member(const struct member *m);

#endif
