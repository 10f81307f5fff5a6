/* Rotations: each phase is one roll of up, then the Identity goes on to the next. What was stopped goes on with the next up. */
#include <event2/event.h>
#include <time.h>

#include "cluster/certs.h"
#include "cmd/operate.h"

static const char *state_of(const struct options *o) { return o->state ? o->state : ".slipway"; }

static const char *const sentences[] = { "", "both are believed from here on", "the new one signs from here on", "the old one goes" };

static void say_phase(const struct identity *id)
{
        for (int i = 0; i < ROTATE_COUNT; i++)
                if (id->rotation.phase[i] != ROTATE_NOT)
                        fprintf(stderr, "rotation of %s, phase %s: %s\n", rotate_name(i), rotate_phase_name(id->rotation.phase[i]),
                                sentences[id->rotation.phase[i]]);
}

/* The old key goes out of use only when nothing is encrypted with it any more. */
static int before_next(struct site *s, struct error *err)
{
        size_t n = 0;
        if (s->identity.rotation.phase[ROTATE_ENCRYPTION] != ROTATE_ISSUE)
                return 0;
        int r = certs_rewrite(s, &n, err);
        if (r == 0)
                fprintf(stderr, "%zu objects were encrypted anew\n", n);
        return r;
}

static void say_waiting(const struct identity *id)
{
        char when[32];
        struct tm tm;
        time_t end = id->rotation.issued + SA_KEEP;
        if (id->rotation.phase[ROTATE_SA] != ROTATE_ISSUE)
                return;
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M UTC", gmtime_r(&end, &tm));
        fprintf(stderr,
                "service-account tokens are signed with the new key; the old one is believed until %s, when every pod has had its token renewed: the first "
                "slipway up after that takes it out (certs rotate-ca sa --finish: at once)\n",
                when);
}

/* One phase: rolled out, then on. 1: there is another. */
static int one_phase(const struct options *o, struct cluster *c, struct arena *a, const char *verb, bool rolled, struct error *err)
{
        struct event_base *base CLEANUP(base_free) = event_base_new();
        struct site s = { .identity.lock = -1 };
        int r = site_open(&s, base, a, c, state_of(o), verb, err);
        bool any = r == 0 && identity_rotating(&s.identity);
        if (any && !rolled) {
                say_phase(&s.identity);
                r = cmd_operate(o, &s, up_steps, err);
        }
        if (any && r == 0)
                r = before_next(&s, err);
        if (any && r == 0)
                r = identity_people(&s.identity, c, err);
        if (any && r == 0)
                r = identity_rotate_on(&s.identity, c, o->finish, err);
        if (any && r == 0)
                say_waiting(&s.identity);
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
                        r = one_phase(&again, c, &a, verb, rolled, err);
                rolled = false;
                again.yes = true; /* what was agreed to is all of it */
        }
        return r;
}

/* Begins, and goes through all phases. */
int cmd_rotate(const struct options *o, const char *verb, unsigned set, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct cluster *c;
        int r = cmd_load(o, &a, &c, err);
        if (r == 0)
                r = identity_rotate(state_of(o), c, set, time(NULL), err);
        return r < 0 ? r : cmd_rotation(o, verb, false, err);
}

/* ---- encryption ---- */

static int check_resources(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct cluster *c;
        int r = cmd_load(o, &a, &c, err);
        if (r < 0)
                return r;
        if (c->encryption.provider == ENCRYPTION_NONE) {
                error_set(err, EINVAL, EXIT_CONFIG, "nothing is encrypted: encryption.provider is none");
                return error_hint(err, "set encryption: secretbox, and run slipway up");
        }
        for (size_t i = 0; i < c->encryption.resources.n; i++)
                if (strchr(c->encryption.resources.v[i], '*')) {
                        error_set(err, EINVAL, EXIT_CONFIG, "encryption.resources: '%s' does not say what has to be encrypted anew",
                                c->encryption.resources.v[i]);
                        return error_hint(err, "name the resources one by one: secrets, configmaps");
                }
        return 0;
}

int cmd_encryption(const struct options *o, struct error *err)
{
        if (!streq(o->args.v[0], "rotate")) {
                error_set(err, EINVAL, EXIT_USAGE, "'slipway encryption' cannot '%s'", o->args.v[0]);
                return error_hint(err, "it can: rotate");
        }
        int r = check_resources(o, err);
        if (r == 0)
                r = cmd_rotate(o, "encryption rotate", 1U << ROTATE_ENCRYPTION, err);
        if (r == 0 && !(o->output && streq(o->output, "json")))
                printf("secrets are encrypted with a new key, and the old one is gone.\n");
        return r;
}
