/* reset: nodes leave the cluster, and Kubernetes leaves their hosts; without a node, the whole cluster. */
#include <event2/event.h>

#include "cluster/reset.h"
#include "cmd/operate.h"

/* Data goes for good, so it is asked for by name. */
static int ask(const struct options *o, struct site *s, struct error *err)
{
        size_t n = 0;
        for (size_t i = 0; i < s->count; i++)
                n += s->members[i].leaving != 0;
        bool all = n == s->count;
        if (o->yes)
                return 0;
        fprintf(stderr, "Kubernetes is taken off %zu host%s, with all its data:", n, n == 1 ? "" : "s");
        for (size_t i = 0; i < s->count; i++)
                if (s->members[i].leaving)
                        fprintf(stderr, " %s", s->members[i].node->name);
        fprintf(stderr, all ? "\nThis is the whole cluster. Type its name (%s) to go on: " : "\nType yes to go on: ", s->cluster->name);
        if (operate_answer(all ? s->cluster->name : "yes"))
                return 0;
        fputc('\n', stderr);
        error_set(err, ECANCELED, EXIT_USAGE, "nothing was changed");
        return error_hint(err, all ? "type the cluster's name, or give --yes" : "type yes, or give --yes");
}

static void say_done(struct site *s)
{
        bool all = true;
        for (size_t i = 0; i < s->count; i++)
                all &= s->members[i].leaving != 0;
        if (all)
                printf("Kubernetes is off all hosts of %s; its certificates stay in %s.\n", s->cluster->name, s->identity.dir);
        else
                printf("done; take the nodes out of cluster.yaml, or the next slipway up brings them back.\n");
}

static int reset(const struct options *o, struct arena *a, struct cluster *c, const char *verb, const struct strings *names, struct error *err)
{
        struct event_base *base CLEANUP(base_free) = event_base_new();
        struct site s = { .identity.lock = -1 };
        int r = site_open(&s, base, a, c, o->state ? o->state : ".slipway", verb, err);
        if (r == 0)
                r = reset_choose(&s, names, o->force, err);
        if (r == 0)
                r = ask(o, &s, err);
        if (r == 0)
                r = cmd_operate(o, &s, reset_steps, err);
        if (r == 0 && !(o->output && streq(o->output, "json")))
                say_done(&s);
        site_release(&s);
        return r;
}

int cmd_reset(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct cluster *c;
        int r = cmd_load(o, &a, &c, err);
        return r < 0 ? r : reset(o, &a, c, "reset", &o->args, err);
}

int cmd_reset_hosts(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct cluster *c;
        int r = cmd_load(o, &a, &c, err);
        if (r < 0)
                return r;
        return c->provider.kind == PROVIDER_SSH ? reset(o, &a, c, "down", &(struct strings){ 0 }, err) : RESET_NOT_HOSTS;
}
