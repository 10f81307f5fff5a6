#include <event2/event.h>

#include "base/print.h"
#include "base/utf8.h"
#include "ui/lines.h"

/* A step that has run for so long is listed, and again after each further interval. */
#define STILL_AFTER_MS 20000
#define STILL_EVERY_MS 30000

struct lines {
        struct run *run;
        struct event *timer;
        int64_t next; /* no step is listed before this time, milliseconds of the run */
};

/* Names and errors come from files and nodes, and must not control the terminal that shows the log.
 */
static void lines_say(const char *before, const struct step *s, const char *after, const char *text)
{
        struct str out CLEANUP(str_release) = { 0 };
        str_add(&out, before);
        if (s->node) {
                text_harmless(&out, s->node, SIZE_MAX);
                str_add(&out, ": ");
        }
        text_harmless(&out, s->name, SIZE_MAX);
        str_add(&out, after);
        text_harmless(&out, text, SIZE_MAX);
        str_addc(&out, '\n');
        print_text(stderr, str_text(&out));
}

static void lines_on_step(struct run *r, struct step *s, void *arg)
{
        char at[32], took[32];
        if (s->state == STEP_RUNNING || s->state == STEP_WAITING || s->state == STEP_SKIPPED)
                return;
        snprintf(at, sizeof(at), "%7.1f s  ", (double)s->ended / 1000);
        snprintf(took, sizeof(took), "done in %.1f s", (double)(s->ended - s->began) / 1000);
        if (s->state == STEP_FAILED)
                lines_say(at, s, ": failed: ", s->err.message);
        else
                lines_say(at, s, ": ", s->state == STEP_KEPT ? "unchanged" : took);
}

/* Single files of a first run or a reset are not listed here: the journal and the report have them.
 */
static void lines_on_change(struct run *r, struct step *s, const char *change, void *arg)
{
        bool many = streq(s->name, "apply") || streq(s->name, "reset");
        if (!many || has_prefix(change, "failed"))
                lines_say("           ", s, ": ", change);
}

static void lines_still(const struct step *s, int64_t now)
{
        char at[32], after[64];
        snprintf(at, sizeof(at), "%7.1f s  ", (double)now / 1000);
        snprintf(after, sizeof(after), ": still running after %" PRId64 " s%s",
                (now - s->began) / 1000, s->doing ? ": " : "");
        lines_say(at, s, after, s->doing ? s->doing : "");
}

/* All steps that take long at once, so that they stand together in a log. */
static void lines_on_timer(evutil_socket_t fd, short what, void *arg)
{
        struct lines *l = arg;
        int64_t now = run_now(l->run);
        bool any = false;
        for (const struct step *s = now < l->next ? NULL : l->run->first; s; s = s->next) {
                if (s->state != STEP_RUNNING || now - s->began < STILL_AFTER_MS)
                        continue;
                lines_still(s, now);
                any = true;
        }
        if (any)
                l->next = now + STILL_EVERY_MS;
}

struct lines *lines_observe(struct run *r)
{
        struct lines *l = xcalloc(1, sizeof(*l));
        *l = (struct lines){ .run = r,
                .timer = event_new(r->base, -1, EV_PERSIST, lines_on_timer, l) };
        event_add(l->timer, &(struct timeval){ .tv_sec = 1 });
        run_observe(r,
                &(struct run_observer){ .on_step = lines_on_step, .on_change = lines_on_change });
        return l;
}

void lines_end(struct lines *l)
{
        event_free(l->timer);
        free(l);
}
