/* The one way to the terminal: whatever this program prints goes through here (a test looks for
 * other calls). What a node, a pod, an API object, a mirror or a file says can neither steer the
 * terminal nor pass for a line of ours: escape sequences, control bytes (C0, C1), marks that change
 * the direction or hide, and bytes that are not UTF-8 are shown as \u{1b} or \xff. Colours are
 * added by the caller, outside of what is made harmless. */
#ifndef SLIPWAY_PRINT_H
#define SLIPWAY_PRINT_H

#include <jansson.h>

#include "base/str.h"

/* As printf, where each %s stays on its line: a newline in it is shown as \n. Conversions: d i u x
 * c s f % with flags, width and precision. */
void print(const char *fmt, ...) PRINTF(1, 2);     /* to stdout */
void print_err(const char *fmt, ...) PRINTF(1, 2); /* to stderr */
void text_addf(struct str *s, const char *fmt, ...) PRINTF(2, 3);
/* Lines that were put together with text_addf, or come from elsewhere as lines: newlines
 * and tabs stay. */
void print_text(FILE *to, const char *text);
/* One document on stdout, as ASCII. */
void print_json(const json_t *j, size_t flags);
/* As they are: files that were asked for, logs into a pipe, what moves the cursor. */
void print_bytes(FILE *to, const void *data, size_t n);

/* A JSON string of bytes that may not be UTF-8: what is not is shown as \xff. Never NULL. */
json_t *json_text(const char *text);

#endif
