/* What the live block says: the run as lines of at most so many columns. Knows no terminal but its size. */
#ifndef SLIPWAY_LIVE_ROWS_H
#define SLIPWAY_LIVE_ROWS_H

#include "base/str.h"
#include "cluster/run.h"

struct look {
        unsigned rows, cols;
        bool colour, utf8;
        unsigned tick;      /* turns the wheels */
        const char *result; /* how the run ended; NULL while it goes on */
};

struct block {
        struct str text;  /* lines, each with its newline */
        unsigned *widths; /* columns of each */
        size_t count;
};

/* Draws at most look->rows - 1 lines. */
void block_draw(struct block *b, const struct run *r, const struct look *look);
void block_release(struct block *b);
/* How many rows of a terminal that is `cols` wide the block takes: one that became narrower has folded its lines. */
size_t block_height(const struct block *b, unsigned cols);

#endif
