#include <signal.h>

#include "base/print.h"
#include "ui/events.h"
#include "ui/lines.h"
#include "ui/live.h"
#include "ui/report.h"
#include "ui/reports.h"
#include "ui/ui.h"

struct ui {
        struct run *run;
        struct live *live;   /* on a terminal */
        struct lines *lines; /* elsewhere, unless it is JSON */
        struct report *report;
        bool json;
};

struct ui *ui_observe(struct run *r, const struct ui_options *o)
{
        struct ui *u = xcalloc(1, sizeof(*u));
        *u = (struct ui){ .run = r, .json = o->json, .report = report_observe(r) };
        if (o->json)
                events_observe(r);
        else if (live_possible())
                u->live = live_observe(r);
        else
                u->lines = lines_observe(r);
        return u;
}

void ui_say(struct ui *u, const char *text, json_t *json)
{
        if (u->live)
                live_pause(u->live);
        if (u->json) {
                print_json(json, JSON_COMPACT);
                fflush(stdout);
        } else {
                print_text(stderr, text);
        }
}

static void ui_on_break(int sig) {}

/* The event loop's signal handlers act only when the loop runs, and it does not run while an answer
 * is awaited: without these, Ctrl-C would do nothing. */
static void ui_read(char *line, size_t size)
{
        struct sigaction ours = { .sa_handler = ui_on_break },
                         before[2]; /* without SA_RESTART: a signal ends the read */
        fflush(stderr);
        sigaction(SIGINT, &ours, &before[0]);
        sigaction(SIGTERM, &ours, &before[1]);
        if (!fgets(line, (int)size, stdin)) {
                print_err("\n");
                line[0] = '\0';
        }
        sigaction(SIGINT, &before[0], NULL);
        sigaction(SIGTERM, &before[1], NULL);
        line[strcspn(line, "\n")] = 0;
}

static void ui_stop(struct ui *u)
{
        if (u->live)
                live_pause(u->live);
}

bool ui_ask(struct ui *u, const char *question)
{
        char line[16] = "";
        ui_stop(u);
        print_err("%s [y/N] ", question);
        ui_read(line, sizeof(line));
        return line[0] == 'y' || line[0] == 'Y';
}

bool ui_ask_for(struct ui *u, const char *text, const char *wanted)
{
        char line[256] = "";
        ui_stop(u);
        print_text(stderr, text);
        ui_read(line, sizeof(line));
        return streq(line, wanted);
}

void ui_end(struct ui *u, const char *dir, const char *result)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct arena a CLEANUP(arena_release) = { 0 };
        if (u->live)
                live_end(u->live, result);
        if (u->lines)
                lines_end(u->lines);
        if (streq(result, RESULT_DECLINED)) {
                free(u->report);
                free(u);
                return;
        }
        const char *path = reports_next(dir, &a, u->run->wall, u->run->verb, result, &err);
        int r = report_write(u->report, path, result, &err);
        if (r == 0)
                r = reports_written(dir, path, &err);
        if (u->json)
                events_end(u->run, result, r < 0 ? NULL : path);
        if (r < 0)
                print_err("report: cannot be written: %s\n", err.message);
        else
                print_err("report: %s\n", path);
        free(u);
}
