/* Rotations (cluster/certs/rotate.h), phase by phase, and `slipway encryption`. */
#include <event2/event.h>
#include <time.h>

#include "cluster/certs/rotate.h"
#include "cluster/site/removed.h"
#include "cluster/up/up.h"
#include "cmd/operate.h"
#include "cmd/reach.h"

static int rotate_apply(const struct options *o, struct site *s, struct error *err)
{
        struct str text CLEANUP(str_release) = { 0 };
        rotate_text(&s->identity, &text);
        print_text(stderr, str_text(&text));
        return cmd_plan_and_apply(o, s, NULL, err);
}

/* Rolls out one phase and advances to the next. 1: there is another phase. */
static int rotate_phase(const struct options *o, struct cluster *c, struct arena *a,
        const char *verb, bool rolled, struct error *err)
{
        struct event_base *base CLEANUP(base_free) = event_base_new();
        struct site s = { .identity.lock = -1 };
        struct str told CLEANUP(str_release) = { 0 };
        int r = site_open(&s, base, a, c, operate_state(o), verb, err);
        bool any = r == 0 && identity_rotating(&s.identity);
        if (any && !rolled)
                r = rotate_apply(o, &s, err);
        if (any && r == 0)
                r = rotate_on(&s, o->finish, &told, err);
        print_text(stderr, str_text(&told));
        site_release(&s);
        return r;
}

int cmd_rotation(const struct options *o, const char *verb, bool rolled, struct error *err)
{
        struct options again = *o;
        int r = 1;
        while (r == 1) {
                struct arena a CLEANUP(arena_release) = { 0 };
                struct cluster *c;
                r = cmd_load(&again, &a, &c, err);
                if (r == 0)
                        r = rotate_phase(&again, c, &a, verb, rolled, err);
                rolled = false;
                again.yes = true; /* the approval was for the whole rotation */
        }
        return r;
}

/* A damaged state is reported when the rotation starts. */
static int rotate_look(const struct options *o, struct error *err)
{
        struct reach r CLEANUP(reach_release) = { 0 };
        struct error ignored CLEANUP(error_release) = { 0 };
        if (reach_open(&r, o, &ignored) < 0)
                return 0;
        int e = r.site.identity.prefix && site_kube(&r.site, &ignored) == 0
                        ? rotate_check_joined(&r.site, err)
                        : 0;
        return e < 0 ? e : site_must_exist(&r.site, err);
}

/* Inspects the nodes as 'plan' does. A rotation that cannot begin is not written to the state
 * directory, where the next 'up' would continue it. */
static int rotate_reach(const struct options *o, struct error *err)
{
        struct reach r CLEANUP(reach_release) = { 0 };
        int e = reach_open(&r, o, err);
        return e < 0 || identity_rotating(&r.site.identity) ? e : up_observe(&r.site, err);
}

int cmd_rotate(const struct options *o, const char *verb, unsigned set, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct cluster *c;
        int r = cmd_load(o, &a, &c, err);
        if (r == 0 && set & 1U << ROTATE_ENCRYPTION)
                r = rotate_check_encryption(c, err);
        if (r == 0)
                r = rotate_look(o, err);
        if (r == 0)
                r = rotate_reach(o, err);
        if (r == 0)
                r = identity_rotate(operate_state(o), c, set, time(NULL), err);
        return r < 0 ? r : cmd_rotation(o, verb, false, err);
}

int cmd_encryption(const struct options *o, struct error *err)
{
        int r = cmd_rotate(o, "encryption rotate", 1U << ROTATE_ENCRYPTION, err);
        if (r == 0 && !cmd_json(o))
                print("secrets are encrypted with a new key, and the old one was removed.\n");
        return r;
}
