#include "base/print.h"
#include "ui/events.h"

static json_t *events_text(const char *s) { return s ? json_text(s) : json_null(); }

static void events_say(json_t *event)
{
        print_json(event, JSON_COMPACT);
        fflush(stdout); /* readers want each line at once */
        json_decref(event);
}

static json_t *event_of(const struct step *s, const char *event)
{
        static const char *const states[] = { "waiting", "running", "done", "kept", "failed",
                "skipped" };
        json_t *o = json_object();
        json_object_set_new(o, "event", json_string(event));
        json_object_set_new(o, "at", json_integer(run_now(s->run)));
        json_object_set_new(o, "node", events_text(s->node));
        json_object_set_new(o, "step", events_text(s->name));
        json_object_set_new(o, "state", json_string(states[s->state]));
        return o;
}

static void events_on_step(struct run *r, struct step *s, void *arg)
{
        json_t *o = event_of(s, "step");
        if (s->began >= 0 && s->ended >= 0)
                json_object_set_new(o, "ms", json_integer(s->ended - s->began));
        if (s->state == STEP_FAILED) {
                json_object_set_new(o, "error", events_text(s->err.message));
                json_object_set_new(o, "hint", events_text(s->err.hint));
        }
        events_say(o);
}

static void events_on_progress(struct run *r, struct step *s, void *arg)
{
        json_t *o = event_of(s, "progress");
        json_object_set_new(o, "doing", events_text(s->doing));
        if (s->permille >= 0)
                json_object_set_new(o, "permille", json_integer(s->permille));
        events_say(o);
}

static void events_on_change(struct run *r, struct step *s, const char *change, void *arg)
{
        json_t *o = event_of(s, "change");
        json_object_set_new(o, "change", events_text(change));
        events_say(o);
}

static json_t *events_about(const struct run *r, const char *event)
{
        json_t *o = json_object();
        json_object_set_new(o, "event", json_string(event));
        json_object_set_new(o, "verb", events_text(r->verb));
        json_object_set_new(o, "cluster", events_text(r->cluster));
        return o;
}

void events_observe(struct run *r)
{
        json_t *o = events_about(r, "begin");
        json_object_set_new(o, "time", json_integer(r->wall));
        events_say(o);
        run_observe(r, &(struct run_observer){ .on_step = events_on_step,
                               .on_progress = events_on_progress,
                               .on_change = events_on_change });
}

void events_end(const struct run *r, const char *result, const char *report)
{
        json_t *o = events_about(r, "end");
        json_object_set_new(o, "ms", json_integer(run_now(r)));
        json_object_set_new(o, "result", events_text(result));
        json_object_set_new(o, "report", events_text(report));
        events_say(o);
}
