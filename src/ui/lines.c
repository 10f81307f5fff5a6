#include "ui/lines.h"

static void begin(const struct step *s, int64_t ms)
{
        fprintf(stderr, "%7.1f s  ", (double)ms / 1000);
        if (s->node)
                fprintf(stderr, "%s: ", s->node);
        fputs(s->name, stderr);
}

static void on_step(struct run *r, struct step *s, void *arg)
{
        if (s->state == STEP_RUNNING || s->state == STEP_WAITING || s->state == STEP_SKIPPED)
                return;
        begin(s, s->ended);
        if (s->state == STEP_KEPT)
                fputs(": so already\n", stderr);
        else if (s->state == STEP_FAILED)
                fprintf(stderr, ": failed: %s\n", s->err.message);
        else
                fprintf(stderr, ": done in %.1f s\n", (double)(s->ended - s->began) / 1000);
}

/* Every single file of a first run would hide what matters: they are in the journal and the report. */
static void on_change(struct run *r, struct step *s, const char *change, void *arg)
{
        if (streq(s->name, "apply") && strncmp(change, "failed", 6) != 0)
                return;
        fprintf(stderr, "           %s%s%s: %s\n", s->node ? s->node : "", s->node ? ": " : "", s->name, change);
}

void lines_observe(struct run *r) { run_observe(r, &(struct run_observer){ .on_step = on_step, .on_change = on_change }); }
