/* The journal: a line before and a line after each step, so that a run that was killed can say where it was. Appended, never rewritten;
 * what is done is found by looking at the machines, so a lost line costs nothing but a remark. */
#include <fcntl.h>
#include <jansson.h>
#include <time.h>

#include "base/file.h"
#include "cluster/run.h"

#define JOURNAL_MAX ((size_t)8 << 20) /* an older one is put aside as journal.1 */

struct journal {
        int fd;
        struct run *run;
};

static const char *const state_names[] = { "waiting", "begin", "done", "kept", "failed", "skipped" };

static void append(struct journal *j, json_t *line)
{
        char *text CLEANUP(free_p) = json_dumps(line, JSON_COMPACT);
        json_decref(line);
        if (!text)
                return;
        char *whole CLEANUP(free_p) = xasprintf("%s\n", text);
        (void)!write(j->fd, whole, strlen(whole)); /* one write: a line is whole or absent */
}

static void on_step(struct run *r, struct step *s, void *arg)
{
        json_t *line = json_object();
        json_object_set_new(line, "ms", json_integer(s->ended >= 0 ? s->ended : s->began));
        json_object_set_new(line, "step", json_string(s->name));
        if (s->node)
                json_object_set_new(line, "node", json_string(s->node));
        json_object_set_new(line, "state", json_string(state_names[s->state]));
        if (s->err.message)
                json_object_set_new(line, "error", json_string(s->err.message));
        append(arg, line);
}

static void on_change(struct run *r, struct step *s, const char *change, void *arg)
{
        json_t *line = json_object();
        json_object_set_new(line, "step", json_string(s->name));
        if (s->node)
                json_object_set_new(line, "node", json_string(s->node));
        json_object_set_new(line, "changed", json_string(change));
        append(arg, line);
}

static void text_time(int64_t ms, char out[32])
{
        time_t t = (time_t)(ms / 1000);
        struct tm tm;
        strftime(out, 32, "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&t, &tm));
}

/* Marks a step of the last run as begun or ended in the set of open ones. */
static void follow(json_t *open, json_t *line)
{
        const char *step = json_string_value(json_object_get(line, "step")), *node = json_string_value(json_object_get(line, "node"));
        const char *state = json_string_value(json_object_get(line, "state"));
        if (!step || !state)
                return;
        char *key CLEANUP(free_p) = node ? xasprintf("%s %s", step, node) : xstrdup(step);
        if (streq(state, "begin"))
                json_object_set_new(open, key, json_true());
        else
                json_object_del(open, key);
}

/* Where the last run was when it stopped without saying so; NULL when it ended. */
static const char *last_run(const char *text, struct arena *a)
{
        json_t *open = json_object();
        const char *verb = NULL, *begun = NULL;
        for (const char *p = text, *end; *p; p = end + 1) {
                end = strchrnul(p, '\n');
                json_t *line = json_loadb(p, (size_t)(end - p), 0, NULL);
                if (json_object_get(line, "run")) {
                        char when[32];
                        json_object_clear(open);
                        text_time(json_integer_value(json_object_get(line, "time")), when);
                        verb = arena_strdup(a, json_string_value(json_object_get(line, "run")) ? json_string_value(json_object_get(line, "run")) : "a run");
                        begun = arena_strdup(a, when);
                } else if (json_object_get(line, "end")) {
                        verb = NULL;
                } else {
                        follow(open, line);
                }
                json_decref(line);
                if (!*end)
                        break;
        }
        const char *out = NULL;
        if (verb) {
                struct str s CLEANUP(str_release) = { 0 };
                const char *key;
                json_t *value;
                size_t n = 0;
                json_object_foreach(open, key, value) if (n++ < 4) str_addf(&s, "%s%s", n > 1 ? ", " : "", key);
                if (n > 4)
                        str_addf(&s, " and %zu more", n - 4);
                out = arena_printf(a, "'%s', begun %s, stopped in: %s", verb, begun, n ? str_text(&s) : "between two steps");
        }
        json_decref(open);
        return out;
}

int journal_open(const char *dir, struct run *r, struct journal **out, const char **last, struct error *err)
{
        char *path CLEANUP(free_p) = path_join(dir, "journal.jsonl");
        struct str text CLEANUP(str_release) = { 0 };
        *last = NULL;
        if (access(path, F_OK) == 0) {
                int read = file_read(path, 2 * JOURNAL_MAX, &text, err);
                if (read < 0 && read != -EFBIG)
                        return read;
                *last = last_run(str_text(&text), r->arena);
                if (text.len > JOURNAL_MAX) {
                        char *aside CLEANUP(free_p) = path_join(dir, "journal.1.jsonl");
                        rename(path, aside);
                }
        }
        error_release(err);
        int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (fd < 0)
                return error_set(err, errno, EXIT_STATE, "cannot write the journal %s: %s", path, strerror(errno));
        struct journal *j = xcalloc(1, sizeof(*j));
        *j = (struct journal){ .fd = fd, .run = r };
        append(j, json_pack("{s:s, s:s, s:I, s:i}", "run", r->verb, "cluster", r->cluster, "time", (json_int_t)r->began, "pid", (int)getpid()));
        run_observe(r, &(struct run_observer){ .on_step = on_step, .on_change = on_change, .arg = j });
        *out = j;
        return 0;
}

void journal_close(struct journal *j, const char *result)
{
        if (!j)
                return;
        append(j, json_pack("{s:s}", "end", result));
        fsync(j->fd);
        close(j->fd);
        free(j);
}
