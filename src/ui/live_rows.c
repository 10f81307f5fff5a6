#include "base/index.h"
#include "base/utf8.h"
#include "ui/live_rows.h"
#include "ui/ui.h"

#define NAME_MAX_COLS 24 /* longer names are truncated */
#define STEP_MAX_COLS 18
#define BAR_COLS      12
#define BAR_MIN_COLS  60 /* narrower terminals have no room for a bar */
#define ERASE         "\x1b[K"

enum mark {
        MARK_DONE,
        MARK_WAITING,
        MARK_SKIPPED,
        MARK_STOPPED,
        MARK_RUNNING,
        MARK_FAILED
}; /* in the order of importance */
enum tone { PLAIN, GREEN, RED, DIM, BOLD, CYAN };

struct row {
        const char *name;
        const struct step *shown;
        enum mark mark;
        int64_t began, ended;
        bool picked;
};

struct rows {
        struct row *v;
        size_t n, seen[MARK_FAILED + 1];
        unsigned name_cols, step_cols;
};

struct line {
        struct str *out;
        const struct look *look;
        unsigned used;
};

static unsigned text_columns(const char *text)
{
        unsigned cols = 0;
        uint32_t cp;
        for (size_t n, len = strlen(text); len && (n = utf8_decode(text, len, &cp));
                text += n, len -= n)
                cols += utf8_width(cp);
        return cols;
}

/* Adds text, made harmless and truncated to `width` and to the edge of the terminal; padded with
 * spaces if `fill`. */
static void line_add(struct line *l, const char *text, unsigned width, bool fill)
{
        struct str clean CLEANUP(str_release) = { 0 };
        unsigned edge = l->look->cols - 1, left = l->used < edge ? edge - l->used : 0, used = 0;
        uint32_t cp;
        if (width > left)
                width = left;
        text_harmless(&clean, text, width + 1);
        bool cut = text_columns(str_text(&clean)) > width;
        const char *p = str_text(&clean);
        for (size_t n, len = clean.len;
                len && (n = utf8_decode(p, len, &cp)) && used + utf8_width(cp) + cut <= width;
                p += n, len -= n) {
                str_addn(l->out, p, n);
                used += utf8_width(cp);
        }
        if (cut && used < width) {
                str_add(l->out, l->look->utf8 ? "…" : "~");
                used++;
        }
        for (; fill && used < width; used++)
                str_addc(l->out, ' ');
        l->used += used;
}

static void line_tone(struct line *l, enum tone t)
{
        static const char *const codes[] = { "0", "32", "31", "2", "1", "36" };
        if (l->look->colour)
                str_addf(l->out, "\x1b[%sm", codes[t]);
}

static void line_add_toned(struct line *l, enum tone t, const char *text, unsigned width, bool fill)
{
        line_tone(l, t);
        line_add(l, text, width, fill);
        line_tone(l, PLAIN);
}

static void line_add_bar(struct line *l, int permille)
{
        unsigned full = (unsigned)(permille > 1000 ? 1000 : permille) * BAR_COLS / 1000;
        struct str bar CLEANUP(str_release) = { 0 };
        for (unsigned i = 0; i < BAR_COLS; i++)
                str_add(&bar, l->look->utf8 ? (i < full ? "█" : "░") : (i < full ? "#" : "."));
        line_add_toned(l, CYAN, str_text(&bar), BAR_COLS, false);
        line_add(l, "  ", 2, false);
}

static void line_add_seconds(struct line *l, int64_t ms)
{
        char text[32];
        int64_t s = ms / 1000;
        if (ms < 0)
                snprintf(text, sizeof(text), "%7s", "");
        else if (s < 100)
                snprintf(text, sizeof(text), "%5.1f s", (double)ms / 1000);
        else
                snprintf(text, sizeof(text), "%2" PRId64 "m %02" PRId64 "s", s / 60, s % 60);
        line_add_toned(l, DIM, text, 9, true);
}

