/* A growing byte string, always NUL-terminated, with a maximum. Starts zeroed: struct str s
 * CLEANUP(str_release) = { 0 }; */
#ifndef SLIPWAY_STR_H
#define SLIPWAY_STR_H

#include "base/base.h"

/* The maximum of every buffer that does not set its own: past it is an abort. */
#define STR_MAX ((size_t)256 << 20)

struct str {
        char *data; /* NULL while empty: use str_text() to read */
        size_t len, cap;
};

void str_reserve(struct str *s, size_t more);
void str_add(struct str *s, const char *text);
void str_addn(struct str *s, const void *data, size_t n);
void str_addc(struct str *s, char c);
void str_addf(struct str *s, const char *fmt, ...) PRINTF(2, 3);
void str_vaddf(struct str *s, const char *fmt, va_list ap);
void str_truncate(struct str *s, size_t len); /* keeps the memory */
char *str_take(struct str *s);                /* hands the text over (never NULL) and empties s */
void str_release(struct str *s);
void str_wipe_release(struct str *s); /* the same, said where a secret is in it */
static inline const char *str_text(const struct str *s) { return s->data ? s->data : ""; }

/* The last line that says something, without the blanks around it; malloc'd, "" when
 * there is none. */
char *str_last_line(const struct str *s);
char *str_last_line_of(const char *text);

void str_add_base64(struct str *s, const void *data, size_t n);
/* The bytes of base64, whose line breaks are passed over; false, and nothing is added, when
 * anything else is in it or it is cut. */
bool str_add_from_base64(struct str *s, const void *text, size_t n);
void str_add_hex(struct str *s, const void *data, size_t n);

#endif
