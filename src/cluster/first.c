/* The first start of a control plane of several: one API server begins, the others follow when it answers. Those that begin together on an empty etcd write
 * the same hundreds of objects against each other, and nobody needs the second before the first is ready: every kubelet asks whichever there is. Where the
 * first does not come, the others do not wait for it for long. */
#include <event2/event.h>

#include "cluster/roll.h"

enum { LOOK_MS = 100, PATIENCE_MS = 20000 };

static struct member *first_control(const struct site *s)
{
        for (size_t i = 0; i < s->count; i++)
                if (s->members[i].node->pool->roles & ROLE_CONTROL_PLANE)
                        return &s->members[i];
        return NULL;
}

bool follows_first(const struct member *m)
{
        return !m->site->live && m->fate != FATE_KEEP && m->node->pool->roles & ROLE_CONTROL_PLANE && m != first_control(m->site);
}

/* Everything but the control plane's own pods: etcd too, which the first needs a majority of. */
void step_apply_begin(struct step *s)
{
        static const char pods[] = "/etc/kubernetes/manifests/kube-";
        struct member *m = s->arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (member_render(m, &err) < 0) {
                step_done(s, &err);
                return;
        }
        struct nodespec *part = arena_new(m->site->arena, struct nodespec);
        *part = m->spec;
        part->entries = arena_array(m->site->arena, struct spec_entry, m->spec.count + 1);
        part->count = 0;
        for (size_t i = 0; i < m->spec.count; i++)
                if (!m->spec.entries[i].path || !has_prefix(m->spec.entries[i].path, pods))
                        part->entries[part->count++] = m->spec.entries[i];
        if (member_cut(m, s))
                return;
        m->user = s;
        link_apply(m->link, part, m->site->items, m->site->item_count, 0);
}

static void look(struct member *m);

static void on_timer(evutil_socket_t fd, short what, void *arg) { look(arg); }

static void look(struct member *m)
{
        struct step *s = m->user;
        if (!s || s->state != STEP_RUNNING) /* its link is gone */
                return;
        const struct member *first = first_control(m->site);
        bool answers = m->site->api && m->site->api->state == STEP_DONE, fails = first->apply && first->apply->state == STEP_FAILED;
        if (answers || fails || run_now(&m->site->run) >= m->well_by) {
                if (m->timer)
                        event_free(m->timer);
                m->timer = NULL;
                m->user = NULL;
                m->well_by = 0;
                step_apply(s);
                return;
        }
        step_doing(s, -1, "waiting for the API server of %s", first->node->name);
        if (!m->timer)
                m->timer = evtimer_new(m->site->base, on_timer, m);
        event_add(m->timer, &(struct timeval){ .tv_usec = LOOK_MS * 1000 });
}

void step_follow(struct step *s)
{
        struct member *m = s->arg;
        m->user = s;
        m->well_by = run_now(&m->site->run) + PATIENCE_MS;
        look(m);
}
