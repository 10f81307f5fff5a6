#include "base/arena.h"

#define BLOCK ((size_t)64 << 10)

struct arena_block {
        struct arena_block *next;
        size_t used, size;
        max_align_t data[];
};

void *arena_alloc(struct arena *a, size_t n)
{
        n = (n + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
        struct arena_block *b = a->head;
        if (!b || b->size - b->used < n) {
                size_t size = n > BLOCK ? n : BLOCK;
                b = xcalloc(1, sizeof(*b) + size);
                b->size = size;
                if (n > BLOCK / 4 && a->head) { /* a big one does not end the block that still has room */
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
                free(b);
        }
}
