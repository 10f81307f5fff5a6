/* reset and down: the chosen nodes (leave_choose) are removed, in the steps of a plan. */
#include "cluster/leave/leave.h"
#include "cluster/services/cleanup.h"
#include "cluster/up/up.h"

void leave_begin(struct site *s)
{
        leave_build(s);
        plan_begin(s->steps, s);
}

int leave_observe(struct site *s, struct error *err)
{
        struct step *look = leave_all(s) ? cleanup_observe_step(s) : NULL;
        return look ? run_until(&s->run, look, err) : 0;
}

int leave_apply(struct site *s, struct error *err)
{
        leave_begin(s);
        int r = run_execute(&s->run, err);
        return r < 0 ? r : leave_end(s, err);
}
