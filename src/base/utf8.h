/* Text as people see it: characters, lines, columns, and what may go to a terminal. */
#ifndef SLIPWAY_UTF8_H
#define SLIPWAY_UTF8_H

#include "base/str.h"

/* The character at `s`, which has `n` bytes: its length, or 0 when it is not UTF-8. */
size_t utf8_decode(const char *s, size_t n, uint32_t *cp);
/* Columns on a terminal: 0 for combining marks, 2 for wide characters, else 1. */
unsigned utf8_width(uint32_t cp);
/* May be shown: not a control character, nor one that changes the direction or hides. */
bool utf8_visible(uint32_t cp);
/* A line or control character (C0, DEL or C1). */
bool utf8_control(uint32_t cp);

/* The end of the line that starts at `p`; `*next` is the start of the one after, or `end`. Lines
 * end as YAML 1.1 has it: LF, CR, CR LF, NEL, LS, PS. */
const char *line_end(const char *p, const char *end, const char **next);
/* Line and column (from 1, in characters) of a byte offset. */
void line_place(const char *text, size_t len, size_t offset, uint32_t *line, uint32_t *col);

/* Appends at most `max` characters of the text: what may not be shown as \n, \t or \u{1b}, bytes
 * that are not UTF-8 as \xff; "..." when more follow. */
void text_harmless(struct str *s, const char *text, size_t max);

/* The same for lines of a known length, whole: newlines and tabs stay, and bytes that are zero are
 * shown too. */
void text_lines_harmless(struct str *s, const char *text, size_t len);

#endif
