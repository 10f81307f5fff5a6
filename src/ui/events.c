#include <jansson.h>

#include "base/utf8.h"
#include "ui/events.h"

/* What a node said may be any bytes; a JSON string may not. */
static json_t *text(const char *s)
{
        json_t *j = s ? json_string(s) : json_null();
        if (j)
                return j;
        struct str clean CLEANUP(str_release) = { 0 };
        text_harmless(&clean, s, SIZE_MAX);
        return json_string(str_text(&clean));
}

static void say(json_t *event)
{
        char *line = json_dumps(event, JSON_COMPACT);
        if (line)
                puts(line);
        fflush(stdout); /* a reader wants it now */
        free(line);
        json_decref(event);
}

static json_t *event_of(const struct step *s, const char *event)
{
        static const char *const states[] = { "waiting", "running", "done", "kept", "failed", "skipped" };
        json_t *o = json_object();
        json_object_set_new(o, "event", json_string(event));
        json_object_set_new(o, "at", json_integer(run_now(s->run)));
        json_object_set_new(o, "node", text(s->node));
        json_object_set_new(o, "step", text(s->name));
        json_object_set_new(o, "state", json_string(states[s->state]));
        return o;
}

static void on_step(struct run *r, struct step *s, void *arg)
{
        json_t *o = event_of(s, "step");
        if (s->began >= 0 && s->ended >= 0)
                json_object_set_new(o, "ms", json_integer(s->ended - s->began));
        if (s->state == STEP_FAILED) {
                json_object_set_new(o, "error", text(s->err.message));
                json_object_set_new(o, "hint", text(s->err.hint));
        }
        say(o);
}

static void on_progress(struct run *r, struct step *s, void *arg)
{
        json_t *o = event_of(s, "progress");
        json_object_set_new(o, "doing", text(s->doing));
        if (s->permille >= 0)
                json_object_set_new(o, "permille", json_integer(s->permille));
        say(o);
}

static void on_change(struct run *r, struct step *s, const char *change, void *arg)
{
        json_t *o = event_of(s, "change");
        json_object_set_new(o, "change", text(change));
        say(o);
}

static json_t *about(const struct run *r, const char *event)
{
        json_t *o = json_object();
        json_object_set_new(o, "event", json_string(event));
        json_object_set_new(o, "verb", text(r->verb));
        json_object_set_new(o, "cluster", text(r->cluster));
        return o;
}

void events_observe(struct run *r)
{
        json_t *o = about(r, "begin");
        json_object_set_new(o, "time", json_integer(r->began));
        say(o);
        run_observe(r, &(struct run_observer){ .on_step = on_step, .on_progress = on_progress, .on_change = on_change });
}

void events_end(const struct run *r, const char *result, const char *report)
{
        json_t *o = about(r, "end");
        json_object_set_new(o, "ms", json_integer(run_now(r)));
        json_object_set_new(o, "result", text(result));
        json_object_set_new(o, "report", text(report));
        say(o);
}
