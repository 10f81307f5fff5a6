/* up and down: the verbs that make and take away. */
#include <event2/event.h>

#include "cluster/site.h"
#include "cmd/cmd.h"
#include "ui/ui.h"

static void base_free(struct event_base **b)
{
        if (*b)
                event_base_free(*b);
}

static const char *state_of(const struct options *o) { return o->state ? o->state : ".slipway"; }

static bool wants_json(const struct options *o) { return o->output && streq(o->output, "json"); }

static void say_use(const struct site *s)
{
        printf("%s is up: %zu nodes.\n", s->cluster->name, s->count);
        if (s->cluster->network.fabric.kind == FABRIC_NONE)
                printf("next:       its nodes are registered and become Ready with a fabric: kubectl apply -f FABRIC.yaml (or network.fabric: custom, and up "
                       "again)\n");
        printf("use it:     slipway kubeconfig > kubeconfig && kubectl --kubeconfig kubeconfig get nodes\n");
        printf("remove it:  slipway down\n");
}

/* Runs the steps of an operation, journalled and shown. */
static int operate(const struct options *o, struct site *s, void (*steps)(struct site *), struct error *err)
{
        struct journal *j = NULL;
        const char *last = NULL;
        int r = journal_open(s->identity.dir, &s->run, &j, &last, err);
        if (r < 0)
                return r;
        if (last)
                fprintf(stderr, "going on: %s\n", last);
        struct ui *ui = ui_observe(&s->run, &(struct ui_options){ .json = wants_json(o) });
        steps(s);
        r = run_execute(&s->run, err);
        struct error late CLEANUP(error_release) = { 0 };
        int synced = identity_sync(&s->identity, r < 0 ? &late : err);
        const char *result = r == -EINTR ? "interrupted" : r < 0 ? "failed" : "done";
        journal_close(j, result);
        ui_end(ui, s->identity.dir, result);
        return r < 0 ? r : synced;
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
        r = site_open(&s, base, &a, c, state_of(o), verb, err);
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
