/* The text of the live block: the run as lines of limited width. Independent of the terminal except
 * for its size. */
#ifndef SLIPWAY_LIVE_ROWS_H
#define SLIPWAY_LIVE_ROWS_H

#include "base/str.h"
#include "run/run.h"

struct look {
        unsigned rows, cols;
        bool colour, utf8;
        unsigned tick;      /* animates the spinners */
        const char *result; /* result of the run; NULL while it runs */
};

struct block {
        struct str text;  /* complete lines */
        unsigned *widths; /* columns of each */
        size_t count;
};

/* Draws at most look->rows - 1 lines. */
void block_draw(struct block *b, const struct run *r, const struct look *look);
void block_release(struct block *b);
/* How many rows the block takes in a terminal `cols` wide: one that became narrower has wrapped its
 * lines. */
size_t block_height(const struct block *b, unsigned cols);

#endif
