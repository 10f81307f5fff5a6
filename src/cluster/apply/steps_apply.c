/* The step "apply": applies the NodeSpec to a node. */
#include "cluster/apply/back.h"
#include "cluster/apply/roll.h"
#include "cluster/site/op.h"
#include "cluster/site/proven.h"

static void on_node_applied(struct member *m, unsigned failed, struct error *cut, void *arg)
{
        if (failed && upgrade_member(m))
                upgrade_back(m, arg, "its files to be applied");
        else
                member_applied(m, arg, failed, cut);
}

void step_apply(struct step *s)
{
        struct member *m = s->arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (m->run.missing) {
                step_unchanged(s);
                return;
        }
        if (member_wants(m, &err) < 0) {
                step_done(s, &err);
                return;
        }
        if (member_reachable(m))
                member_record(m);
        /* without a name: the agent's record is completed */
        if (streq(m->plan.wanted, m->seen.applied) && !json_array_size(m->seen.drift) &&
                json_object_get(m->seen.said, "node")) {
                member_drop_spec(m);
                step_unchanged(s);
        } else {
                if (upgrade_member(m))
                        proven_begin(m, m->seen.before);
                member_apply(m, s,
                        &(struct apply_request){ .items = member_items(m),
                                .count = m->site->item_count,
                                .make = member_render,
                                .fn = on_node_applied,
                                .arg = s });
        }
}
