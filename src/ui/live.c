/* The block is redrawn in place: the cursor moves up by its height, then line by line. Failures and
 * problems are written above it and scroll away as ordinary text. */
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
        struct str above; /* text for the next drawing */
        int64_t drawn;    /* time of the last drawing, milliseconds of the run */
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

/* Measured for each drawing: ten times a second is as good as SIGWINCH, and needs no handler. */
static void live_measure(struct look *look)
{
        struct winsize w = { 0 };
        bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_row && w.ws_col;
        look->rows = known ? w.ws_row : 24;
        look->cols = known ? w.ws_col : 80;
}

/* One write, so that no partial frame is visible. A closed terminal is no failure of the run. */
static void live_write(const struct str *s)
{
        for (size_t at = 0; at < s->len;) {
                ssize_t n = write(STDERR_FILENO, s->data + at,
                        s->len - at); /* from block_draw, which has made it harmless */
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return;
                at += (size_t)n;
        }
}

static void live_draw(struct live *l)
{
        struct str out CLEANUP(str_release) = { 0 };
        live_measure(&l->look);
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
        live_write(&out);
        l->drawn = run_now(l->run);
}

static void live_on_timer(int fd, short what, void *arg)
{
        struct live *l = arg;
        l->look.tick++;
        live_draw(l);
}

/* The timer draws what comes in a burst; this draws after a step that blocked the loop. */
static void live_touch(struct live *l)
{
        int64_t now = run_now(l->run);
        if (now - l->drawn >= REDRAW_MS || now < l->drawn)
                live_draw(l);
}

static void live_say(struct live *l, const struct step *s, const char *what, const char *text)
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

static void live_on_step(struct run *r, struct step *s, void *arg)
{
        struct live *l = arg;
        if (s->state == STEP_FAILED)
                live_say(l, s, "failed: ", s->err.message);
        live_touch(l);
}

static void live_on_progress(struct run *r, struct step *s, void *arg) { live_touch(arg); }

/* Single files are not listed here: the report has them. */
static void live_on_change(struct run *r, struct step *s, const char *change, void *arg)
{
        if (!streq(s->name, "apply") || has_prefix(change, "failed"))
                live_say(arg, s, "", change);
        live_touch(arg);
}

/* For an exit without live_end: the cursor must not stay hidden. */
static bool hidden;

static void show_cursor(void)
{
        struct str s CLEANUP(str_release) = { 0 };
        str_add(&s, CURSOR_SHOW);
        if (hidden)
                live_write(&s);
        hidden = false;
}

struct live *live_observe(struct run *r)
{
        static bool registered;
        const char *no_colour = getenv("NO_COLOR");
        struct live *l = xcalloc(1, sizeof(*l));
        *l = (struct live){ .run = r,
                .drawn = -REDRAW_MS,
                .look = { .colour = !no_colour || !*no_colour, .utf8 = locale_is_utf8() } };
        if (!registered)
                atexit(show_cursor);
        registered = hidden = true;
        str_add(&l->above, CURSOR_HIDE);
        l->timer = event_new(r->base, -1, EV_PERSIST, live_on_timer, l);
        event_add(l->timer, &(struct timeval){ .tv_usec = REDRAW_MS * 1000 });
        run_observe(r, &(struct run_observer){ .on_step = live_on_step,
                               .on_progress = live_on_progress,
                               .on_change = live_on_change,
                               .arg = l });
        return l;
}

void live_pause(struct live *l)
{
        struct str out CLEANUP(str_release) = { 0 };
        live_measure(&l->look);
        size_t up = block_height(&l->block, l->look.cols);
        str_addc(&out, '\r');
        if (up)
                str_addf(&out, "\x1b[%zuA", up < l->look.rows ? up : l->look.rows - 1);
        str_add(&out, ERASE_BELOW CURSOR_SHOW);
        str_addn(&out, str_text(&l->above), l->above.len);
        str_truncate(&l->above, 0);
        live_write(&out);
        block_release(&l->block);
        l->block = (struct block){ 0 };
        str_add(&l->above, CURSOR_HIDE);
}

void live_end(struct live *l, const char *result)
{
        event_free(l->timer);
        l->look.result = result;
        live_draw(l);
        show_cursor();
        block_release(&l->block);
        str_release(&l->above);
        free(l);
}
