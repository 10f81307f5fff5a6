/* One header of a tar archive (ustar, GNU's, pax): the only reader of it, for upstream's archives
 * and for sets on a node. */
#ifndef SLIPWAY_TAR_HEADER_H
#define SLIPWAY_TAR_HEADER_H

#include "base/base.h"

#define TAR_BLOCK 512

struct tar_header {
        /* with its prefix, without a leading "./"; may be cut where a GNU long name came before */
        char name[260];
        char type; /* '0': a regular file, also where old archives have a 0 byte */
        unsigned mode;
        uint64_t size; /* UINT64_MAX: a number too large for octal digits */
};

/* False when the sum is not right or a number is none. */
bool tar_header_read(const uint8_t block[TAR_BLOCK], struct tar_header *out);
/* The bytes of a member with the zeros that fill its last block. */
static inline uint64_t tar_padded(uint64_t size)
{
        return (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
}

#endif
