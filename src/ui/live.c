/* The block is drawn over itself: up by its height, then line by line. What must stay (failures, problems) is written above it and scrolls away as ordinary text. */
#include <event2/event.h>
#include <sys/ioctl.h>

#include "base/utf8.h"
#include "ui/live.h"
#include "ui/live_rows.h"

#define REDRAW_MS   100
#define CURSOR_HIDE "\x1b[?25l"
#define CURSOR_SHOW "\x1b[?25h"
#define ERASE_BELOW "\x1b[J"

struct live {
        struct run *run;
        struct event *timer;
        struct look look;
        struct block block;
        struct str above; /* waits for the next drawing */
        int64_t drawn;    /* when, milliseconds of the run */
};

bool live_possible(void)
{
        const char *term = getenv("TERM");
        return isatty(STDERR_FILENO) && term && *term && !streq(term, "dumb");
}

static bool locale_is_utf8(void)
{
        static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                const char *v = getenv(names[i]);
                if (v && *v)
                        return strcasestr(v, "utf-8") || strcasestr(v, "utf8");
        }
        return false;
}

/* Asked anew for every drawing: ten times a second is as good as SIGWINCH, and no handler is needed. */
static void measure(struct look *look)
{
        struct winsize w = { 0 };
        bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_row && w.ws_col;
        look->rows = known ? w.ws_row : 24;
        look->cols = known ? w.ws_col : 80;
}

/* One write, so that no half of a frame is seen. A terminal that is gone is not our failure. */
static void put(const struct str *s)
{
        for (size_t at = 0; at < s->len;) {
                ssize_t n = write(STDERR_FILENO, s->data + at, s->len - at);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return;
                at += (size_t)n;
        }
}

static void draw(struct live *l)
{
        struct str out CLEANUP(str_release) = { 0 };
        measure(&l->look);
        size_t up = block_height(&l->block, l->look.cols);
        if (up >= l->look.rows)
                up = l->look.rows - 1;
        str_addc(&out, '\r');
        if (up)
                str_addf(&out, "\x1b[%zuA", up);
        if (l->above.len || up != l->block.count)
                str_add(&out, ERASE_BELOW);
        str_addn(&out, str_text(&l->above), l->above.len);
        str_truncate(&l->above, 0);
        block_draw(&l->block, l->run, &l->look);
        str_addn(&out, l->block.text.data, l->block.text.len);
        str_add(&out, ERASE_BELOW);
        put(&out);
        l->drawn = run_now(l->run);
}

static void on_timer(int fd, short what, void *arg)
{
        struct live *l = arg;
        l->look.tick++;
        draw(l);
}

/* The timer draws what comes in a burst; this draws what comes after a step that kept the loop busy. */
static void touch(struct live *l)
{
        int64_t now = run_now(l->run);
        if (now - l->drawn >= REDRAW_MS || now < l->drawn)
                draw(l);
}

static void say(struct live *l, const struct step *s, const char *what, const char *text)
{
        if (l->look.colour && *what)
                str_add(&l->above, "\x1b[31m");
        if (s->node) {
                text_harmless(&l->above, s->node, SIZE_MAX);
                str_add(&l->above, ": ");
        }
        text_harmless(&l->above, s->name, SIZE_MAX);
        str_addf(&l->above, ": %s", what);
        text_harmless(&l->above, text, SIZE_MAX);
        str_addf(&l->above, "%s\n", l->look.colour && *what ? "\x1b[0m" : "");
}

static void on_step(struct run *r, struct step *s, void *arg)
{
        struct live *l = arg;
        if (s->state == STEP_FAILED)
                say(l, s, "failed: ", s->err.message);
        touch(l);
}

static void on_progress(struct run *r, struct step *s, void *arg) { touch(arg); }

/* Every single file would hide what matters: they are in the report. */
static void on_change(struct run *r, struct step *s, const char *change, void *arg)
{
        if (!streq(s->name, "apply") || has_prefix(change, "failed"))
                say(arg, s, "", change);
        touch(arg);
}

/* For an end that goes past live_end (exit): the cursor must not stay away. */
static bool hidden;

static void show_cursor(void)
{
        struct str s CLEANUP(str_release) = { 0 };
        str_add(&s, CURSOR_SHOW);
        if (hidden)
                put(&s);
        hidden = false;
}

struct live *live_observe(struct run *r)
{
        static bool registered;
        const char *no_colour = getenv("NO_COLOR");
        struct live *l = xcalloc(1, sizeof(*l));
        *l = (struct live){ .run = r, .drawn = -REDRAW_MS, .look = { .colour = !no_colour || !*no_colour, .utf8 = locale_is_utf8() } };
        if (!registered)
                atexit(show_cursor);
        registered = hidden = true;
        str_add(&l->above, CURSOR_HIDE);
        l->timer = event_new(r->base, -1, EV_PERSIST, on_timer, l);
        event_add(l->timer, &(struct timeval){ .tv_usec = REDRAW_MS * 1000 });
        run_observe(r, &(struct run_observer){ .on_step = on_step, .on_progress = on_progress, .on_change = on_change, .arg = l });
        return l;
}

void live_pause(struct live *l)
{
        struct str out CLEANUP(str_release) = { 0 };
        measure(&l->look);
        size_t up = block_height(&l->block, l->look.cols);
        str_addc(&out, '\r');
        if (up)
                str_addf(&out, "\x1b[%zuA", up < l->look.rows ? up : l->look.rows - 1);
        str_add(&out, ERASE_BELOW CURSOR_SHOW);
        str_addn(&out, str_text(&l->above), l->above.len);
        str_truncate(&l->above, 0);
        put(&out);
        block_release(&l->block);
        l->block = (struct block){ 0 };
        str_add(&l->above, CURSOR_HIDE);
}

void live_end(struct live *l, const char *result)
{
        event_free(l->timer);
        l->look.result = result;
        draw(l);
        show_cursor();
        block_release(&l->block);
        str_release(&l->above);
        free(l);
}
