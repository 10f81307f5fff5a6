#include <signal.h>

#include "base/file.h"
#include "ui/events.h"
#include "ui/lines.h"
#include "ui/live.h"
#include "ui/report.h"
#include "ui/ui.h"

struct ui {
        struct run *run;
        struct live *live;
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
                lines_observe(r);
        return u;
}

void ui_say(struct ui *u, const char *text, json_t *json)
{
        if (u->live)
                live_pause(u->live);
        if (u->json) {
                char *line CLEANUP(free_p) = json_dumps(json, JSON_COMPACT);
                printf("%s\n", line);
                fflush(stdout);
        } else {
                fputs(text, stderr);
        }
}

static void on_break(int sig) {}

/* The loop's own handlers only note a signal for when it runs again, and it does not run while we wait for an answer: ^C would do nothing. */
bool ui_ask(struct ui *u, const char *question)
{
        char line[16] = "";
        struct sigaction ours = { .sa_handler = on_break }, before[2]; /* without SA_RESTART: it ends the reading */
        if (u->live)
                live_pause(u->live);
        fprintf(stderr, "%s [y/N] ", question);
        fflush(stderr);
        sigaction(SIGINT, &ours, &before[0]);
        sigaction(SIGTERM, &ours, &before[1]);
        if (!fgets(line, sizeof(line), stdin)) {
                fputc('\n', stderr);
                line[0] = '\0';
        }
        sigaction(SIGINT, &before[0], NULL);
        sigaction(SIGTERM, &before[1], NULL);
        return line[0] == 'y' || line[0] == 'Y';
}

void ui_end(struct ui *u, const char *dir, const char *result)
{
        struct error err CLEANUP(error_release) = { 0 };
        char *path CLEANUP(free_p) = path_join(dir, "report.html");
        if (u->live)
                live_end(u->live, result);
        if (streq(result, RESULT_DECLINED)) {
                free(u->report);
                free(u);
                return;
        }
        int r = report_write(u->report, path, result, &err);
        if (u->json)
                events_end(u->run, result, r < 0 ? NULL : path);
        if (r < 0)
                fprintf(stderr, "report: not written: %s\n", err.message);
        else
                fprintf(stderr, "report: %s\n", path);
        free(u);
}
