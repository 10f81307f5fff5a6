/* A provider that makes outdated machines anew. What must hold while it does is looked at when each
 * of them goes. */
#include "base/base.h"

#include <setjmp.h>
#include <cmocka.h>

#include "fake.h"

struct making {
        struct machine *m;
        void (*fn)(struct machine *m, struct error *err, void *arg);
        void *arg;
        bool retires;
};

static struct making makings[FAKE_NODES];

static size_t absent(size_t from, size_t to)
{
        size_t n = 0;
        for (size_t i = from; i < to; i++)
                n += world.nodes[i].away || world.nodes[i].fresh;
        return n;
}

/* A machine goes: its node left first, and enough others are there. */
static void look_at_retired(size_t i)
{
        size_t voters = 0;
        for (size_t k = 0; k < world.peer_count; k++) {
                voters += !world.peers[k].learner;
                if (i < 3 && streq(world.peers[k].name, fake_names[i]))
                        world.wrong = "a machine went before its etcd member left";
        }
        if (i < 3 && voters < 2)
                world.wrong = "a machine went while etcd had fewer than two other voters";
        if (i < 3 ? absent(0, 3) : absent(3, FAKE_NODES) > 1)
                world.wrong = "a machine went while too many others were not back";
        if (i >= 3 && absent(0, 3))
                world.wrong = "a worker went before the control plane was back";
        if (!world.nodes[i].gone)
                world.wrong = "a machine went before its Node was deleted";
        if (i < 3 && world.balanced & 1U << i)
                world.wrong = "a machine went before the balancer was told";
        if (!world.nodes[i].moved)
                world.wrong = "a machine went before its pods did";
}

static void machine_done(struct fake_node *n, const struct making *w)
{
        size_t i = (size_t)(n - world.nodes);
        if (w->retires) {
                look_at_retired(i);
                fake_cut(i);
                n->away = true;
        } else {
                n->away = n->old = false;
                n->fresh = true;
                n->made++;
        }
        w->m->state = w->retires ? MACHINE_ABSENT : MACHINE_RUNNING;
}

static void on_machine(void *self, enum how how)
{
        struct making *w = self;
        struct fake_node *n = &world.nodes[w - makings];
        struct error err CLEANUP(error_release) = { 0 };
        fake_forget(TAKE(n->making));
        if (how == HOW_PLAIN || how == HOW_LOST)
                machine_done(n, w);
        if (how != HOW_PLAIN)
                error_set(&err, EIO, EXIT_STEP, "the cloud refuses, or its answer was lost");
        w->fn(w->m, err.code ? &err : NULL, w->arg);
}

static void machine_begin(struct machine *m, bool retires,
        void (*fn)(struct machine *m, struct error *err, void *arg), void *arg)
{
        size_t i = fake_index(m->node->name);
        assert_null(world.nodes[i].making);
        makings[i] = (struct making){ m, fn, arg, retires };
        world.nodes[i].making = fake_post(3000, on_machine, &makings[i]);
}

static void retire(struct provider_run *run, struct machine *m,
        void (*fn)(struct machine *m, struct error *err, void *arg), void *arg)
{
        machine_begin(m, true, fn, arg);
}

static void create(struct provider_run *run, struct machine *m,
        void (*fn)(struct machine *m, struct error *err, void *arg), void *arg)
{
        machine_begin(m, false, fn, arg);
}

static void members(struct provider_run *run, const struct node *const *nodes, size_t n,
        void (*fn)(struct error *err, void *arg), void *arg)
{
        world.balanced = 0;
        for (size_t i = 0; i < n; i++)
                world.balanced |= 1U << fake_index(nodes[i]->name);
        fn(NULL, arg);
}

void fake_machines(struct site *s, struct provider_ops *ops)
{
        ops->makes_machines = true;
        ops->retire = retire;
        ops->create = create;
        ops->members = members;
        world.balanced = 7;
        for (size_t i = 0; i < FAKE_NODES; i++) {
                s->machines[i].outdated = world.nodes[i].old ? "flavor b instead of a" : NULL;
                s->machines[i].state = world.nodes[i].away ? MACHINE_ABSENT : MACHINE_RUNNING;
        }
}

void fake_machines_end(void)
{
        for (size_t i = 0; i < FAKE_NODES; i++)
                fake_forget(TAKE(world.nodes[i].making));
}
