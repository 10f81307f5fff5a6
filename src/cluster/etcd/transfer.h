/* Files between this computer and a node, over the link that is open already: pieces of a program's
 * output one way, pieces of its input the other. A file is whole and its digest right before it
 * gets its name, on either side. */
#ifndef SLIPWAY_TRANSFER_H
#define SLIPWAY_TRANSFER_H

#include "base/sha256.h"
#include "cluster/site/op.h"

#define TRANSFER_MAX ((int64_t)32 << 30) /* bytes of one file; etcd itself warns at 8 GB */

struct transfer {
        struct step *step; /* shown as its progress */
        struct member *member;
        const char *remote, *local; /* paths; must stay until fn */
        int64_t size;
        char digest[SHA256_HEX];
        void (*fn)(struct transfer *c,
                struct error *err); /* once, from the loop; err NULL: it is there */
        void *arg;
        /* inside: */
        struct op op;
        char *part;
        int fd;
        int64_t moved;
        struct sha256 sum;
        int failure; /* errno of the first write that failed */
        bool over;   /* more came than was announced */
};

/* From the node; size and digest say what must come. The local file is on disk, 0600, when fn is
 * told so. */
void transfer_fetch(struct transfer *c);
/* To the node; size and digest are filled in from the local file when they are not. A file that is
 * there already is not sent again. 0600, root's. */
void transfer_send(struct transfer *c);

#endif
