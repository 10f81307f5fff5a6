#include "base/quote.h"
#include "base/utf8.h"
#include "config/problem.h"

#define MESSAGE_MAX 500 /* characters */
#define WIDTH       100 /* columns of a source line that are shown */

/* `field` may be dotted: the deepest part that is written is the place. */
static const struct tree *place_of(const struct tree *at, const char *field)
{
        const struct tree *t = tree_get(at, field);
        for (const char *dot; !t && (dot = strchr(field, '.')); field = dot + 1) {
                char *head CLEANUP(free_p) = xstrndup(field, (size_t)(dot - field));
                const struct tree *inner = tree_get(at, head);
                if (!inner)
                        break;
                at = inner;
                t = tree_get(at, dot + 1);
        }
        return t ? t : at;
}

static const char *harmless(struct arena *a, const char *text)
{
        struct str s CLEANUP(str_release) = { 0 };
        text_harmless(&s, text, MESSAGE_MAX);
        return arena_strdup(a, str_text(&s));
}

/* ---- values that are not shown ---- */

#define MASK_LEAST 4  /* characters of a value that is masked */
#define MASK_PART  16 /* messages cut long values: so much of the beginning is enough */

static void mask_add(struct problems *p, const char *text, const char *instead)
{
        struct problem_mask *m = arena_new(p->arena, struct problem_mask);
        *m = (struct problem_mask){ text, instead, p->masks };
        p->masks = m;
}

void problem_mask(struct problems *p, const char *name, const char *value)
{
        if (strlen(value) < MASK_LEAST)
                return;
        struct str shown CLEANUP(str_release) = { 0 };
        const char *instead = arena_printf(p->arena, "${%s}", name);
        text_harmless(&shown, value, strlen(value)); /* messages show values in this form */
        mask_add(p, arena_strdup(p->arena, value), instead);
        if (!streq(value, str_text(&shown)))
                mask_add(p, arena_strdup(p->arena, str_text(&shown)), instead);
}

void problem_hide(struct problems *p, const struct tree *at)
{
        struct problem_hidden *h = arena_new(p->arena, struct problem_hidden);
        *h = (struct problem_hidden){ at, p->hidden };
        p->hidden = h;
}

/* How many characters at `at` are of a masked text; 0: none. */
static size_t masked(const struct problem_mask *m, const char *at)
{
        size_t n = 0;
        while (m->text[n] && m->text[n] == at[n])
                n++;
        return !m->text[n] || n >= MASK_PART ? n : 0;
}

static const char *mask_all(struct problems *p, const char *text)
{
        struct str s CLEANUP(str_release) = { 0 };
        while (p->masks && *text) {
                const struct problem_mask *longest = NULL;
                size_t most = 0, n;
                for (const struct problem_mask *m = p->masks; m; m = m->next)
                        if ((n = masked(m, text)) > most) {
                                most = n;
                                longest = m;
                        }
                if (most)
                        str_add(&s, longest->instead);
                else
                        str_addc(&s, *text);
                text += most ? most : 1;
        }
        return harmless(p->arena, p->masks ? str_text(&s) : text);
}

static void problem_add_path(struct str *path, const struct tree *at, const char *field)
{
        tree_path(path, at, NULL);
        /* a shorthand: the value stands for the field */
        if (!field || (at && at->kind == TREE_SCALAR))
                return;
        if (path->len && !streq(str_text(path), "spec"))
                str_addc(path, '.');
        else
                str_truncate(path, 0);
        str_add(path, field);
}

