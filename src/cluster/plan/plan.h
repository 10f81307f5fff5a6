/* The plan: the difference between observed and wanted state, node by node, with what it
 * disrupts. Made from answers of the agents, etcd and the API; shown by `plan`, and by `up`
 * before it changes anything. */
#ifndef SLIPWAY_PLAN_H
#define SLIPWAY_PLAN_H

#include "cluster/site/removed.h"

/* What restarts on a node, in the order of its output. */
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
/* Restarts that affect other nodes: done on one control-plane node after another. */
#define PARTS_ONE_BY_ONE (PART_API | PART_CONTROLLERS | PART_ETCD | PART_KUBELET | PART_RUNTIME)

/* Steps before the plan. */
void step_preflight(struct step *s); /* arg: site */
/* Of a machine that was made anew; arg: member. */
void step_preflight_one(struct step *s);
void step_observe(struct step *s); /* arg: site */
void step_compare(struct step *s); /* arg: member */

/* Decides fates, restarts and joins from what was observed. Refuses, with nothing changed, what
 * must not be done: quorum, skew, lost data. */
int plan_make(struct site *s, struct error *err);
/* The check that needs only the API and the record, so that nothing is fetched for a version that
 * is refused. */
int plan_check_version(const struct site *s, struct error *err);
bool plan_empty(const struct site *s);
/* As text and as JSON. */
void plan_text(const struct site *s, bool every_file, struct str *out);
json_t *plan_json(const struct site *s);
/* Whether a plan saved as JSON is equal to the current one; the error says what differs. */
int plan_compare(const struct site *s, const json_t *saved, struct error *err);
/* "restarts the API server and the kubelet"; "" if nothing restarts. */
void plan_restarts(unsigned parts, struct str *out);
const char *fate_name(enum fate f);
/* The part that a changed entry restarts; 0: none. */
unsigned plan_part(const struct change *c);

/* The Node belongs to this machine, not to an earlier one with the same name. */
bool member_is(const struct member *m, const json_t *object);
/* The version of the running kubelet ("1.36.1"), or NULL. */
const char *member_version(const struct member *m);
/* This run changes the version of its kubelet. */
bool upgrade_member(const struct member *m);

#endif
