/* reset and down: the chosen nodes (leave_choose) are removed, in the steps of a plan. */
#include "cluster/leave/leave.h"
#include "cluster/up/up.h"

void leave_begin(struct site *s)
{
        leave_build(s);
        plan_begin(s->steps, s);
}

int leave_apply(struct site *s, struct error *err)
{
        leave_begin(s);
        int r = run_execute(&s->run, err);
        return r < 0 ? r : leave_end(s, err);
}
