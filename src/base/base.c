#include <malloc.h>

#include "base/base.h"

static _Noreturn void no_memory(void)
{
        static const char text[] = "slipway: out of memory\n";
        ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);
        (void)n;
        abort();
}

void *xmalloc(size_t n)
{
        void *p = malloc(n ? n : 1);
        if (!p)
                no_memory();
        return p;
}

void *xcalloc(size_t n, size_t size)
{
        void *p = calloc(n ? n : 1, size ? size : 1);
        if (!p)
                no_memory();
        return p;
}

void *xrealloc(void *p, size_t n)
{
        p = realloc(p, n ? n : 1);
        if (!p)
                no_memory();
        return p;
}

char *xstrdup(const char *s) { return xstrndup(s, strlen(s)); }

char *xstrndup(const char *s, size_t n)
{
        size_t len = strnlen(s, n);
        char *p = xmalloc(len + 1);
        memcpy(p, s, len);
        p[len] = 0;
        return p;
}

char *xvasprintf(const char *fmt, va_list ap)
{
        char *p;
        if (vasprintf(&p, fmt, ap) < 0)
                no_memory();
        return p;
}

char *xasprintf(const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        char *p = xvasprintf(fmt, ap);
        va_end(ap);
        return p;
}

void free_wiped(void *p)
{
        if (p)
                wipe(p, malloc_usable_size(p));
        free(p);
}

void free_p(void *pp)
{
        void **p = pp;
        free_wiped(*p);
        *p = NULL;
}

void close_p(int *fd)
{
        if (*fd >= 0)
                close(*fd);
        *fd = -1;
}

void fclose_p(FILE **f)
{
        if (*f)
                fclose(*f);
        *f = NULL;
}

bool has_prefix(const char *s, const char *prefix)
{
        return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool has_suffix(const char *s, const char *suffix)
{
        size_t n = strlen(s), m = strlen(suffix);
        return n >= m && streq(s + n - m, suffix);
}

void wipe(void *p, size_t n)
{
        if (p)
                explicit_bzero(p, n);
}

/* Levenshtein distance with a swap of neighbours counted as one, over at most 63 characters. */
static size_t distance(const char *a, const char *b)
{
        size_t n = strlen(a), m = strlen(b), row[3][64];
        if (n > 63 || m > 63)
                return 99;
        for (size_t j = 0; j <= m; j++)
                row[0][j] = j;
        for (size_t i = 1; i <= n; i++) {
                size_t *cur = row[i % 3], *prev = row[(i + 2) % 3], *prev2 = row[(i + 1) % 3];
                cur[0] = i;
                for (size_t j = 1; j <= m; j++) {
                        size_t cost = a[i - 1] != b[j - 1], best = prev[j - 1] + cost;
                        if (prev[j] + 1 < best)
                                best = prev[j] + 1;
                        if (cur[j - 1] + 1 < best)
                                best = cur[j - 1] + 1;
                        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                                prev2[j - 2] + 1 < best)
                                best = prev2[j - 2] + 1;
                        cur[j] = best;
                }
        }
        return row[n % 3][m];
}

const char *nearest(const char *word, const char *const *names, size_t n)
{
        const char *best = NULL;
        size_t best_distance = strlen(word) / 3 + 1;
        for (size_t i = 0; i < n; i++) {
                size_t d = strcasecmp(word, names[i]) ? distance(word, names[i]) : 0;
                if (d < best_distance || (d == best_distance && !best)) {
                        best = names[i];
                        best_distance = d;
                }
        }
        return best;
}
