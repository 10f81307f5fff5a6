/* Plays a run from a script on stdin through the observers, as `slipway up` would show it: ui_tool
 * DIR [json]
 *
 *     step NAME NODE|- [AFTER...]   a step that waits for others of the same node, the cluster's
 * (-/NAME) or another's (NODE/NAME) at MS doing NAME NODE PERMILLE TEXT at MS changed NAME NODE
 * TEXT at MS done|kept|fail NAME NODE [TEXT]     (times count from the beginning of the run)
 * at MS later NAME NODE SECONDS      so much of the run's time passes at once */
#include <event2/event.h>

#include "base/str.h"
#include "ui/ui.h"

struct deed {
        char verb[16], name[64], node[64], *text;
        int ms, permille;
        struct run *run;
        struct event *timer;
        struct deed *next;
};

static struct deed *deeds;

static void nothing(struct step *s) {}

static struct step *find(struct run *r, const char *name, const char *node)
{
        for (struct step *s = r->first; s; s = s->next)
                if (streq(s->name, name) && streq(s->node ? s->node : "-", node))
                        return s;
        fprintf(stderr, "ui_tool: no step %s of %s\n", name, node);
        exit(2);
}

/* So much of the run's time passes at once. What is to come keeps its distance from now, on a slow
 * computer too. */
static void pass(const struct deed *now, long seconds)
{
        now->run->began -= seconds * 1000;
        for (struct deed *d = deeds; d; d = d->next) {
                int ms = d->ms - now->ms;
                if (ms <= 0)
                        continue;
                event_del(d->timer);
                event_add(d->timer,
                        &(struct timeval){ .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 });
        }
}

static void act(int fd, short what, void *arg)
{
        struct deed *d = arg;
        struct step *s = find(d->run, d->name, d->node);
        struct error err CLEANUP(error_release) = { 0 };
        if (streq(d->verb, "doing")) {
                step_doing(s, d->permille, "%s", d->text);
        } else if (streq(d->verb, "changed")) {
                step_changed(s, "%s", d->text);
        } else if (streq(d->verb, "later")) {
                pass(d, strtol(d->text, NULL, 10));
        } else if (streq(d->verb, "kept")) {
                step_unchanged(s);
        } else if (streq(d->verb, "done")) {
                step_done(s, NULL);
        } else {
                error_set(&err, EIO, EXIT_STEP, "%s", d->text);
                error_hint(&err, "look at its journal");
                step_done(s, &err);
        }
}

static void add_deed(struct run *r, const char *line)
{
        struct deed *d = xcalloc(1, sizeof(*d));
        int at = 0;
        d->run = r;
        d->permille = -1;
        d->next = deeds;
        deeds = d;
        if (sscanf(line, "at %d %15s %63s %63s %n", &d->ms, d->verb, d->name, d->node, &at) < 4)
                exit(2);
        const char *text = at ? line + at : "";
        if (streq(d->verb, "doing"))
                d->permille = (int)strtol(text, (char **)&text, 10);
        d->text = xstrdup(text + strspn(text, " "));
        d->text[strcspn(d->text, "\n")] = 0;
        d->timer = evtimer_new(r->base, act, d);
        event_add(d->timer,
                &(struct timeval){ .tv_sec = d->ms / 1000, .tv_usec = d->ms % 1000 * 1000 });
}

static void add_step(struct run *r, char *line)
{
        char *save, *name = (strtok_r(line, " \n", &save), strtok_r(NULL, " \n", &save)),
                    *node = strtok_r(NULL, " \n", &save);
        struct step *s = run_step(r, arena_strdup(r->arena, name),
                streq(node, "-") ? NULL : arena_strdup(r->arena, node), nothing, NULL);
        for (char *w; (w = strtok_r(NULL, " \n", &save));) {
                char *slash = strchr(w, '/');
                if (slash)
                        *slash = 0;
                step_after(s, slash ? find(r, slash + 1, w) : find(r, w, node));
        }
}

int main(int argc, char **argv)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        struct event_base *base = event_base_new();
        struct run r;
        char *line = NULL;
        size_t cap = 0;
        run_init(&r, base, &a, "up", "demo");
        struct ui *ui =
                ui_observe(&r, &(struct ui_options){ .json = argc > 2 && streq(argv[2], "json") });
        while (getline(&line, &cap, stdin) > 0) {
                if (has_prefix(line, "step "))
                        add_step(&r, line);
                else if (has_prefix(line, "at "))
                        add_deed(&r, line);
        }
        free(line);
        int status = run_execute(&r, &err);
        ui_end(ui, argv[1], status == -EINTR ? "interrupted" : status < 0 ? "failed" : "done");
        for (struct deed *next; deeds; deeds = next) {
                next = deeds->next;
                event_free(deeds->timer);
                free(deeds->text);
                free(deeds);
        }
        run_release(&r);
        event_base_free(base);
        return status < 0 ? 3 : 0; /* 1 is the sanitizers' */
}
