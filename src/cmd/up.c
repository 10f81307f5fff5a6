/* up and down: the verbs that make and take away. */
#include <event2/event.h>

#include "cluster/restore.h"
#include "cmd/operate.h"

static void base_free(struct event_base **b)
{
        if (*b)
                event_base_free(*b);
}

static bool wants_json(const struct options *o) { return o->output && streq(o->output, "json"); }

static void say_use(const struct site *s)
{
        printf("%s is up: %zu nodes.\n", s->cluster->name, s->count);
        printf("use it:     slipway kubeconfig > kubeconfig && kubectl --kubeconfig kubeconfig get nodes\n");
        printf("remove it:  slipway down\n");
}

static int operate(const struct options *o, struct site *s, void (*steps)(struct site *), struct error *err)
{
        struct operation op;
        int r = operate_begin(&op, o, s, err);
        if (r < 0)
                return r;
        steps(s);
        return operate_end(&op, err);
}

/* One operation from the file to its end; `after` is what a success still needs. */
static int run_verb(const struct options *o, const char *verb, void (*steps)(struct site *),
        int (*after)(const struct options *, struct site *, struct error *), struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct event_base *base CLEANUP(base_free) = event_base_new();
        struct cluster *c;
        struct site s = { .identity.lock = -1 };
        int r = cmd_load(o, &a, &c, err);
        if (r < 0)
                return r;
        r = site_open(&s, base, &a, c, operate_state(o), verb, err);
        if (r == 0 && steps == up_steps)
                r = restore_unfinished(&s, err);
        if (r == 0)
                r = operate(o, &s, steps, err);
        if (r == 0)
                r = after(o, &s, err);
        site_release(&s);
        return r;
}

static int after_up(const struct options *o, struct site *s, struct error *err)
{
        if (!wants_json(o))
                say_use(s);
        return 0;
}

static int after_down(const struct options *o, struct site *s, struct error *err) { return s->ops->cleanup(&s->provider, err); }

int cmd_up(const struct options *o, struct error *err) { return run_verb(o, "up", up_steps, after_up, err); }

int cmd_down(const struct options *o, struct error *err) { return run_verb(o, "down", down_steps, after_down, err); }
