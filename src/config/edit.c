#include "base/tree_edit.h"
#include "base/utf8.h"
#include "config/edit.h"

static int by_hand(const struct tree *t, struct error *err)
{
        if (t->written) {
                error_set(err, EINVAL, EXIT_CONFIG,
                        "%s:%u: the value comes from the environment: %s", t->file->name, t->line,
                        t->written);
                return error_hint(err,
                        "set the variable, or write the value into the file, then run 'slipway up'; nothing was changed");
        }
        error_set(err, EINVAL, EXIT_CONFIG, "%s:%u: slipway cannot edit this value in the file",
                t->file ? t->file->name : "the file", t->line);
        return error_hint(err,
                "it may come from an alias or a merge key: edit the file by hand, then run 'slipway up'; nothing was changed");
}

static void edit_start(const struct tree *t, const struct tree_file **file, struct str *out)
{
        *file = t->file;
        str_addn(out, t->file->text, t->file->len);
}

/* The position of a value of the pool; false if it is not inside the pool. */
static bool own_extent(const struct pool *pool, const struct tree *t, struct tree_extent *out)
{
        struct tree_extent map;
        return t && t->file == pool->src->file && tree_extent(pool->src, &map) &&
               tree_extent(t, out) && out->start >= map.start && out->end <= map.end;
}

/* ---- lines ---- */

static size_t line_begin(const char *text, size_t at)
{
        while (at && !strchr("\r\n", text[at - 1]))
                at--;
        return at;
}

/* Where the line of `at` ends, before and behind its break. */
static void line_ends(const struct tree_file *f, size_t at, size_t *before, size_t *behind)
{
        const char *next, *end = line_end(f->text + at, f->text + f->len, &next);
        *before = (size_t)(end - f->text);
        *behind = (size_t)(next - f->text);
}

/* A further line after the one of `at`, indented like column `col`, with the line break that the
 * file has there. */
static void add_line(
        struct str *out, const struct tree_file *f, size_t at, uint32_t col, const char *text)
{
        size_t before, behind;
        struct str line CLEANUP(str_release) = { 0 };
        line_ends(f, at, &before, &behind);
        if (behind > before)
                str_addn(&line, f->text + before, behind - before);
        else
                str_addc(&line, '\n');
        str_addf(&line, "%*s%s", (int)col - 1, "", text);
        text_splice(out, before, 0, str_text(&line));
}

/* ---- values ---- */

int edit_value(const struct cluster *c, const char *key, const char *inner, const char *value,
        const struct tree_file **file, struct str *out, struct error *err)
{
        const struct tree *t = tree_get(c->src, key);
        struct tree_extent at;
        if (t && inner)
                t = tree_get(t, inner);
        if (!t || t->kind != TREE_SCALAR || t->written || !tree_extent(t, &at))
                return by_hand(t ? t : c->src, err);
        edit_start(t, file, out);
        text_splice(out, at.start, at.end - at.start, value);
        return 0;
}

int edit_count(const struct pool *pool, long count, const struct tree_file **file, struct str *out,
        struct error *err)
{
        const struct tree *t = tree_get(pool->src, "count");
        struct tree_extent at;
        char number[24];
        if (!t || t->kind != TREE_SCALAR || t->written || !own_extent(pool, t, &at))
                return by_hand(t ? t : pool->src, err);
        snprintf(number, sizeof(number), "%ld", count);
        edit_start(t, file, out);
        text_splice(out, at.start, at.end - at.start, number);
        return 0;
}

/* `without` exists already: adds a number. */
static bool add_number(const struct tree *without, unsigned number, struct str *out)
{
        struct tree_extent all, last;
        const struct tree *item = without->kind == TREE_LIST ? without->last : NULL;
        char text[40];
        if (without->written || !tree_extent(without, &all) || (item && !tree_extent(item, &last)))
                return false;
        if (!item) {
                snprintf(text, sizeof(text),
                        without->kind == TREE_SCALAR ? "[%.16s, %u]" : "[%.0s%u]",
                        without->kind == TREE_SCALAR ? without->text : "", number);
                text_splice(out, all.start, all.end - all.start, text);
        } else if (all.flow) {
                snprintf(text, sizeof(text), ", %u", number);
                text_splice(out, last.end, 0, text);
        } else {
                snprintf(text, sizeof(text), "- %u", number);
                add_line(out, without->file, last.end, without->col, text);
        }
        return true;
}

