/* From one version of Kubernetes to another: what `up` does besides when the version in the file is
 * not the one that runs.
 *
 *   look     deprecated APIs that are asked for and that the new version no longer has: refused
 * (unless forced) before   the new programs and images are sent to every node while the old version
 * runs; etcd's snapshot is taken; what to return to is written down then     control-plane nodes
 * one by one, workers a few at a time, as any change; a node that does not become healthy goes back
 * to the old version by itself
 *
 * STATE/NAME/previous.json: the version before, the snapshot taken then, and the preferred version
 * of every API group of that time. */
#ifndef SLIPWAY_UPGRADE_H
#define SLIPWAY_UPGRADE_H

#include "cluster/plan/plan.h"
#include "cluster/plan/plan_steps.h"

/* The version that most of the cluster still runs (the oldest kubelet's, or the API's), when that
 * is not the wanted one; else NULL. */
const char *upgrade_from(const struct site *s);

void step_deprecated(
        struct step *s); /* arg: site; before the plan, when the minor version changes */
/* The steps before the first node changes; returns the one that all applies wait for. */
struct plan_step *upgrade_steps(struct site *s, struct plan *p);
void step_upgrade_snapshot(
        struct step *s); /* arg: site, as of the next three; step_stage: member */
void step_remember(struct step *s);
void step_staged(struct step *s);
void step_stage(struct step *s);

/* Each node that changes gets what it will need, while the old version runs; `after` waits for
 * them. */
void stage_steps(struct site *s, struct plan *p, struct plan_step *after);

/* previous.json: -ENOENT when there is none. */
int upgrade_previous(
        struct site *s, const char **version, const char **snapshot, struct error *err);
/* API groups whose preferred version is another one than before the upgrade; foreground. */
int upgrade_groups_changed(struct site *s, struct str *out, struct error *err);

#endif