static void line_add_mark(struct line *l, enum mark m)
{
        static const char *const marks[] = { "✓", "·", "–", "■", "", "✗" }, *const plain[] = { "+",
                ".", "-", "!", "", "x" };
        static const char *const wheel[] = { "⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏" },
                                 *const plain_wheel[] = { "|", "/", "-", "\\" };
        static const enum tone tones[] = { GREEN, DIM, DIM, RED, CYAN, RED };
        const struct look *k = l->look;
        const char *text = k->utf8 ? marks[m] : plain[m];
        if (m == MARK_RUNNING)
                text = k->utf8 ? wheel[k->tick % ARRAY_SIZE(wheel)]
                               : plain_wheel[k->tick % ARRAY_SIZE(plain_wheel)];
        line_add_toned(l, tones[m], text, 2, true);
}

/* ---- rows: which step of a node is shown ---- */

static enum mark mark_of(const struct step *s, const struct look *look)
{
        static const enum mark marks[] = { MARK_WAITING, MARK_RUNNING, MARK_DONE, MARK_DONE,
                MARK_FAILED, MARK_SKIPPED };
        return s->state == STEP_RUNNING && look->result ? MARK_STOPPED : marks[s->state];
}

/* In this order: a failure, the latest running step, the next one, the last one done. */
static void row_take(struct row *row, const struct step *s, const struct look *look)
{
        enum mark m = mark_of(s, look);
        bool later = m == MARK_RUNNING || m == MARK_STOPPED || m == MARK_DONE;
        if (s->began >= 0 && (row->began < 0 || s->began < row->began))
                row->began = s->began;
        if (s->ended > row->ended)
                row->ended = s->ended;
        if (row->shown && (m < row->mark || (m == row->mark && !later)))
                return;
        if (row->shown && m == MARK_DONE && s->ended < row->shown->ended)
                return;
        row->shown = s;
        row->mark = m;
}

static void rows_widen(unsigned *cols, const char *text, unsigned max)
{
        unsigned w = text_columns(text);
        if (w > *cols)
                *cols = w < max ? w : max;
}

static void rows_gather(struct rows *rows, const struct run *r, const struct look *look)
{
        struct index nodes CLEANUP(index_release) = { 0 };
        size_t cluster = SIZE_MAX;
        rows->v = xcalloc(r->count + 1, sizeof(*rows->v));
        for (const struct step *s = r->first; s; s = s->next) {
                struct row *row = s->node               ? index_get(&nodes, s->node)
                                  : cluster != SIZE_MAX ? &rows->v[cluster]
                                                        : NULL;
                if (!row) {
                        row = &rows->v[rows->n++];
                        *row = (struct row){
                                .name = s->node ? s->node : "cluster", .began = -1, .ended = -1
                        };
                        if (s->node)
                                index_put(&nodes, s->node, row);
                        else
                                cluster = rows->n - 1;
                        rows_widen(&rows->name_cols, row->name, NAME_MAX_COLS);
                }
                rows_widen(&rows->step_cols, s->name, STEP_MAX_COLS);
                row_take(row, s, look);
        }
        for (size_t i = 0; i < rows->n; i++)
                rows->seen[rows->v[i].mark]++;
}

/* Selects `room` of them: failures first, then running, waiting and done. They keep their order. */
static void rows_pick(struct rows *rows, size_t room)
{
        for (int m = MARK_FAILED; m >= 0; m--)
                for (size_t i = 0; i < rows->n && room; i++)
                        if ((int)rows->v[i].mark == m) {
                                rows->v[i].picked = true;
                                rows->seen[m]--;
                                room--;
                        }
}

/* ---- lines ---- */

static struct line block_line_begin(struct block *b, const struct look *look)
{
        return (struct line){ .out = &b->text, .look = look };
}

static void block_line_end(struct block *b, struct line *l)
{
        str_add(&b->text, ERASE "\n");
        b->widths = xrealloc(b->widths, (b->count + 1) * sizeof(*b->widths));
        b->widths[b->count++] = l->used;
}

static int64_t row_ms(const struct row *row, int64_t now)
{
        const struct step *s = row->shown;
        switch (row->mark) {
        case MARK_DONE:
                return row->began >= 0 ? row->ended - row->began : -1;
        case MARK_FAILED:
                return s->ended - s->began;
        case MARK_RUNNING:
        case MARK_STOPPED:
                return now - s->began;
        default:
                return -1;
        }
}

static const char *row_remark(const struct row *row)
{
        const struct step *s = row->shown;
        static const char *const remarks[] = { "", "waiting", "skipped", "interrupted" };
        if (row->mark == MARK_FAILED)
                return s->err.message;
        if (row->mark == MARK_RUNNING)
                return s->doing ? s->doing : "";
        return s->state == STEP_KEPT ? "unchanged" : remarks[row->mark];
}

