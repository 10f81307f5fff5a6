#include <event2/event.h>

#include "cluster/plan.h"
#include "cmd/operate.h"

void base_free(struct event_base **b)
{
        if (*b)
                event_base_free(*b);
}

const char *operate_state(const struct options *o) { return o->state ? o->state : ".slipway"; }

bool operate_answer(const char *wanted)
{
        char line[256];
        if (!fgets(line, sizeof(line), stdin))
                return false;
        line[strcspn(line, "\n")] = 0;
        return streq(line, wanted);
}

/* A person at a terminal is asked. A script goes on, but takes no node away without --yes: a slip in the file must not. */
static int approve(struct site *s, struct error *err)
{
        const struct operation *op = s->approve_arg;
        bool person = isatty(STDIN_FILENO) && isatty(STDERR_FILENO) && !(op->options->output && streq(op->options->output, "json"));
        struct str text CLEANUP(str_release) = { 0 };
        if (plan_empty(s))
                return 0;
        json_t *json = json_pack("{s:s, s:o}", "event", "plan", "plan", plan_json(s));
        plan_text(s, false, &text);
        ui_say(op->ui, str_text(&text), json);
        json_decref(json);
        if (op->options->yes)
                return 0;
        if (person)
                return ui_ask(op->ui, "go on?") ? 0 : -ECANCELED;
        if (!s->gone_count)
                return 0;
        error_set(err, EPERM, EXIT_USAGE, "the plan removes %zu node%s, and nobody is there to be asked", s->gone_count, s->gone_count == 1 ? "" : "s");
        return error_hint(err, "give --yes when that is meant; nothing was changed");
}

int operate_begin(struct operation *op, const struct options *o, struct site *s, struct error *err)
{
        const char *last = NULL;
        *op = (struct operation){ .options = o, .site = s };
        int r = journal_open(s->identity.dir, &s->run, &op->journal, &last, err);
        if (r < 0)
                return r;
        if (last)
                fprintf(stderr, "going on: %s\n", last);
        op->ui = ui_observe(&s->run, &(struct ui_options){ .json = o->output && streq(o->output, "json") });
        s->approve = approve;
        s->approve_arg = op;
        return 0;
}

int operate_end(struct operation *op, struct error *err)
{
        struct site *s = op->site;
        int r = run_execute(&s->run, err);
        struct error late CLEANUP(error_release) = { 0 };
        int synced = identity_sync(&s->identity, r < 0 ? &late : err);
        const char *result = r == -EINTR ? "interrupted" : r < 0 ? "failed" : s->declined ? RESULT_DECLINED : "done";
        journal_close(op->journal, result);
        ui_end(op->ui, s->identity.dir, result);
        if (r == 0 && s->declined)
                return error_set(err, ECANCELED, EXIT_USAGE, "nothing was changed");
        return r < 0 ? r : synced;
}

int cmd_operate(const struct options *o, struct site *s, void (*steps)(struct site *), struct error *err)
{
        struct operation op;
        int r = operate_begin(&op, o, s, err);
        if (r < 0)
                return r;
        steps(s);
        return operate_end(&op, err);
}
