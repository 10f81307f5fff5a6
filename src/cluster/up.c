/* up: what stands between nothing and a cluster, as steps. There is no join order: every node is applied as soon as it answers and the artifacts are
 * here; only what truly waits for the API waits for it. */
#include "cluster/site.h"

/* The user's own manifests are read before anything is touched, and applied when the API has its first objects. */
static void fabric_steps(struct site *s, struct step *preflight, struct step *objects, struct step *dns)
{
        struct step *manifests = run_step(&s->run, "manifests", NULL, step_manifests, s), *fabric = run_step(&s->run, "fabric", NULL, step_fabric, s);
        step_after(preflight, manifests);
        for (size_t i = 0; i < s->count; i++)
                step_after(s->members[i].create, manifests);
        step_after(fabric, objects);
        step_after(dns, fabric);
}

void up_steps(struct site *s)
{
        struct run *r = &s->run;
        struct step *artifacts = run_step(r, "artifacts", NULL, step_artifacts, s);
        struct step *prepare = run_step(r, "prepare", NULL, step_prepare, s);
        struct step *preflight = run_step(r, "preflight", NULL, step_preflight, s);
        struct step *api = run_step(r, "API", NULL, step_api, s);
        struct step *objects = run_step(r, "objects", NULL, step_objects, s);
        struct step *dns = run_step(r, "DNS", NULL, step_dns, s);
        struct step *verify = run_step(r, "verify", NULL, step_verify, s);
        step_after(preflight, artifacts);
        for (size_t i = 0; i < s->count; i++) {
                struct member *m = &s->members[i];
                m->create = run_step(r, "machine", m->node->name, step_create, m);
                step_after(m->create, prepare);
                m->connect = run_step(r, "connect", m->node->name, step_connect, m);
                step_after(m->connect, m->create);
                step_after(preflight, m->connect);
                m->apply = run_step(r, "apply", m->node->name, step_apply, m);
                step_after(m->apply, preflight);
                step_after(verify, m->apply);
                if (m->node->pool->roles & (ROLE_CONTROL_PLANE | ROLE_WORKER)) {
                        m->ready = run_step(r, "Ready", m->node->name, step_node_ready, m);
                        step_after(m->ready, api);
                        step_after(dns, m->ready);
                }
        }
        step_after(api, preflight); /* it is asked for while the nodes are still being applied */
        step_after(objects, api);
        step_after(dns, objects);
        step_after(verify, dns);
        if (s->cluster->network.fabric.kind == FABRIC_CUSTOM)
                fabric_steps(s, preflight, objects, dns);
}

void down_steps(struct site *s)
{
        for (size_t i = 0; i < s->count; i++)
                run_step(&s->run, "machine", s->members[i].node->name, step_destroy, &s->members[i]);
}
