#include <sys/auxv.h>

#include "base/index.h"

struct index_slot {
        const char *key; /* NULL: free */
        void *value;
        uint64_t hash;
};

/* FNV-1a from a start that differs in every process, so that a file cannot be made to collide. */
static uint64_t hash_of(const char *key)
{
        static uint64_t seed;
        if (!seed) {
                const void *random = (const void *)getauxval(AT_RANDOM);
                if (random)
                        memcpy(&seed, random, sizeof(seed));
                seed |= 1;
        }
        uint64_t h = seed;
        for (const unsigned char *p = (const unsigned char *)key; *p; p++)
                h = (h ^ *p) * 0x100000001b3u;
        return h ^ h >> 32;
}

/* The slot that holds the key, or the free one where it belongs. */
static struct index_slot *index_find(const struct index *x, const char *key, uint64_t hash)
{
        for (size_t i = hash & (x->cap - 1);; i = (i + 1) & (x->cap - 1)) {
                struct index_slot *s = &x->slots[i];
                if (!s->key || (s->hash == hash && streq(s->key, key)))
                        return s;
        }
}

static void grow(struct index *x)
{
        struct index bigger = { .cap = x->cap ? x->cap * 2 : 64, .used = x->used };
        bigger.slots = xcalloc(bigger.cap, sizeof(*bigger.slots));
        for (size_t i = 0; i < x->cap; i++)
                if (x->slots[i].key)
                        *index_find(&bigger, x->slots[i].key, x->slots[i].hash) = x->slots[i];
        free(x->slots);
        *x = bigger;
}

void *index_get(const struct index *x, const char *key)
{
        return x->used ? index_find(x, key, hash_of(key))->value : NULL;
}

void *index_put(struct index *x, const char *key, void *value)
{
        if (x->used * 2 >= x->cap)
                grow(x);
        uint64_t hash = hash_of(key);
        struct index_slot *s = index_find(x, key, hash);
        if (s->key)
                return s->value;
        *s = (struct index_slot){ key, value, hash };
        x->used++;
        return NULL;
}

void index_clear(struct index *x)
{
        if (x->cap > 256) { /* clearing it again and again would cost more than growing it */
                index_release(x);
                return;
        }
        if (x->used)
                memset(x->slots, 0, x->cap * sizeof(*x->slots));
        x->used = 0;
}

void index_release(struct index *x)
{
        free(x->slots);
        *x = (struct index){ 0 };
}
