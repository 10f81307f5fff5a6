/* Which function starts each kind of step in a plan. */
#include <stddef.h>

#include "cluster/apply/fabric.h"
#include "cluster/apply/roll.h"
#include "cluster/etcd/etcd_member.h"
#include "cluster/leave/leave.h"
#include "cluster/plan/chores.h"
#include "cluster/plan/own_images.h"
#include "cluster/plan/outsiders.h"
#include "cluster/services/cleanup.h"
#include "cluster/services/services.h"
#include "cluster/up/up.h"
#include "cluster/upgrade/upgrade.h"

static const struct {
        void (*start)(struct step *s);
        size_t running; /* offset of the run's step in the member; 0: not stored */
        bool artifacts; /* needs programs and images */
} starts[PLAN_KINDS] = {
        [PLAN_PREPARE] = { step_prepare },
        [PLAN_MACHINE] = { step_create, offsetof(struct member, run.create) },
        [PLAN_CONNECT] = { step_connect, offsetof(struct member, run.connect) },
        [PLAN_CHECK] = { step_preflight },
        [PLAN_CHECK_NEW] = { step_preflight_one },
        [PLAN_SNAPSHOT] = { step_upgrade_snapshot },
        [PLAN_REMEMBER] = { step_remember },
        [PLAN_STAGE] = { step_stage, .artifacts = true },
        [PLAN_STAGED] = { step_staged },
        [PLAN_DRAIN] = { step_cordon },
        [PLAN_ADDRESS] = { step_leave_address, .artifacts = true },
        [PLAN_ETCD_JOIN] = { step_etcd_join },
        [PLAN_APPLY] = { step_apply, offsetof(struct member, run.apply), true },
        [PLAN_REGISTER] = { step_register },
        [PLAN_REBOOT] = { step_reboot },
        [PLAN_ETCD_PROMOTE] = { step_etcd_promote },
        [PLAN_HEALTHY] = { step_healthy, offsetof(struct member, run.healthy) },
        [PLAN_UNCORDON] = { step_uncordon },
        [PLAN_IMAGES] = { step_own_images },
        [PLAN_API_OPTIONAL] = { step_api_optional },
        [PLAN_ETCD_QUORUM] = { step_etcd_quorum },
        [PLAN_LEAVE_DRAIN] = { step_leave_drain },
        [PLAN_MEMBERS] = { step_members },
        [PLAN_MEMBERS_BACK] = { step_members_back },
        [PLAN_API_LEAVE] = { step_api_leave },
        [PLAN_ETCD_LEAVE] = { step_etcd_leave },
        [PLAN_DELETE_NODE] = { step_delete_node },
        [PLAN_DESTROY] = { step_destroy },
        [PLAN_RETIRE] = { step_retire },
        [PLAN_RESET] = { step_reset_host },
        [PLAN_GONE] = { step_delete_node },
        [PLAN_UNRECORD] = { step_unrecord },
        [PLAN_API] = { step_api },
        [PLAN_OBJECTS] = { step_objects },
        [PLAN_FABRIC] = { step_fabric },
        [PLAN_READY] = { step_node_ready, offsetof(struct member, run.ready) },
        [PLAN_DNS] = { step_dns },
        [PLAN_CHORES] = { step_chores },
        [PLAN_SHUT_OUT] = { step_shut_out },
        [PLAN_VERIFY] = { step_verify },
        [PLAN_UNINSTALL] = { step_uninstall },
        [PLAN_NAMESPACES] = { step_namespaces },
        [PLAN_CRDS] = { step_crds },
        [PLAN_MANIFESTS] = { step_service_manifests },
        [PLAN_CHART] = { step_chart },
        [PLAN_END_RELEASE] = { step_uninstall },
        [PLAN_POLICIES] = { step_policies },
        [PLAN_BALANCERS] = { step_balancers },
        [PLAN_VOLUMES] = { step_volumes },
};

void plan_begin(const struct plan *p, struct site *s)
{
        for (struct plan_step *one = p->first; one; one = one->next) {
                struct member *m = one->member;
                const char *name = plan_kind_name(one->kind);
                if (one->subject)
                        name = arena_printf(s->arena, "%s %s", name, one->subject);
                one->step =
                        run_step(&s->run, name, m ? m->node->name : NULL, starts[one->kind].start,
                                m          ? (void *)m
                                : one->arg ? one->arg
                                           : (void *)s);
                if (starts[one->kind].artifacts)
                        step_after(one->step, s->artifacts);
                if (m && starts[one->kind].running)
                        *(struct step **)(void *)((char *)m + starts[one->kind].running) =
                                one->step;
        }
        for (struct plan_step *one = p->first; one; one = one->next)
                for (size_t i = 0; i < one->wait_count; i++)
                        step_after(one->step, one->waits[i]->step);
}
