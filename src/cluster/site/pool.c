/* The pool of links. A link is opened when a step needs it and stays open while no other link
 * needs its slot (deliver/link/slots.h): a cluster with fewer nodes than slots has one link per
 * node for the whole run. When other links wait for a slot, idle links are closed ("parked") and
 * opened again when needed; steps only notice a delay. There is no deadlock: a link is in use only
 * while a program runs on the node or a spec is applied there, and neither needs another link.
 * op_wait does not keep a link open, and is not notified when it is parked. */
#include <event2/event.h>

#include "cluster/site/op.h"

bool member_reachable(const struct member *m) { return m->run.link || m->run.parked; }

void member_hang_up(struct member *m)
{
        link_free(TAKE(m->run.link));
        m->run.parked = false;
}

/* ---- parking ---- */

/* Control-plane and etcd nodes are few and queried often (etcd, virtual IP, verification), so their
 * links are parked last. */
static bool pool_asked(const struct member *m)
{
        return m->node->pool->roles & (ROLE_CONTROL_PLANE | ROLE_ETCD);
}

static struct member *pool_member(const struct site *s, size_t i)
{
        return i < s->count ? &s->members[i] : s->found.removed[i - s->count];
}

/* The idle link that was used longest ago. Links of control-plane and etcd nodes are taken only if
 * no other link is open, since all others become idle by themselves. */
static struct member *pool_idle(const struct site *s)
{
        struct member *best = NULL;
        bool others = false;
        for (size_t i = 0; i < s->count + s->found.removed_count; i++) {
                struct member *m = pool_member(s, i);
                if (!m->run.link || link_queued(m->run.link))
                        continue;
                others |= !pool_asked(m);
                if (!m->run.pooled || m->run.connecting || m->run.applying ||
                        !link_idle(m->run.link))
                        continue;
                if (!best || pool_asked(best) > pool_asked(m) ||
                        (pool_asked(best) == pool_asked(m) && m->run.used < best->run.used))
                        best = m;
        }
        return best && pool_asked(best) && others ? NULL : best;
}

static void on_pool_time(evutil_socket_t fd, short what, void *arg)
{
        struct site *s = arg;
        for (struct member *m; slots_waiting() && (m = pool_idle(s));) {
                m->run.parked = true;
                link_free(TAKE(m->run.link));
        }
}

/* Called from the loop, after the steps that just ended have started their successors. */
static void on_slot_wanted(void *arg)
{
        struct site *s = arg;
        if (!evtimer_pending(s->pool.timer, NULL))
                event_add(s->pool.timer, &(struct timeval){ 0 });
}

void member_idle(struct member *m)
{
        m->run.used = ++m->site->pool.uses;
        if (slots_waiting())
                on_slot_wanted(m->site);
}

void pool_begin(struct site *s)
{
        const struct provider *p = &s->cluster->provider;
        if (provider_has_hosts(p))
                slots_limit((unsigned)p->ssh.connections, p->ssh.bastion != NULL);
        s->pool.timer = evtimer_new(s->base, on_pool_time, s);
        s->pool.owner = (struct slot_owner){ .wanted = on_slot_wanted, .arg = s };
        slots_owner_add(&s->pool.owner);
}

void pool_end(struct site *s)
{
        if (!s->pool.timer)
                return;
        slots_owner_remove(&s->pool.owner);
        /* links in the queue would still be opened */
        for (size_t i = 0; i < s->count + s->found.removed_count; i++) {
                struct member *m = pool_member(s, i);
                if (m->run.link && link_queued(m->run.link))
                        member_hang_up(m);
        }
        event_free(TAKE(s->pool.timer));
}

/* ---- reopening ---- */

struct link *member_link(struct member *m)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (m->run.parked && member_open(m, &err) < 0)
                return NULL;
        return m->run.link;
}

/* No link could be opened: reported from the loop, like every answer. */
static void on_unheard(evutil_socket_t fd, short what, void *arg)
{
        const struct link_program *p = arg;
        p->fn(NULL, -1, "", "the connection was cut", p->arg);
}

void member_run_program(struct member *m, const struct link_program *p)
{
        struct link *l = member_link(m);
        if (l) {
                link_run_program(l, p);
                return;
        }
        struct link_program *later = arena_new(m->site->arena, struct link_program);
        *later = *p;
        event_base_once(m->site->base, -1, EV_TIMEOUT, on_unheard, later, &(struct timeval){ 0 });
}

void member_run(struct member *m, const char *const *argv, const char *input, size_t max,
        void (*fn)(struct link *l, int status, const char *out, const char *errors, void *arg),
        void *arg)
{
        member_run_program(m, &(struct link_program){ .argv = argv,
                                      .input = input,
                                      .input_len = input ? strlen(input) : 0,
                                      .max = max,
                                      .fn = fn,
                                      .arg = arg });
}
