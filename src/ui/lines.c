#include "base/utf8.h"
#include "ui/lines.h"

/* Names and errors come from files and nodes: they may not steer the terminal that shows the log. */
static void say(const char *before, const struct step *s, const char *after, const char *text)
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
        fputs(str_text(&out), stderr);
}

static void on_step(struct run *r, struct step *s, void *arg)
{
        char at[32], took[32];
        if (s->state == STEP_RUNNING || s->state == STEP_WAITING || s->state == STEP_SKIPPED)
                return;
        snprintf(at, sizeof(at), "%7.1f s  ", (double)s->ended / 1000);
        snprintf(took, sizeof(took), "done in %.1f s", (double)(s->ended - s->began) / 1000);
        if (s->state == STEP_FAILED)
                say(at, s, ": failed: ", s->err.message);
        else
                say(at, s, ": ", s->state == STEP_KEPT ? "so already" : took);
}

/* Every single file of a first or last run would hide what matters: they are in the journal and the report. */
static void on_change(struct run *r, struct step *s, const char *change, void *arg)
{
        bool many = streq(s->name, "apply") || streq(s->name, "reset");
        if (!many || has_prefix(change, "failed"))
                say("           ", s, ": ", change);
}

void lines_observe(struct run *r) { run_observe(r, &(struct run_observer){ .on_step = on_step, .on_change = on_change }); }
