#include "base/tree_check.h"
#include "base/utf8.h"

#define MAX_DIRECTIVES 16 /* libyaml compares every %TAG with every other */

int tree_fail(struct tree *at, struct error *err, uint32_t line, uint32_t col, const char *hint,
        const char *fmt, ...)
{
        struct str s CLEANUP(str_release) = { 0 }, harmless CLEANUP(str_release) = { 0 };
        va_list ap;
        va_start(ap, fmt);
        str_vaddf(&s, fmt, ap);
        va_end(ap);
        text_harmless(&harmless, str_text(&s), 300);
        at->line = line;
        at->col = col;
        error_set(err, EINVAL, EXIT_CONFIG, "%s", str_text(&harmless));
        if (hint)
                error_hint(err, "%s", hint);
        return -EINVAL;
}

/* The characters libyaml reads. */
static bool readable(uint32_t cp)
{
        return cp == '\t' || cp == '\n' || cp == '\r' || cp == 0x85 || cp == 0x2028 ||
               cp == 0x2029 || (!utf8_control(cp) && cp < 0xfffe) || cp >= 0x10000;
}

static int bad_character(
        const struct tree_file *f, size_t offset, struct tree *at, struct error *err)
{
        uint32_t line, col, cp;
        line_place(f->text, f->len, offset, &line, &col);
        size_t n = utf8_decode(f->text + offset, f->len - offset, &cp);
        if (!n)
                return tree_fail(at, err, line, col, "save the file as UTF-8",
                        "the byte 0x%02x is not UTF-8", (unsigned char)f->text[offset]);
        if (cp == 0)
                return tree_fail(at, err, line, col, "save the file as UTF-8 text",
                        "the file holds a NUL byte: it is not a text, or it is UTF-16");
        return tree_fail(at, err, line, col,
                "remove it; in double quotes it can be written as \\x..",
                "the control character U+%04X is not allowed", cp);
}

int tree_check_text(const struct tree_file *f, struct tree *at, struct error *err)
{
        unsigned directives = 0;
        bool line_start = true;
        for (size_t i = 0; i < f->len;) {
                unsigned char c = (unsigned char)f->text[i];
                if (c >= 0x20 && c < 0x7f) {
                        if (c == '%' && line_start && ++directives > MAX_DIRECTIVES) {
                                uint32_t line, col;
                                line_place(f->text, f->len, i, &line, &col);
                                return tree_fail(at, err, line, col,
                                        "remove them: a cluster needs none",
                                        "more than %d lines begin with %%", MAX_DIRECTIVES);
                        }
                        line_start = false;
                        i++;
                        continue;
                }
                uint32_t cp;
                size_t n = utf8_decode(f->text + i, f->len - i, &cp);
                if (!n || !readable(cp))
                        return bad_character(f, i, at, err);
                line_start = cp == '\n' || cp == '\r' || cp == 0x85 || cp == 0x2028 || cp == 0x2029;
                i += n;
        }
        return 0;
}

/* libyaml's complaints, and what people can do about them. `opening`: the place is where the
 * construct began, not where it broke. */
