#include "cluster/plan/fabric_change.h"
#include "addon/service.h"
#include "config/fabric.h"

/* What the nodes of a fabric have and those of others do not: removed only if the fabric changes.
 */
static bool fabric_mark(const struct change *c)
{
        static const struct {
                enum spec_kind kind;
                const char *name;
        } marks[] = { { SPEC_UNIT, "flanneld.service" }, { SPEC_UNIT, "calico-node.service" },
                { SPEC_FILE, "/etc/kube-flannel/cni-conf.json" } };
        for (size_t i = 0; c->state == STATE_REMOVED && i < ARRAY_SIZE(marks); i++)
                if (c->kind == marks[i].kind && streq(c->name, marks[i].name))
                        return true;
        return false;
}

/* The release of a fabric's chart that would be uninstalled. */
static const struct service *fabric_release(const struct site *s)
{
        const struct services_found *f = s->found.services;
        for (size_t i = 0; f && i < f->n; i++)
                for (size_t k = 0; fabric_names[k]; k++)
                        if (f->v[i].kind == SERVICE_CHART && f->v[i].action == SERVICE_REMOVE &&
                                fabric_row((enum fabric_kind)k)->chart &&
                                streq(f->v[i].ns, "kube-system") &&
                                streq(f->v[i].name, fabric_names[k]))
                                return &f->v[i];
        return NULL;
}

static int fabric_refuse(const struct site *s, const char *who, struct error *err)
{
        error_set(err, EBUSY, EXIT_PREFLIGHT,
                "network.fabric is now %s, but the pods of %s are connected by another pod network",
                fabric_names[s->cluster->network.fabric.kind], who);
        return error_hint(err,
                "slipway does not change the pod network of a running cluster: set network.fabric back, or create a new cluster and move the workloads; nothing was changed");
}

int fabric_change_check(const struct site *s, struct error *err)
{
        if (fabric_release(s))
                return fabric_refuse(s, "the cluster", err);
        for (size_t i = 0; i < s->count; i++) {
                const struct member *m = &s->members[i];
                if (!(m->node->pool->roles & (ROLE_CONTROL_PLANE | ROLE_WORKER)))
                        continue;
                for (size_t k = 0; k < m->plan.change_count; k++)
                        if (fabric_mark(&m->plan.changes[k]))
                                return fabric_refuse(s, m->node->name, err);
        }
        return 0;
}