static void problem_put(struct problems *p, const struct tree *at, const char *field, bool key,
        bool warning, const char *hint, const char *fmt, va_list ap)
{
        size_t before = p->errors + p->warnings;
        *(warning ? &p->warnings : &p->errors) += 1;
        if (before >= PROBLEMS_MAX)
                return;
        struct str text CLEANUP(str_release) = { 0 }, path CLEANUP(str_release) = { 0 };
        struct problem *x = arena_new(p->arena, struct problem);
        const struct tree *place = at ? at : p->root;
        if (place && field)
                place = place_of(place, field);
        if (place) {
                x->file = place->file;
                x->line = key && place->key_line ? place->key_line : place->line;
                x->col = key && place->key_line ? place->key_col : place->col;
        }
        str_vaddf(&text, fmt, ap);
        problem_add_path(&path, at ? at : p->root, field);
        x->path = mask_all(p, str_text(&path));
        x->message = mask_all(p, str_text(&text));
        x->hint = hint ? mask_all(p, hint) : NULL;
        x->warning = warning;
        if (p->last)
                p->last->next = x;
        else
                p->first = x;
        p->last = x;
}

void problem_add(struct problems *p, const struct tree *at, const char *field, const char *hint,
        const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        problem_put(p, at, field, false, false, hint, fmt, ap);
        va_end(ap);
}

void problem_add_key(
        struct problems *p, const struct tree *at, const char *hint, const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        problem_put(p, at, NULL, true, false, hint, fmt, ap);
        va_end(ap);
}

void problem_warn(struct problems *p, const struct tree *at, const char *field, const char *hint,
        const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        problem_put(p, at, field, false, true, hint, fmt, ap);
        va_end(ap);
}

static int problem_compare(const struct problem *x, const struct problem *y)
{
        unsigned fx = x->file ? x->file->order + 1 : 0, fy = y->file ? y->file->order + 1 : 0;
        if (fx != fy)
                return fx < fy ? -1 : 1;
        if (x->line != y->line)
                return x->line < y->line ? -1 : 1;
        return x->col < y->col ? -1 : x->col > y->col;
}

/* Problems of one place stay in the order in which they were found. */
static struct problem *merge_sort(struct problem *list, size_t n)
{
        if (n < 2)
                return list;
        struct problem *right = list, *head = NULL, **end = &head;
        for (size_t i = 1; i < n / 2; i++)
                right = right->next;
        struct problem *cut = right;
        right = right->next;
        cut->next = NULL;
        list = merge_sort(list, n / 2);
        right = merge_sort(right, n - n / 2);
        while (list && right) {
                struct problem **from = problem_compare(list, right) <= 0 ? &list : &right;
                *end = *from;
                end = &(*end)->next;
                *from = (*from)->next;
        }
        *end = list ? list : right;
        return head;
}

static void sort(struct problems *p)
{
        size_t n = 0;
        for (const struct problem *x = p->first; x; x = x->next)
                n++;
        p->first = merge_sort(p->first, n);
        for (p->last = p->first; p->last && p->last->next;)
                p->last = p->last->next;
}

/* Reads a file's lines forward: problems come sorted, so the text is walked once. */
struct lines {
        const struct problem_hidden *hidden;
        const struct tree_file *file;
        const char *at;
        uint32_t line;
};

static bool line_hidden(const struct lines *l, const struct problem *x, uint32_t col)
{
        for (const struct problem_hidden *h = l->hidden; h; h = h->next)
                if (h->at->file == x->file && h->at->line == x->line && h->at->col <= col)
                        return true;
        return false;
}

static const char *find_line(struct lines *l, const struct problem *x, size_t *len)
{
        if (l->file != x->file || l->line > x->line)
                *l = (struct lines){ l->hidden, x->file, x->file->text, 1 };
        const char *end = x->file->text + x->file->len, *next;
        for (; l->line < x->line && l->at < end; l->line++) {
                line_end(l->at, end, &next);
                l->at = next;
        }
        *len = (size_t)(line_end(l->at, end, &next) - l->at);
        return l->at;
}

/* One character of a source line as it is shown: what a terminal would act on is a question mark, a
 * tab one space. */
