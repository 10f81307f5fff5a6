/* The journal has a line before and after each step, so that the next run can say where a killed
 * one stopped. It is only appended to; what is done is found by checking the machines, so a lost
 * line costs nothing but that message. */
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "base/print.h"
#include "run/run.h"

#define JOURNAL_MAX  ((size_t)4 << 20)  /* of one file; a full one is renamed to journal.1.jsonl, */
#define JOURNAL_ROOM ((size_t)64 << 10) /* free space in a file for the start of a run */
#define JOURNAL_KEEP \
        4 /* that one to journal.2.jsonl, and so on: so many are kept besides the current one */

struct journal {
        int fd;
        char *dir, *path;
        size_t size;
        bool full; /* it cannot be renamed: writing continues */
        struct run *run;
};

static const char *const state_names[] = { "waiting", "begin", "done", "kept", "failed",
        "skipped" };

static int journal_begin(struct journal *j, struct error *err);

static void journal_append(struct journal *j, json_t *line)
{
        struct error ignored CLEANUP(error_release) = { 0 };
        char *text CLEANUP(free_p) = json_dumps(line, JSON_COMPACT | JSON_ENSURE_ASCII);
        json_decref(line);
        if (!text)
                return;
        char *whole CLEANUP(free_p) = xasprintf("%s\n", text);
        if (j->size + strlen(whole) > JOURNAL_MAX && !j->full)
                journal_begin(j, &ignored);
        if (write(j->fd, whole, strlen(whole)) > 0) /* one write: a line is complete or absent */
                j->size += strlen(whole);
}

static void journal_on_step(struct run *r, struct step *s, void *arg)
{
        json_t *line = json_object();
        json_object_set_new(line, "ms", json_integer(s->ended >= 0 ? s->ended : s->began));
        json_object_set_new(line, "step", json_text(s->name));
        if (s->node)
                json_object_set_new(line, "node", json_text(s->node));
        json_object_set_new(line, "state", json_string(state_names[s->state]));
        if (s->err.message)
                json_object_set_new(line, "error", json_text(s->err.message));
        journal_append(arg, line);
}

static void journal_on_change(struct run *r, struct step *s, const char *change, void *arg)
{
        json_t *line = json_object();
        json_object_set_new(line, "step", json_text(s->name));
        if (s->node)
                json_object_set_new(line, "node", json_text(s->node));
        json_object_set_new(line, "changed", json_text(change));
        journal_append(arg, line);
}

