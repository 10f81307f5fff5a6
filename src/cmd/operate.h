/* Between the verbs that change something: the run of their steps, journalled and shown, with the plan before anything changes. */
#ifndef SLIPWAY_OPERATE_H
#define SLIPWAY_OPERATE_H

#include "cluster/site.h"
#include "cmd/cmd.h"
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
/* Reads a line: is it exactly this? */
bool operate_answer(const char *wanted);
/* The journal is open and the run is shown; now add its steps. */
int operate_begin(struct operation *op, const struct options *o, struct site *s, struct error *err);
/* Runs them, and closes what was opened. */
int operate_end(struct operation *op, struct error *err);
/* Both, around the steps of an operation. */
int cmd_operate(const struct options *o, struct site *s, void (*steps)(struct site *), struct error *err);

/* Begins a rotation of `set` (1 << enum rotate_id) and goes through its phases. */
int cmd_rotate(const struct options *o, const char *verb, unsigned set, struct error *err);
/* Goes on with what is under way, if anything is; `rolled`: the phase it is in was rolled out just now. */
int cmd_rotation(const struct options *o, const char *verb, bool rolled, struct error *err);
/* What `up` does, for a Cluster that was loaded already. */
struct up_call {
        const char *verb;
        int (*accepted)(struct site *s, struct error *err); /* the plan was approved, or is empty; before the first change. NULL: nothing */
        void *arg;
        bool force, allow_down, only_stage; /* as in struct site */
};
int cmd_up_cluster(const struct options *o, const struct up_call *call, struct arena *a, struct cluster *c, struct error *err);

/* `down` where the provider makes no machines: reset of all hosts. RESET_NOT_HOSTS: it makes them. */
#define RESET_NOT_HOSTS 1000
int cmd_reset_hosts(const struct options *o, struct error *err);

#endif