static const struct complaint {
        const char *problem, *sentence, *hint;
        bool opening;
} complaints[] = {
        { "mapping values are not allowed in this context", "a key is not allowed here",
                "check the indentation, and quote a value that holds \": \"", false },
        { "mapping keys are not allowed in this context", "a key is not allowed here",
                "check the indentation", false },
        { "block sequence entries are not allowed in this context",
                "a list entry (-) is not allowed here", "check the indentation", false },
        { "could not find expected ':'",
                "this line is neither a key with its colon nor part of a value",
                "write \"key: value\", with a space after the colon", true },
        { "did not find expected key", "a key is expected here",
                "check the indentation and the quotes of this line and the one above", false },
        { "did not find expected '-' indicator", "a list entry (-) is expected here",
                "check the indentation: the entries of a list begin in one column", false },
        { "did not find expected ',' or ']'", "the list opened here with [ is not closed",
                "a comma or ] is missing", true },
        { "did not find expected ',' or '}'", "the map opened here with { is not closed",
                "a comma or } is missing", true },
        { "did not find expected node content", "a value is expected here", NULL, false },
        { "found unexpected end of stream", "the quote opened here is never closed",
                "add the closing quote", true },
        { "found unexpected document indicator", "the quote opened here is never closed",
                "add the closing quote", true },
        { "found unknown escape character", "the backslash starts no known escape",
                "double the backslash, or use single quotes", false },
        { "did not find expected hexdecimal number",
                "hexadecimal digits are expected after this escape",
                "double the backslash, or use single quotes", false },
        { "found invalid Unicode character escape code", "the escape is not a character", NULL,
                false },
        { "did not find expected alphabetic or numeric character",
                "an anchor (&) or alias (*) needs a name of letters and digits",
                "quote a value that begins with & or *", false },
        { "did not find expected <document start>", "more text after the end of the document",
                "a cluster is one document", false },
        { "found undefined tag handle", "the tag is not known",
                "remove it, or quote a value that begins with !", false },
        { "found unexpected ':'", "a colon is not allowed here", "quote the value that holds it",
                false },
        { "found a tab character where an indentation space is expected",
                "a tab is used for indentation", "indent with spaces", false },
        { "found a tab character that violates indentation", "a tab is used for indentation",
                "indent with spaces", false },
        { "found a tab character that violates intendation", "a tab is used for indentation",
                "indent with spaces", false },
        { "found incompatible YAML document",
                "the %YAML directive names a version other than 1.1 and 1.2", "remove it", false },
};

/* The character at a place, 0 when there is none. */
static char character_at(const struct tree_file *f, size_t line, size_t col)
{
        const char *p = f->text, *end = f->text + f->len, *next;
        for (; line > 0 && p < end; line--) {
                line_end(p, end, &next);
                p = next;
        }
        for (uint32_t cp; col > 0 && p < end; col--)
                p += utf8_decode(p, (size_t)(end - p), &cp);
        return p < end ? *p : 0;
}

static int cannot_start(
        const yaml_parser_t *y, const struct tree_file *f, struct tree *at, struct error *err)
{
        uint32_t line = (uint32_t)y->problem_mark.line + 1,
                 col = (uint32_t)y->problem_mark.column + 1;
        char c = character_at(f, y->problem_mark.line, y->problem_mark.column);
        if (c == '\t')
                return tree_fail(
                        at, err, line, col, "indent with spaces", "a tab is used for indentation");
        if (c > ' ' && c < 0x7f)
                return tree_fail(at, err, line, col, "quote it", "a value cannot begin with %c", c);
        return tree_fail(at, err, line, col, NULL, "a value cannot begin here");
}

int tree_syntax(
        const yaml_parser_t *y, const struct tree_file *f, struct tree *at, struct error *err)
{
        const char *problem = y->problem ? y->problem : "it is not YAML";
        if (y->error == YAML_MEMORY_ERROR)
                return tree_fail(at, err, 1, 1, NULL, "libyaml ran out of memory");
        if (streq(problem, "found character that cannot start any token"))
                return cannot_start(y, f, at, err);
        for (size_t i = 0; i < ARRAY_SIZE(complaints); i++) {
                const struct complaint *c = &complaints[i];
                const yaml_mark_t *mark =
                        c->opening && y->context ? &y->context_mark : &y->problem_mark;
                if (streq(problem, c->problem))
                        return tree_fail(at, err, (uint32_t)mark->line + 1,
                                (uint32_t)mark->column + 1, c->hint, "%s", c->sentence);
        }
        return tree_fail(at, err, (uint32_t)y->problem_mark.line + 1,
                (uint32_t)y->problem_mark.column + 1, NULL, "%s%s%s", y->context ? y->context : "",
                y->context ? ", " : "", problem);
}
