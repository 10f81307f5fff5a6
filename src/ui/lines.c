#include "base/print.h"
#include "base/utf8.h"
#include "ui/lines.h"

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

void lines_observe(struct run *r)
{
        run_observe(r,
                &(struct run_observer){ .on_step = lines_on_step, .on_change = lines_on_change });
}