static void draw_row(struct block *b, const struct rows *rows, const struct row *row,
        const struct run *r, const struct look *look)
{
        static const enum tone tones[] = { DIM, DIM, DIM, RED, PLAIN, RED };
        struct line l = block_line_begin(b, look);
        line_add_mark(&l, row->mark);
        line_add_toned(&l, BOLD, row->name, rows->name_cols, true);
        line_add(&l, "  ", 2, false);
        line_add_toned(&l, tones[row->mark], row->shown->name, rows->step_cols, true);
        line_add(&l, " ", 1, false);
        line_add_seconds(&l, row_ms(row, run_now(r)));
        if (row->mark == MARK_RUNNING && row->shown->permille >= 0 && look->cols >= BAR_MIN_COLS)
                line_add_bar(&l, row->shown->permille);
        line_add_toned(&l, tones[row->mark], row_remark(row), look->cols, false);
        block_line_end(b, &l);
}

static void draw_folded(
        struct block *b, const struct rows *rows, size_t hidden, const struct look *look)
{
        static const char *const words[] = { "done", "waiting", "skipped", "interrupted", "running",
                "failed" };
        struct line l = block_line_begin(b, look);
        struct str text CLEANUP(str_release) = { 0 };
        str_addf(&text, "%s and %zu more", look->utf8 ? "…" : "...", hidden);
        const char *before = ": ";
        for (size_t m = 0; m < ARRAY_SIZE(words); m++)
                if (rows->seen[m]) {
                        str_addf(&text, "%s%zu %s", before, rows->seen[m], words[m]);
                        before = ", ";
                }
        line_add(&l, "  ", 2, false);
        line_add_toned(&l, DIM, str_text(&text), look->cols, false);
        block_line_end(b, &l);
}

static void draw_total(struct block *b, const struct run *r, const struct look *look)
{
        struct line l = block_line_begin(b, look);
        struct str text CLEANUP(str_release) = { 0 };
        size_t done = 0, failed = 0;
        for (const struct step *s = r->first; s; s = s->next) {
                done += s->state == STEP_DONE || s->state == STEP_KEPT;
                failed += s->state == STEP_FAILED;
        }
        str_addf(&text, "%s %s", r->verb, r->cluster);
        if (look->result)
                str_addf(&text, ": %s", look->result);
        line_add_toned(&l,
                !look->result || streq(look->result, RESULT_DECLINED) ? BOLD
                : streq(look->result, "done")                         ? GREEN
                                                                      : RED,
                str_text(&text), look->cols, false);
        line_add(&l, " ", 1, false);
        line_add_seconds(&l, run_now(r));
        if (look->cols >= BAR_MIN_COLS)
                line_add_bar(&l, r->count ? (int)(done * 1000 / r->count) : 0);
        str_truncate(&text, 0);
        str_addf(&text, "%zu of %zu steps", done, r->count);
        if (failed)
                str_addf(&text, ", %zu failed", failed);
        line_add(&l, str_text(&text), look->cols, false);
        block_line_end(b, &l);
}

void block_draw(struct block *b, const struct run *r, const struct look *look)
{
        struct rows rows = { 0 };
        size_t room =
                look->rows > 2
                        ? look->rows - 2
                        : 0; /* the last row is for the cursor, the one before for the total */
        str_truncate(&b->text, 0);
        b->count = 0;
        rows_gather(&rows, r, look);
        if (rows.n > room && room)
                room--;
        rows_pick(&rows, room);
        for (size_t i = 0; i < rows.n; i++)
                if (rows.v[i].picked)
                        draw_row(b, &rows, &rows.v[i], r, look);
        if (rows.n > room && look->rows > 2)
                draw_folded(b, &rows, rows.n - room, look);
        draw_total(b, r, look);
        free(rows.v);
}

void block_release(struct block *b)
{
        str_release(&b->text);
        free(b->widths);
        *b = (struct block){ 0 };
}

size_t block_height(const struct block *b, unsigned cols)
{
        size_t height = 0;
        for (size_t i = 0; i < b->count; i++)
                height += b->widths[i] > cols ? (b->widths[i] + cols - 1) / cols : 1;
        return height;
}
