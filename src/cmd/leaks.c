/* leaks: lists and deletes what is left over in a cloud (cluster/leave/leaks.h). */
#include <event2/event.h>

#include "cluster/leave/leaks.h"
#include "cmd/operate.h"
#include "cmd/reach.h"

static json_t *leak_json(const struct leak *l)
{
        return json_pack("{s:s, s:s, s:s, s:s, s:b}", "kind", l->kind, "id", l->id, "name",
                l->name ? l->name : "", "prefix", l->prefix, "ours", (int)l->ours);
}

static size_t leaks_print(const struct options *o, const struct leaks *all)
{
        json_t *list = json_array();
        size_t ours = 0, others = 0;
        for (size_t i = 0; i < all->n; i++) {
                const struct leak *l = &all->v[i];
                ours += l->ours;
                others += !l->ours;
                json_array_append_new(list, leak_json(l));
                if (!cmd_json(o))
                        print("%-15s %-36s %-24s %s\n", l->kind, l->id, l->name ? l->name : "",
                                l->ours ? "of no node" : l->prefix);
        }
        if (cmd_json(o))
                print_json(list, JSON_INDENT(2));
        else if (!ours && !others)
                print("nothing is left over.\n");
        if (!cmd_json(o) && others)
                print("%zu of them belong to other clusters: slipway cannot know whether those are in use. 'slipway leaks --prefix PREFIX --delete' deletes everything of one.\n",
                        others);
        if (!cmd_json(o) && ours && !o->delete)
                print("'slipway leaks%s%s --delete' deletes %s.\n", o->prefix ? " --prefix " : "",
                        o->prefix ? o->prefix : "", ours == 1 ? "it" : "them");
        json_decref(list);
        return ours;
}

static int leaks_confirm(const struct options *o, const struct site *s, size_t n, struct error *err)
{
        const char *wanted = o->prefix ? o->prefix : "yes";
        if (o->yes)
                return 0;
        if (operate_approval(o) == APPROVAL_ASK) {
                print("%zu resource%s will be deleted, with all data. Type %s to go on: ", n,
                        n == 1 ? "" : "s", wanted);
                fflush(stdout);
                if (operate_answer(wanted))
                        return 0;
        }
        error_set(err, ECANCELED, EXIT_USAGE, "nothing was changed");
        return error_hint(err, "type %s, or give --yes", wanted);
}

/* Lists, asks, deletes, and lists again: what is left is said. */
static int leaks_run(const struct options *o, struct site *s, struct error *err)
{
        struct leaks all;
        int r = leaks_find(s, o->prefix, &all, err);
        if (r < 0)
                return r;
        size_t n = leaks_print(o, &all);
        if (!o->delete || !n)
                return 0;
        r = leaks_confirm(o, s, n, err);
        if (r == 0)
                r = leaks_delete(s, &all, err);
        for (size_t i = 0; !cmd_json(o) && i < s->provider.kept.n; i++)
                print("%s\n", s->provider.kept.v[i]);
        if (r == 0 && !cmd_json(o))
                print("%zu resource%s deleted.\n", n, n == 1 ? " was" : "s were");
        return r;
}

int cmd_leaks(const struct options *o, struct error *err)
{
        struct reach look CLEANUP(reach_release) = { 0 };
        struct site *s = &look.site;
        int r = reach_open(&look, o, err);
        if (r == 0 && o->delete &&!o->prefix && s->identity.prefix) { /* no run beside it */
                site_release(s);
                r = site_open(
                        s, look.base, &look.arena, look.cluster, operate_state(o), "leaks", err);
        }
        return r < 0 ? r : leaks_run(o, s, err);
}
