#include <event2/event.h>

#include "base/file.h"
#include "cluster/up/up.h"
#include "cmd/operate.h"

#define PLAN_MAX ((size_t)256 << 20)

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

enum approval operate_approval(const struct options *o)
{
        bool person = isatty(STDIN_FILENO) && isatty(STDERR_FILENO) && !cmd_json(o);
        return o->yes ? APPROVAL_YES : person ? APPROVAL_ASK : APPROVAL_NOBODY;
}

/* Reads the saved plan of --plan. NULL: not given. */
static int saved_read(const struct options *o, json_t **out, struct error *err)
{
        struct str text CLEANUP(str_release) = { 0 };
        *out = NULL;
        int r = o->plan ? file_read(o->plan, PLAN_MAX, &text, err) : 0;
        if (r < 0 || !o->plan)
                return r;
        *out = json_loadb(str_text(&text), text.len, JSON_REJECT_DUPLICATES, NULL);
        if (json_is_object(*out))
                return 0;
        json_decref(*out);
        *out = NULL;
        error_set(err, EINVAL, EXIT_USAGE, "%s is not a plan", o->plan);
        return error_hint(err, "slipway plan -o json > PLAN writes one; nothing was changed");
}

static void plan_say(const struct operation *op)
{
        struct str text CLEANUP(str_release) = { 0 };
        json_t *json = json_pack("{s:s, s:o}", "event", "plan", "plan", plan_json(op->site));
        plan_text(op->site, false, &text);
        ui_say(op->ui, str_text(&text), json);
        json_decref(json);
}

/* Asks the user at a terminal. -ECANCELED without a message: the answer was no. */
static int plan_ask(const struct operation *op, const json_t *saved, struct error *err)
{
        if (!saved && !plan_empty(op->site))
                plan_say(op);
        int r = plan_approved(op->site, operate_approval(op->options), saved, err);
        if (r == APPROVAL_WANTED)
                r = ui_ask(op->ui, "go on?") ? 0 : -ECANCELED;
        return r;
}

int operate_begin(struct operation *op, const struct options *o, struct site *s, struct error *err)
{
        const char *last = NULL;
        *op = (struct operation){ .options = o, .site = s };
        int r = journal_open(s->identity.dir, &s->run, &op->journal, &last, err);
        if (r < 0)
                return r;
        if (last)
                print_err("going on: %s\n", last);
        op->ui = ui_observe(&s->run, &(struct ui_options){ .json = cmd_json(o) });
        return 0;
}

int operate_close(struct operation *op, int r, struct error *err)
{
        struct site *s = op->site;
        bool declined = r == -ECANCELED && (!err->message || err->status == EXIT_USAGE);
        struct error late CLEANUP(error_release) = { 0 };
        int synced = identity_sync(&s->identity, r < 0 ? &late : err);
        const char *result = declined      ? RESULT_DECLINED
                             : r == -EINTR ? "interrupted"
                             : r < 0       ? "failed"
                                           : "done";
        journal_close(op->journal, result);
        ui_end(op->ui, s->identity.dir, result);
        if (declined && !err->message)
                return error_set(err, ECANCELED, EXIT_USAGE, "nothing was changed");
        return r < 0 ? r : synced;
}

int operate_end(struct operation *op, struct error *err)
{
        return operate_close(op, run_execute(&op->site->run, err), err);
}

int cmd_operate(const struct options *o, struct site *s,
        int (*apply)(struct site *s, struct error *err), struct error *err)
{
        struct operation op;
        int r = operate_begin(&op, o, s, err);
        return r < 0 ? r : operate_close(&op, apply(s, err), err);
}

int cmd_plan_and_apply(
        const struct options *o, struct site *s, const struct edit *edit, struct error *err)
{
        struct operation op;
        json_t *saved = NULL;
        int r = saved_read(o, &saved, err);
        if (r == 0)
                r = operate_begin(&op, o, s, err);
        if (r < 0) {
                json_decref(saved);
                return r;
        }
        r = up_observe(s, err);
        if (r == 0 && (!s->only_stage || s->only_bastion))
                r = plan_ask(&op, saved, err);
        json_decref(saved);
        if (r == 0 && !s->only_stage && !s->only_bastion && edit)
                r = edit_write(edit, err);
        if (r == 0)
                r = up_apply(s, err);
        return operate_close(&op, r, err);
}
