/* Resetting a host: what the agent is told for it. */
#include "base/paths.h"
#include "cluster/leave/leave.h"
#include "cluster/site/op.h"

/* `of`: the program that uses the directory, so the agent knows which parts of it
 * are the cluster's. */
static struct spec_entry *reset_dir_add(
        struct nodespec *spec, const char *path, const char *of, unsigned flags)
{
        char *clean CLEANUP(free_p) = path_clean(path);
        struct spec_entry *e = nodespec_find(spec, SPEC_DIR, clean)
                                       ? NULL
                                       : nodespec_add(spec, SPEC_DIR, CLASS_MUTABLE);
        if (!e)
                return NULL;
        e->path = arena_strdup(&spec->arena, clean);
        e->name = of;
        e->flags = flags;
        return e;
}

static void reset_audit_add(struct nodespec *spec, const char *path)
{
        char *clean CLEANUP(free_p) = path_clean(path), *slash = strrchr(clean, '/');
        if (!slash || slash == clean)
                return;
        *slash = 0;
        struct spec_entry *e = reset_dir_add(spec, clean, "audit", SPEC_ONCE);
        if (e)
                e->target = arena_strdup(&spec->arena, slash + 1);
}

/* The agent knows what it applied, but not which directories the Cluster gave to the programs. */
void step_reset_host(struct step *s)
{
        struct member *m = s->arg;
        const struct cluster *c = m->site->cluster;
        if (member_cut(m, s))
                return;
        member_forget_spec(m);
        m->plan.spec = (struct nodespec){ .node = m->node };
        m->plan.rendered = true;
        if (m->node->pool->roles & ROLE_ETCD)
                reset_dir_add(&m->plan.spec, c->etcd.data_dir, "etcd", 0);
        if (c->runtime.data_dir)
                reset_dir_add(&m->plan.spec, c->runtime.data_dir, "runtime", 0);
        if (c->audit.level != AUDIT_NONE && c->audit.path)
                reset_audit_add(&m->plan.spec, c->audit.path);
        member_apply(m, s, &(struct apply_request){ .mode = APPLY_RESET });
}
