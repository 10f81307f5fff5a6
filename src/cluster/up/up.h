/* Observe, plan, apply: needs no terminal. */
#ifndef SLIPWAY_UP_H
#define SLIPWAY_UP_H

#include "cluster/plan/plan.h"
#include "cluster/plan/plan_steps.h"

/* Looks at everything and makes the plan (s->steps, plan.h); nothing is changed. Then whoever is to
 * approve it does, and up_apply does it: exactly that. */
int up_observe(struct site *s, struct error *err);
int up_apply(struct site *s, struct error *err);
/* Who was chosen (cluster/leave/leave.h) leaves. Before that, when it is the whole cluster: looks
 * what it has outside itself (s->found.outside), and changes nothing. */
int leave_observe(struct site *s, struct error *err);
int leave_apply(struct site *s, struct error *err);

/* ---- between the files ---- */
void step_plan(struct step *s); /* arg: site */
/* After plan_make: s->steps. */
void plan_build(struct site *s);
/* Makes the run's steps of it. */
void plan_begin(const struct plan *p, struct site *s);
/* The steps of leave_apply. */
void leave_begin(struct site *s);

#endif
