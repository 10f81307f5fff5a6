/* Files that the program carries: the build tool (src/base/pack.c) deflates them together
 * into one C file, and they are inflated together when the first of them is asked for. From
 * one thread only. */
#ifndef SLIPWAY_EMBED_H
#define SLIPWAY_EMBED_H

#include <stddef.h>

struct embed_file {
        const char *name; /* without its directories */
        size_t at, size;  /* in the inflated text; a NUL follows each */
};

struct embed {
        const unsigned char *packed;
        size_t packed_size, size;
        const struct embed_file *files;
        size_t count;
        char *text; /* NULL until the first use */
};

/* The file's bytes, which last as long as the program. An archive that is not whole is an abort: it
 * was made with the program. */
const char *embed_text(struct embed *e, const struct embed_file *f);
/* NULL: none of that name. */
const struct embed_file *embed_find(const struct embed *e, const char *name);

#endif
