/* What every file includes first: standard headers, memory that cannot fail, cleanup attributes,
 * the ban list. */
#ifndef SLIPWAY_BASE_H
#define SLIPWAY_BASE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"

#define ARRAY_SIZE(a)     (sizeof(a) / sizeof((a)[0]))
#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define CLEANUP(fn)       __attribute__((cleanup(fn)))

/* Hands a pointer over: the local forgets it, so its cleanup does nothing. */
#define TAKE(p) \
        ({ \
                typeof(p) _t = (p); \
                (p) = NULL; \
                _t; \
        })

/* Allocations abort if there is no memory: these never return NULL. */
void *xmalloc(size_t n);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
char *xasprintf(const char *fmt, ...) PRINTF(1, 2);
char *xvasprintf(const char *fmt, va_list ap);

/* Any text may have held a key, so memory is overwritten when it is freed: texts, buffers (also
 * when they grow), arenas, JSON. */
void free_wiped(void *p);

void free_p(void *pp);   /* char *s CLEANUP(free_p) = NULL; */
void close_p(int *fd);   /* int fd CLEANUP(close_p) = -1; */
void fclose_p(FILE **f); /* FILE *f CLEANUP(fclose_p) = NULL; */

static inline bool streq(const char *a, const char *b) { return strcmp(a, b) == 0; }
bool has_prefix(const char *s, const char *prefix);
bool has_suffix(const char *s, const char *suffix);

/* Overwrites memory that held a secret; the compiler may not drop it. */
void wipe(void *p, size_t n);

/* The nearest of `n` names to `word` by edit distance, or NULL when none is near: for
 * "did you mean". */
const char *nearest(const char *word, const char *const *names, size_t n);

#endif