static void journal_time(int64_t ms, char out[32])
{
        time_t t = (time_t)(ms / 1000);
        struct tm tm;
        strftime(out, 32, "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&t, &tm));
}

/* Updates the set of open steps of the last run. */
static void journal_follow(json_t *open, json_t *line)
{
        const char *step = json_string_value(json_object_get(line, "step")),
                   *node = json_string_value(json_object_get(line, "node"));
        const char *state = json_string_value(json_object_get(line, "state"));
        if (!step || !state)
                return;
        char *key CLEANUP(free_p) = node ? xasprintf("%s %s", step, node) : xstrdup(step);
        if (streq(state, "begin"))
                json_object_set_new(open, key, json_true());
        else
                json_object_del(open, key);
}

/* Where the last run stopped without an end; NULL when it ended. */
static const char *journal_last_run(const char *text, struct arena *a)
{
        json_t *open = json_object();
        const char *verb = NULL, *begun = NULL;
        for (const char *p = text, *end; *p; p = end + 1) {
                end = strchrnul(p, '\n');
                json_t *line = json_loadb(p, (size_t)(end - p), 0, NULL);
                if (json_object_get(line, "run")) {
                        char when[32];
                        json_object_clear(open);
                        journal_time(json_integer_value(json_object_get(line, "time")), when);
                        verb = arena_strdup(
                                a, json_string_value(json_object_get(line, "run"))
                                           ? json_string_value(json_object_get(line, "run"))
                                           : "a run");
                        begun = arena_strdup(a, when);
                } else if (json_object_get(line, "end")) {
                        verb = NULL;
                } else {
                        journal_follow(open, line);
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
                json_object_foreach(open, key, value) if (n++ < 4)
                        str_addf(&s, "%s%s", n > 1 ? ", " : "", key);
                if (n > 4)
                        str_addf(&s, " and %zu more", n - 4);
                out = arena_printf(a, "'%s', begun %s, stopped %s%s", verb, begun, n ? "in: " : "",
                        n ? str_text(&s) : "between two steps");
        }
        json_decref(open);
        return out;
}

static void journal_free(struct journal *j)
{
        close_p(&j->fd);
        free(j->dir);
        free(j->path);
        free(j);
}

static char *journal_name(const struct journal *j, unsigned n)
{
        char *name CLEANUP(free_p) = xasprintf("journal.%u.jsonl", n);
        return path_join(j->dir, name);
}

/* Renames full files by one; the oldest is removed. */
static void journal_rotate(struct journal *j)
{
        for (unsigned n = JOURNAL_KEEP; n > 0; n--) {
                char *from CLEANUP(free_p) = n > 1 ? journal_name(j, n - 1) : xstrdup(j->path),
                           *to CLEANUP(free_p) = journal_name(j, n);
                if (rename(from, to) < 0 && n == 1)
                        j->full = true;
        }
}

/* Opens the file, or a new one when it is full: it starts with the run and its running steps. */
static int journal_begin(struct journal *j, struct error *err)
{
        struct stat st;
        if (stat(j->path, &st) == 0 && (size_t)st.st_size >= JOURNAL_MAX - JOURNAL_ROOM)
                journal_rotate(j);
        int fd = open(j->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (fd < 0)
                return error_set(err, errno, EXIT_STATE, "cannot write the journal %s: %s", j->path,
                        strerror(errno));
        close_p(&j->fd);
        j->fd = fd;
        j->size = fstat(fd, &st) == 0 ? (size_t)st.st_size : 0;
        struct run *r = j->run;
        journal_append(j, json_pack("{s:s, s:s, s:I, s:i}", "run", r->verb, "cluster", r->cluster,
                                  "time", (json_int_t)r->wall, "pid", (int)getpid()));
        for (struct step *s = r->first; s; s = s->next)
                if (s->state == STEP_RUNNING)
                        journal_on_step(r, s, j);
        return 0;
}

/* Reads the current file. A run that began in an earlier file appears in it as a run of its own. */
static int journal_last(const struct journal *j, const char **last, struct error *err)
{
        struct str text CLEANUP(str_release) = { 0 };
        struct stat st;
        if (stat(j->path, &st) < 0)
                return 0;
        if ((uint64_t)st.st_size >
                2 * JOURNAL_MAX) /* written by a version without this limit: renamed unread */
                return 0;
        int r = file_read(j->path, 2 * JOURNAL_MAX, &text, err);
        if (r == 0)
                *last = journal_last_run(str_text(&text), j->run->arena);
        return r;
}

int journal_open(
        const char *dir, struct run *r, struct journal **out, const char **last, struct error *err)
{
        struct journal *j = xcalloc(1, sizeof(*j));
        *j = (struct journal){
                .fd = -1, .dir = xstrdup(dir), .path = path_join(dir, "journal.jsonl"), .run = r
        };
        *last = NULL;
        int e = journal_last(j, last, err);
        if (e == 0)
                e = journal_begin(j, err);
        if (e < 0) {
                journal_free(j);
                return e;
        }
        run_observe(
                r, &(struct run_observer){
                           .on_step = journal_on_step, .on_change = journal_on_change, .arg = j });
        *out = j;
        return 0;
}

void journal_close(struct journal *j, const char *result)
{
        if (!j)
                return;
        journal_append(j, json_pack("{s:s}", "end", result));
        fsync(j->fd);
        journal_free(j);
}
