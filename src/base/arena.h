/* One lifetime for many small things: a parsed document or a plan is freed at once.
 * Memory is zeroed. */
#ifndef SLIPWAY_ARENA_H
#define SLIPWAY_ARENA_H

#include "base/base.h"

struct arena {
        struct arena_block *head;
};

void *arena_alloc(struct arena *a, size_t n);
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF(2, 3);
void arena_release(struct arena *a);

#define arena_new(a, type)      ((type *)arena_alloc((a), sizeof(type)))
#define arena_array(a, type, n) ((type *)arena_alloc((a), sizeof(type) * (n)))

#endif
