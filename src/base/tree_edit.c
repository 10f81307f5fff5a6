#include <yaml.h>

#include "base/tree_edit.h"
#include "base/utf8.h"

/* libyaml counts characters; a place in the text is bytes. */
static size_t bytes(const struct tree_file *f, size_t characters)
{
        size_t at = 0;
        uint32_t cp;
        for (; characters && at < f->len; characters--) {
                size_t n = utf8_decode(f->text + at, f->len - at, &cp);
                at += n ? n : 1;
        }
        return at;
}

struct finder {
        const struct tree *t;
        yaml_event_type_t wanted;
        bool found;
        unsigned depth; /* of lists and maps open within it, itself included */
        size_t start, end;
        bool flow;
};

static bool opens(const yaml_event_t *e)
{
        return e->type == YAML_SEQUENCE_START_EVENT || e->type == YAML_MAPPING_START_EVENT;
}
static bool closes(const yaml_event_t *e)
{
        return e->type == YAML_SEQUENCE_END_EVENT || e->type == YAML_MAPPING_END_EVENT;
}

/* The end of a list or map without brackets is reported at what comes after it: there the last
 * thing inside counts. */
static void note_end(struct finder *f, const yaml_event_t *e)
{
        bool bracket = closes(e) && e->end_mark.index > e->start_mark.index;
        if (!opens(e) && (!closes(e) || bracket) && e->end_mark.index > f->end)
                f->end = e->end_mark.index;
}

/* True when the value has been seen whole. */
static bool tree_edit_look(struct finder *f, const yaml_event_t *e)
{
        const struct tree *t = f->t;
        if (!f->found) {
                if (e->type != f->wanted || e->start_mark.line + 1 != t->line ||
                        e->start_mark.column + 1 != t->col)
                        return false;
                f->found = true;
                f->start = f->end = e->start_mark.index;
                f->flow = (e->type == YAML_SEQUENCE_START_EVENT &&
                                  e->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE) ||
                          (e->type == YAML_MAPPING_START_EVENT &&
                                  e->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE);
        }
        note_end(f, e);
        f->depth += opens(e);
        f->depth -= closes(e);
        return f->depth == 0;
}

static bool search(yaml_parser_t *parser, struct finder *f)
{
        for (bool end = false; !end;) {
                yaml_event_t e;
                if (!yaml_parser_parse(parser, &e))
                        return false;
                bool whole = tree_edit_look(f, &e);
                end = e.type == YAML_STREAM_END_EVENT;
                yaml_event_delete(&e);
                if (whole)
                        return true;
        }
        return false;
}

bool tree_extent(const struct tree *t, struct tree_extent *out)
{
        static const yaml_event_type_t events[] = { [TREE_NULL] = YAML_SCALAR_EVENT,
                [TREE_SCALAR] = YAML_SCALAR_EVENT,
                [TREE_LIST] = YAML_SEQUENCE_START_EVENT,
                [TREE_MAP] = YAML_MAPPING_START_EVENT };
        struct finder f = { .t = t, .wanted = events[t->kind] };
        yaml_parser_t parser;
        if (!t->file || !yaml_parser_initialize(&parser))
                return false;
        yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&parser, (const unsigned char *)t->file->text, t->file->len);
        bool found = search(&parser, &f);
        yaml_parser_delete(&parser);
        if (!found)
                return false;
        *out = (struct tree_extent){ bytes(t->file, f.start), bytes(t->file, f.end), f.flow };
        /* a block scalar ends on the line after it */
        while (out->end > out->start && strchr(" \t\r\n", t->file->text[out->end - 1]))
                out->end--;
        return true;
}

void text_splice(struct str *text, size_t at, size_t del, const char *with)
{
        struct str out = { 0 };
        str_addn(&out, str_text(text), at);
        str_add(&out, with);
        str_addn(&out, str_text(text) + at + del, text->len - at - del);
        str_release(text);
        *text = out;
}
