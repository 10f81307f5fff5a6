/* The plan: what stands between what is and what is wanted, node by node, with what it disrupts. Made from what the agents, etcd and the API say; shown by `plan`
 * and before `up` changes anything. */
#ifndef SLIPWAY_PLAN_H
#define SLIPWAY_PLAN_H

#include "cluster/site.h"

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

/* Decides fates, restarts and joins from what was observed. Fails, with nothing changed, on what must not be done: quorum, skew, lost data. */
int plan_make(struct site *s, struct error *err);
/* Its part that needs no more than the API: before anything is fetched for a version that is refused. */
int plan_check_version(const struct site *s, struct error *err);
bool plan_empty(const struct site *s);
/* For people, and for programs. */
void plan_text(const struct site *s, bool every_file, struct str *out);
json_t *plan_json(const struct site *s);
/* "restarts the API server and the kubelet"; "" when nothing does. */
void plan_restarts(unsigned parts, struct str *out);
const char *fate_name(enum fate f);
/* Which part a changed entry starts again: 0 when none. */
unsigned plan_part(const struct change *c);

/* A node has etcd's data, by its agent's word. */
bool member_has_etcd(const struct member *m);
/* The Node is of this machine, and not of one that had its name before. */
bool member_is(const struct member *m, const json_t *object);
/* The version a node's kubelet runs now ("1.36.3"), or NULL. */
const char *member_version(const struct member *m);
/* Whether the cluster has ever had an API: a blank etcd beside that is a loss, not a beginning. */
bool site_born(const struct site *s);
/* It has one. Also recorded: where the control plane and etcd are, for a file that names others next time. `leaving`: those who are to leave are still there. */
void site_bear(struct site *s, bool leaving);
void site_unbear(struct site *s);
/* Reads that record: s->former. */
void former_read(struct site *s);
/* And makes steps before `observe` that see whether they answer. */
void former_steps(struct site *s, struct step *observe);
struct member *former_find(const struct site *s, const char *name);
/* A node as far as it can be known without the file. */
struct member member_former(struct site *s, const char *name, const char *address, unsigned roles);

#endif
