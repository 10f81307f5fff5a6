#include "cmd/operate.h"

const char *operate_state(const struct options *o) { return o->state ? o->state : ".slipway"; }

int operate_begin(struct operation *op, const struct options *o, struct site *s, struct error *err)
{
        const char *last = NULL;
        *op = (struct operation){ .site = s };
        int r = journal_open(s->identity.dir, &s->run, &op->journal, &last, err);
        if (r < 0)
                return r;
        if (last)
                fprintf(stderr, "going on: %s\n", last);
        op->ui = ui_observe(&s->run, &(struct ui_options){ .json = o->output && streq(o->output, "json") });
        return 0;
}

int operate_end(struct operation *op, struct error *err)
{
        struct site *s = op->site;
        int r = run_execute(&s->run, err);
        struct error late CLEANUP(error_release) = { 0 };
        int synced = identity_sync(&s->identity, r < 0 ? &late : err);
        const char *result = r == -EINTR ? "interrupted" : r < 0 ? "failed" : "done";
        journal_close(op->journal, result);
        ui_end(op->ui, s->identity.dir, result);
        return r < 0 ? r : synced;
}
