/* Between the verbs that change something: the run of their steps, journalled and shown, with the
 * plan before anything changes. */
#ifndef SLIPWAY_OPERATE_H
#define SLIPWAY_OPERATE_H

#include "cluster/plan/approval.h"
#include "cluster/site/site.h"
#include "cmd/cmd.h"
#include "config/edited.h"
#include "ui/ui.h"

struct event_base;

struct operation {
        const struct options *options;
        struct site *site;
        struct journal *journal;
        struct ui *ui;
};

/* For CLEANUP. */
void base_free(struct event_base **b);
const char *operate_state(const struct options *o);
/* --yes, or whether a person is at the terminal. */
enum approval operate_approval(const struct options *o);
/* Reads a line: is it exactly this? */
bool operate_answer(const char *wanted);
/* The journal is open and the run is shown; now add its steps. */
int operate_begin(struct operation *op, const struct options *o, struct site *s, struct error *err);
/* Runs them, and closes what was opened. */
int operate_end(struct operation *op, struct error *err);
/* Closes it; `r`: how it ended. */
int operate_close(struct operation *op, int r, struct error *err);
/* Begin, the plan is made, shown and approved; the edited file is written; exactly that plan is
 * done; close. */
int cmd_plan_and_apply(
        const struct options *o, struct site *s, const struct edit *edit, struct error *err);
/* Begin, an operation, close. */
int cmd_operate(const struct options *o, struct site *s,
        int (*apply)(struct site *s, struct error *err), struct error *err);

/* Begins a rotation of `set` (1 << enum rotate_id) and goes through its phases. */
int cmd_rotate(const struct options *o, const char *verb, unsigned set, struct error *err);
/* Goes on with what is under way, if anything is; `rolled`: the phase it is in was rolled out just
 * now. */
int cmd_rotation(const struct options *o, const char *verb, bool rolled, struct error *err);
/* What `up` does, for a Cluster that was loaded already. */
struct up_call {
        const char *verb;
        const struct edit *edit; /* written when the plan was approved or is empty, before the first
                                    change. NULL: nothing is */
        bool force, allow_down, only_stage; /* as in struct site */
};
int cmd_up_cluster(const struct options *o, const struct up_call *call, struct arena *a,
        struct cluster *c, struct error *err);

#endif
