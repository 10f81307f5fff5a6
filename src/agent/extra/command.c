/* Commands of the user: each runs once. The record has the digests of those that succeeded; one
 * that failed or was interrupted runs again. */
#include <sys/wait.h>

#include "agent/agent.h"

#define COMMAND_SECONDS 300 /* if the spec has no limit */
#define LINE_MAX_SHOWN  300

void check_command(struct agent *a, struct entry *e)
{
        const struct row *row = record_find(&a->record, SPEC_COMMAND, e->name);
        e->state = row && streq(row->digest, e->digest) ? STATE_SAME : STATE_CREATED;
}

/* "exit status 3: the last line that it printed" */
static int command_failed(const struct child *c, struct error *err)
{
        char *line CLEANUP(free_p) = str_last_line(&c->text[c->text[1].len ? 1 : 0]);
        bool killed = WIFSIGNALED(c->status);
        return error_set(err, EIO, EXIT_STEP, "%s %d%s%.*s", killed ? "signal" : "exit status",
                killed ? WTERMSIG(c->status) : WEXITSTATUS(c->status), *line ? ": " : "",
                LINE_MAX_SHOWN, line);
}

static int command_run(struct agent *a, const struct entry *e, struct error *err)
{
        struct words w CLEANUP(words_release) = { 0 };
        char *end;
        long seconds = e->target ? strtol(e->target, &end, 10) : COMMAND_SECONDS;
        for (size_t at = 0; at < e->len; at += strlen(e->content + at) + 1)
                words_add(&w, e->content + at);
        if (!w.n || seconds < 1 || seconds > 86400)
                return error_set(err, EPROTO, EXIT_STEP, "it has no words, or no time");
        units_reload(a); /* it may start a unit whose file has just been written */
        a->recheck = true;
        struct child *c = child_start(&a->session, w.v, false);
        int r = child_wait(&a->session, c, (int)seconds, err);
        if (r < 0 && c->ended && c->status) {
                error_release(err);
                r = command_failed(c, err);
        }
        child_free(&a->session, c);
        return r;
}

/* In order, because a later command may need an earlier one. */
void apply_commands(struct agent *a, struct entry *e, size_t n)
{
        const char *broken = NULL;
        for (size_t i = 0; i < n && session_alive(&a->session); i++) {
                struct error err CLEANUP(error_release) = { 0 };
                struct row *row = record_entry(a, &e[i]);
                if (e[i].state == STATE_SAME) {
                        entry_report(a, &e[i], STATE_SAME);
                        continue;
                }
                if (broken)
                        error_set(&err, ECHILD, EXIT_STEP, "not run, because %s failed", broken);
                else
                        command_run(a, &e[i], &err);
                if (err.code) {
                        broken = broken ? broken : e[i].name;
                        entry_failed(a, &e[i], &err);
                        continue;
                }
                memcpy(row->digest, e[i].digest, SHA256_HEX);
                record_save(a, &err); /* saved now, so that an interrupted run does not repeat it */
                entry_report(a, &e[i], e[i].state);
        }
}
