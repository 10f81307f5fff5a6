#include "base/arena.h"

/* The first block is small, as many arenas are (a thousand links have one each); each further one
 * is twice as large. */
#define BLOCK_FIRST ((size_t)1 << 10)
#define BLOCK_MAX   ((size_t)64 << 10)

struct arena_block {
        struct arena_block *next;
        size_t used, size;
        max_align_t data[];
};

static size_t arena_next(const struct arena *a)
{
        if (!a->head)
                return BLOCK_FIRST;
        return a->head->size < BLOCK_MAX / 2 ? a->head->size * 2 : BLOCK_MAX;
}

void *arena_alloc(struct arena *a, size_t n)
{
        n = (n + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
        struct arena_block *b = a->head;
        if (!b || b->size - b->used < n) {
                /* a big one does not end the block that still has room */
                size_t next = arena_next(a);
                bool alone = a->head && n > next / 4;
                size_t size = alone || n > next ? n : next;
                b = xcalloc(1, sizeof(*b) + size);
                b->size = size;
                if (alone) {
                        b->next = a->head->next;
                        a->head->next = b;
                } else {
                        b->next = a->head;
                        a->head = b;
                }
        }
        void *p = (char *)b->data + b->used;
        b->used += n;
        return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
        size_t len = strnlen(s, n);
        char *p = arena_alloc(a, len + 1);
        memcpy(p, s, len);
        return p;
}

char *arena_strdup(struct arena *a, const char *s) { return arena_strndup(a, s, strlen(s)); }

char *arena_printf(struct arena *a, const char *fmt, ...)
{
        va_list ap, again;
        va_start(ap, fmt);
        va_copy(again, ap);
        int n = vsnprintf(NULL, 0, fmt, ap);
        va_end(ap);
        char *p = arena_alloc(a, (size_t)(n < 0 ? 0 : n) + 1);
        vsnprintf(p, (size_t)(n < 0 ? 0 : n) + 1, fmt, again);
        va_end(again);
        return p;
}

void arena_release(struct arena *a)
{
        while (a->head) {
                struct arena_block *b = a->head;
                a->head = b->next;
                wipe(b->data, b->used);
                free(b);
        }
}
