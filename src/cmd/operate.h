/* Shared by the verbs that change something: the plan is shown before anything changes, then its
 * steps run, with a journal and progress. */
#ifndef SLIPWAY_OPERATE_H
#define SLIPWAY_OPERATE_H

#include "cluster/plan/approval.h"
#include "cluster/site/site.h"
#include "cmd/cmd.h"
#include "config/edited.h"
#include "ui/ui.h"

struct event_base;
struct reboot_request;

struct operation {
        const struct options *options;
        struct site *site;
        struct journal *journal;
        struct ui *ui;
};

/* For CLEANUP. */
void base_free(struct event_base **b);
const char *operate_state(const struct options *o);
/* From --yes, or from whether standard input is a terminal. */
enum approval operate_approval(const struct options *o);
/* Reads a line and compares it with `wanted`. */
bool operate_answer(const char *wanted);
/* Opens the journal and the display; then the steps are added. */
int operate_begin(struct operation *op, const struct options *o, struct site *s, struct error *err);
/* Runs the steps and closes everything. */
int operate_end(struct operation *op, struct error *err);
/* Closes everything; `r` is the result. */
int operate_close(struct operation *op, int r, struct error *err);
/* Begins, makes the plan, shows it and has it approved; writes the edited file; carries out exactly
 * that plan; closes. */
int cmd_plan_and_apply(
        const struct options *o, struct site *s, const struct edit *edit, struct error *err);
/* Begins, carries out an operation, closes. */
int cmd_operate(const struct options *o, struct site *s,
        int (*apply)(struct site *s, struct error *err), struct error *err);

/* Starts a rotation of `set` (1 << enum rotate_id) and runs its phases. */
int cmd_rotate(const struct options *o, const char *verb, unsigned set, struct error *err);
/* Continues an unfinished rotation, if there is one; `rolled`: its current phase was
 * just rolled out. */
int cmd_rotation(const struct options *o, const char *verb, bool rolled, struct error *err);
/* What `up` does, with a Cluster that is already loaded. */
struct up_call {
        const char *verb;
        /* written after the plan is approved or empty, before the first change; NULL: nothing */
        const struct edit *edit;
        bool force, allow_down, only_stage;  /* as in struct site */
        const struct reboot_request *reboot; /* NULL: none is asked for */
};
int cmd_up_cluster(const struct options *o, const struct up_call *call, struct arena *a,
        struct cluster *c, struct error *err);

#endif