static bool begin_without(
        const struct pool *pool, const struct tree *count, unsigned number, struct str *out)
{
        struct tree_extent map, at;
        char text[40];
        if (!tree_extent(pool->src, &map) || !tree_extent(count, &at))
                return false;
        snprintf(text, sizeof(text), "%swithout: [%u]", map.flow ? ", " : "", number);
        if (map.flow)
                text_splice(out, at.end, 0, text);
        else
                add_line(out, count->file, at.end, count->key_col, text);
        return true;
}

static int remove_counted(const struct cluster *c, const struct node *n,
        const struct tree_file **file, struct str *out, struct error *err)
{
        const struct pool *pool = n->pool;
        const struct tree *count = tree_get(pool->src, "count"),
                          *without = tree_get(pool->src, "without");
        struct tree_extent at;
        bool last = n + 1 == c->nodes + c->node_count || n[1].pool != pool;
        char number[24];
        if (!count || count->kind != TREE_SCALAR || count->written || !own_extent(pool, count, &at))
                return by_hand(count ? count : pool->src, err);
        edit_start(count, file, out);
        snprintf(number, sizeof(number), "%ld", pool->count - 1);
        /* from last to first, so that positions stay valid */
        bool after = !without || without->line > count->line ||
                     (without->line == count->line && without->col > count->col);
        if (!last && after &&
                !(without ? add_number(without, n->index, out)
                          : begin_without(pool, count, n->index, out)))
                return by_hand(without ? without : count, err);
        text_splice(out, at.start, at.end - at.start, number);
        if (!last && !after && !add_number(without, n->index, out))
                return by_hand(without, err);
        return 0;
}

/* ---- hosts ---- */

static size_t skip_blank(const char *text, size_t at)
{
        while (text[at] == ' ' || text[at] == '\t')
                at++;
        return at;
}

/* "- host" and everything that belongs to it, up to the end of its last line. */
static bool cut_lines(const struct tree_file *f, const struct tree_extent *at, struct str *out)
{
        size_t dash = at->start, before, behind, from;
        while (dash && strchr(" \t\r\n", f->text[dash - 1]))
                dash--;
        if (!dash || f->text[dash - 1] != '-')
                return false;
        from = line_begin(f->text, dash - 1);
        if (skip_blank(f->text, from) != dash - 1)
                return false;
        line_ends(f, at->end, &before, &behind);
        text_splice(out, from, behind - from, "");
        return true;
}

/* [a, b, c]: removes the comma after the element, or the one before the last element. */
static bool cut_words(const struct tree *list, const struct tree *item,
        const struct tree_extent *at, struct str *out)
{
        const char *text = item->file->text;
        struct tree_extent next, before = { 0 };
        const struct tree *prev = NULL;
        for (const struct tree *c = list->first; c != item; c = c->next)
                prev = c;
        if (item->next) {
                if (!tree_extent(item->next, &next))
                        return false;
                text_splice(out, at->start, next.start - at->start, "");
                return true;
        }
        size_t after = skip_blank(text, at->end);
        if (text[after] == ',') {
                text_splice(out, at->start, after + 1 - at->start, "");
                return true;
        }
        if (!prev || !tree_extent(prev, &before))
                return false;
        size_t comma = skip_blank(text, before.end);
        if (text[comma] != ',')
                return false;
        text_splice(out, at->start, at->end - at->start, "");
        text_splice(
                out, comma, skip_blank(text, comma + 1) == at->start ? at->start - comma : 1, "");
        return true;
}

static int remove_host(
        const struct node *n, const struct tree_file **file, struct str *out, struct error *err)
{
        const struct tree *list = tree_get(n->pool->src, "hosts"),
                          *item = list && list->kind == TREE_LIST ? list->first : NULL;
        struct tree_extent all, at;
        for (const struct host *h = n->pool->hosts.v; item && h < n->host; h++)
                item = item->next;
        if (n->pool->hosts.n == 1) {
                error_set(err, EINVAL, EXIT_USAGE, "%s is the only host of pool %s", n->name,
                        n->pool->name);
                return error_hint(err,
                        "remove the whole pool from the file, then run 'slipway up'; nothing was changed");
        }
        if (!item || item->kind == TREE_NULL || !own_extent(n->pool, list, &all) ||
                !tree_extent(item, &at) || at.start < all.start || at.end > all.end)
                return by_hand(item ? item : n->pool->src, err);
        edit_start(item, file, out);
        return (all.flow ? cut_words(list, item, &at, out) : cut_lines(item->file, &at, out))
                       ? 0
                       : by_hand(item, err);
}

int edit_remove(const struct cluster *c, const struct node *n, const struct tree_file **file,
        struct str *out, struct error *err)
{
        return n->host ? remove_host(n, file, out, err) : remove_counted(c, n, file, out, err);
}
