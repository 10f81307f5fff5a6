/* status --watch: redraws the table on a terminal; otherwise prints a line for every change, or one
 * JSON object per line. */
#include <sys/ioctl.h>
#include <time.h>

#include "base/utf8.h"
#include "cmd/status.h"

#define EVERY       2 /* seconds */
#define CURSOR_HIDE "\x1b[?25l"
#define CURSOR_SHOW "\x1b[?25h"
#define ERASE_LINE  "\x1b[K"
#define ERASE_BELOW "\x1b[J"

struct follow {
        json_t *last; /* the previous answer, or NULL */
        int height;   /* lines drawn */
        bool healthy, failed;
        void (*show)(struct follow *f, const json_t *answer);
};

static const char *status_watch_text_of(const json_t *o, const char *key)
{
        return json_string_value(json_object_get(o, key));
}

static void clock_text(char out[16])
{
        time_t t = time(NULL);
        struct tm tm;
        strftime(out, 16, "%H:%M:%S", localtime_r(&t, &tm));
}

/* ---- a terminal ---- */

static bool terminal(void)
{
        const char *term = getenv("TERM");
        return isatty(STDOUT_FILENO) && term && *term && !streq(term, "dumb");
}

/* The number of bytes of the line that fit; continuation bytes of UTF-8 take no column. */
static size_t fitting(const char *line, size_t n, int cols)
{
        size_t i = 0;
        for (int at = 0; i < n; i++)
                if (((unsigned char)line[i] & 0xc0) != 0x80 && ++at >= cols)
                        break;
        return i;
}

/* Moves up by the number of lines drawn before, then writes line by line. What does not fit into
 * the window is truncated, because wrapped lines would break the next drawing. */
static void compose(struct follow *f, const char *text, struct str *out)
{
        struct winsize w = { 0 };
        bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_row && w.ws_col;
        int rows = known ? w.ws_row : 24, cols = known ? w.ws_col : 80, height = 0;
        str_add(out, CURSOR_HIDE);
        if (f->height > 0)
                str_addf(out, "\x1b[%dA", f->height < rows ? f->height : rows - 1);
        str_add(out, "\r");
        for (size_t n; *text && height < rows - 1; text += n + (text[n] == '\n'), height++) {
                n = strcspn(text, "\n");
                str_addn(out, text, fitting(text, n, cols));
                str_add(out, ERASE_LINE "\n");
        }
        str_add(out, ERASE_BELOW);
        f->height = height;
}

static void draw(struct follow *f, const json_t *answer)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct str out CLEANUP(str_release) = { 0 };
        struct str text CLEANUP(str_release) = { 0 };
        char clock[16];
        clock_text(clock);
        text_addf(
                &text, "%s, %s (Ctrl-C ends)\n\n", status_watch_text_of(answer, "cluster"), clock);
        status_print(&text, answer, false, &a);
        compose(f, str_text(&text), &out);
        print_bytes(stdout, out.data, out.len); /* one write, so that no partial table is visible */
}

/* ---- lines ---- */

static void say(const char *fmt, ...) PRINTF(1, 2);
static void say(const char *fmt, ...)
{
        struct str s CLEANUP(str_release) = { 0 };
        char clock[16];
        va_list ap;
        va_start(ap, fmt);
        str_vaddf(&s, fmt, ap);
        va_end(ap);
        clock_text(clock);
        print("%s %s\n", clock, str_text(&s));
}

static char *value_text(const json_t *v)
{
        if (json_is_boolean(v))
                return xstrdup(json_is_true(v) ? "yes" : "no");
        if (json_is_integer(v))
                return xasprintf("%" JSON_INTEGER_FORMAT, json_integer_value(v));
        return xstrdup(json_is_string(v) ? json_string_value(v) : "unknown");
}

static void status_watch_compare(
        const char *what, const json_t *before, const json_t *after, const char *const *keys)
{
        for (; *keys; keys++) {
                const json_t *a = json_object_get(before, *keys),
                             *b = json_object_get(after, *keys);
                if (json_equal(a, b))
                        continue;
                char *from CLEANUP(free_p) = value_text(a), *to CLEANUP(free_p) = value_text(b);
                say("%s: %s: %s, was %s", what, *keys, to, from);
        }
}

static void compare_lists(const char *word, const char *name, const json_t *before,
        const json_t *after, const char *const *keys)
{
        size_t i;
        const json_t *o;
        json_array_foreach(after, i, o)
        {
                char *what CLEANUP(free_p) =
                        xasprintf("%s %s", word, status_watch_text_of(o, name));
                status_watch_compare(what, json_array_get(before, i), o, keys);
        }
}

static bool status_watch_listed(const json_t *list, const json_t *item)
{
        size_t i;
        const json_t *o;
        json_array_foreach(list, i, o) if (json_equal(o, item)) return true;
        return false;
}

static void problems(const char *word, const json_t *list, const json_t *other)
{
        size_t i;
        const json_t *o;
        json_array_foreach(list, i, o) if (!status_watch_listed(other, o))
                say("%s: %s", word, json_string_value(o));
}

static void lines(struct follow *f, const json_t *answer)
{
        static const char *const
                node[] = { "machine", "ready", "version", "drift", "address", NULL },
                *const api[] = { "ready", "version", NULL }, *const server[] = { "ready", NULL },
                *const etcd[] = { "healthy", "leader", "version", NULL },
                *const whole[] = { "run", "healthy", NULL };
        const json_t *last = f->last, *now = json_object_get(answer, "problems"),
                     *before = json_object_get(last, "problems");
        if (last) {
                compare_lists("node", "name", json_object_get(last, "nodes"),
                        json_object_get(answer, "nodes"), node);
                status_watch_compare(
                        "API", json_object_get(last, "api"), json_object_get(answer, "api"), api);
                compare_lists("API server on", "node",
                        json_object_get(json_object_get(last, "api"), "servers"),
                        json_object_get(json_object_get(answer, "api"), "servers"), server);
                compare_lists("etcd on", "node", json_object_get(last, "etcd"),
                        json_object_get(answer, "etcd"), etcd);
                status_watch_compare(status_watch_text_of(answer, "cluster"), last, answer, whole);
        } else {
                size_t n = json_array_size(json_object_get(answer, "nodes"));
                say("%s is %s, %zu node%s", status_watch_text_of(answer, "cluster"),
                        json_is_true(json_object_get(answer, "healthy")) ? "healthy"
                                                                         : "not healthy",
                        n, n == 1 ? "" : "s");
        }
        problems("problem", now, before);
        problems("solved", before, now);
}

static void object(struct follow *f, const json_t *answer)
{
        print_json(answer, JSON_COMPACT | JSON_PRESERVE_ORDER);
}

/* ---- entry point ---- */

static bool on_status_watch_answer(const json_t *answer, bool healthy, void *arg)
{
        struct follow *f = arg;
        f->healthy = healthy;
        f->show(f, answer);
        json_decref(f->last);
        f->last = json_deep_copy(answer);
        return fflush(stdout) == 0; /* the reader has closed the pipe */
}

int status_follow(struct reach *r, const struct options *o, struct error *err)
{
        bool json = o->output && streq(o->output, "json");
        struct follow f = { .show = json ? object : terminal() ? draw : lines };
        int e = status_watch(&r->site, EVERY, on_status_watch_answer, &f, err);
        if (f.show == draw)
                print_bytes(stdout, CURSOR_SHOW, strlen(CURSOR_SHOW));
        json_decref(f.last);
        return e < 0 ? e : f.healthy ? EXIT_OK : EXIT_UNHEALTHY;
}
