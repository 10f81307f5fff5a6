/* Observe, plan, apply: needs no terminal. */
#ifndef SLIPWAY_UP_H
#define SLIPWAY_UP_H

#include "cluster/plan/plan.h"
#include "cluster/plan/plan_steps.h"

/* Observes everything and makes the plan (s->steps, plan.h) without changing anything. After
 * approval, up_apply carries out exactly that plan. */
int up_observe(struct site *s, struct error *err);
int up_apply(struct site *s, struct error *err);
/* Who was chosen (cluster/leave/leave.h) leaves. Before that, when it is the whole cluster: looks
 * what it has outside itself (s->found.outside), and changes nothing. */
int leave_observe(struct site *s, struct error *err);
int leave_apply(struct site *s, struct error *err);

/* ---- shared by the files of this folder ---- */
void step_plan(struct step *s); /* arg: site */
/* After plan_make: builds s->steps. */
void plan_build(struct site *s);
/* Turns the plan's steps into steps of the run. */
void plan_begin(const struct plan *p, struct site *s);
/* Starts the steps of leave_apply. */
void leave_begin(struct site *s);

#endif
