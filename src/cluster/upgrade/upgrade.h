/* From one version of Kubernetes to another: what `up` does in addition if the version in the file
 * is not the running one.
 *
 *   observe   refuses (unless forced) if clients use deprecated APIs that the new version lacks
 *   before    sends the new programs and images to every node while the old version runs, takes a
 *             snapshot of etcd, and writes previous.json
 *   then      changes control-plane nodes one by one and workers a few at a time, as always; a node
 *             that does not become healthy is returned to the old version automatically
 *
 * STATE/NAME/previous.json has the previous version, the snapshot taken then, and the preferred
 * version of every API group at that time. */
#ifndef SLIPWAY_UPGRADE_H
#define SLIPWAY_UPGRADE_H

#include "cluster/plan/plan.h"
#include "cluster/plan/plan_steps.h"

/* The version that most of the cluster still runs (of the oldest node, as the API or the record has
 * it, or of the API) if it is not the wanted one; otherwise NULL. Once the plan is made. */
const char *upgrade_from(const struct site *s);

/* arg: site; before the plan, if the minor version changes */
void step_deprecated(struct step *s);
/* The steps before the first node changes; returns the one that all applies wait for. */
struct plan_step *upgrade_steps(struct site *s, struct plan *p);
/* arg: site, also of the next two; of step_stage: member */
void step_upgrade_snapshot(struct step *s);
void step_remember(struct step *s);
void step_staged(struct step *s);
void step_stage(struct step *s);

/* Sends to each node that changes what it will need, while the old version runs; `after` waits
 * for these steps. */
void stage_steps(struct site *s, struct plan *p, struct plan_step *after);

/* Reads previous.json; -ENOENT if there is none. */
int upgrade_previous(
        struct site *s, const char **version, const char **snapshot, struct error *err);
/* API groups whose preferred version has changed since before the upgrade. Blocks. */
int upgrade_groups_changed(struct site *s, struct str *out, struct error *err);

#endif