static size_t problem_show(struct str *s, const char *p, size_t n, unsigned *width)
{
        uint32_t cp = 0;
        size_t len = utf8_decode(p, n, &cp);
        bool good = len && utf8_visible(cp);
        *width = good ? utf8_width(cp) : 1;
        if (good)
                str_addn(s, p, len);
        else
                str_addc(s, len && cp == '\t' ? ' ' : '?');
        return len ? len : 1;
}

/* Whether the byte is part of a URL's user and password: "://ME:WORD@". */
static bool in_login(const char *text, size_t len, size_t i)
{
        size_t begin = i, end = i;
        while (begin > 0 && !strchr("/@ \"'", text[begin - 1]))
                begin--;
        while (end < len && !strchr("/@ \"'", text[end]))
                end++;
        return begin >= 3 && memcmp(text + begin - 3, "://", 3) == 0 && end < len &&
               text[end] == '@' && i < end;
}

/* The line with its caret, cut to a window around it when it is long. */
static void add_source(struct str *out, struct lines *l, const struct problem *x)
{
        size_t len, i = 0;
        const char *text = find_line(l, x, &len);
        if (strspn(text, " \t\r") >= len)
                return;
        struct str line CLEANUP(str_release) = { 0 };
        unsigned columns = 0, width = 1;
        int caret = -1;
        /* the first character that is shown */
        uint32_t first = len > WIDTH && x->col > WIDTH - 20 ? x->col - WIDTH / 2 : 1;
        for (uint32_t col = 1; i < len && columns < WIDTH; col++) {
                size_t before = line.len;
                size_t n = problem_show(&line, text + i, len - i, &width);
                if (in_login(text, len, i) || line_hidden(l, x, col)) {
                        str_truncate(&line, before);
                        str_addc(&line, '*');
                        width = 1;
                }
                i += n;
                if (col < first) {
                        str_truncate(&line, before);
                        continue;
                }
                if (col == x->col)
                        caret = (int)columns;
                columns += width;
        }
        if (caret < 0) /* behind the end of the line */
                caret = (int)columns;
        str_addf(out, "\n%5u | %s%s%s\n      | %*s^", x->line, first > 1 ? "..." : "",
                str_text(&line), i < len ? "..." : "", caret + (first > 1 ? 3 : 0), "");
}

static void add_problem(struct str *out, struct lines *l, const struct problem *x)
{
        if (x->file) {
                text_harmless(out, x->file->name, MESSAGE_MAX);
                str_addf(out, ":%u:%u: ", x->line, x->col);
        }
        str_addf(out, "%s%s%s%s", x->warning ? "warning: " : "", x->path, *x->path ? ": " : "",
                x->message);
        if (x->file)
                add_source(out, l, x);
        if (x->hint)
                str_addf(out, "\nhint: %s", x->hint);
        str_addc(out, '\n');
}

void problems_text(struct problems *p, size_t max, struct str *out)
{
        struct lines l = { .hidden = p->hidden };
        size_t shown = 0, all = p->errors + p->warnings;
        sort(p);
        for (const struct problem *x = p->first; x && (!max || shown < max); x = x->next) {
                if (shown++)
                        str_addc(out, '\n');
                add_problem(out, &l, x);
        }
        if (shown < all)
                str_addf(out, "\nand %zu more\n", all - shown);
}

void problems_json(struct problems *p, struct str *out)
{
        sort(p);
        str_addc(out, '[');
        for (const struct problem *x = p->first; x; x = x->next) {
                str_add(out, x == p->first ? "{\"file\":" : ",{\"file\":");
                x->file ? quote_json(out, x->file->name) : str_add(out, "null");
                str_addf(out, ",\"line\":%u,\"column\":%u,\"path\":", x->line, x->col);
                quote_json(out, x->path);
                str_add(out, ",\"message\":");
                quote_json(out, x->message);
                str_add(out, ",\"hint\":");
                x->hint ? quote_json(out, x->hint) : str_add(out, "null");
                str_addf(out, ",\"severity\":\"%s\"}", x->warning ? "warning" : "error");
        }
        str_addc(out, ']');
}
