#include "cluster/plan/fabric_change.h"
#include "config/fabric.h"

/* What the nodes of a fabric have and those of others do not: it is removed only if the fabric
 * changes. */
static bool fabric_mark(const struct change *c)
{
        return c->kind == SPEC_UNIT && c->state == STATE_REMOVED &&
               streq(c->name, "flanneld.service");
}

int fabric_change_check(const struct site *s, struct error *err)
{
        for (size_t i = 0; i < s->count; i++) {
                const struct member *m = &s->members[i];
                if (!(m->node->pool->roles & (ROLE_CONTROL_PLANE | ROLE_WORKER)))
                        continue;
                for (size_t k = 0; k < m->plan.change_count; k++) {
                        if (!fabric_mark(&m->plan.changes[k]))
                                continue;
                        error_set(err, EBUSY, EXIT_PREFLIGHT,
                                "network.fabric is now %s, but flannel connects the pods of %s",
                                fabric_names[s->cluster->network.fabric.kind], m->node->name);
                        return error_hint(err,
                                "slipway does not change the pod network of a running cluster: set network.fabric back to flannel, or create a new cluster and move the workloads; nothing was changed");
                }
        }
        return 0;
}
