/* Transfers files between this computer and a node over the open link, in pieces of a
 * program's output or input. On both sides a file gets its name only when it is complete and
 * its digest is right. */
#ifndef SLIPWAY_TRANSFER_H
#define SLIPWAY_TRANSFER_H

#include "base/sha256.h"
#include "cluster/site/op.h"

#define TRANSFER_MAX ((int64_t)32 << 30) /* bytes of one file; etcd warns at 8 GB */

struct transfer {
        struct step *step; /* shows the progress */
        struct member *member;
        const char *remote, *local; /* paths; valid until fn is called */
        int64_t size;
        char digest[SHA256_HEX];
        /* called once, from the loop; err NULL: success */
        void (*fn)(struct transfer *c, struct error *err);
        void *arg;
        /* internal: */
        struct op op;
        char *part;
        int fd;
        int64_t moved;
        struct sha256 sum;
        int failure; /* errno of the first failed write */
        bool over;   /* more bytes arrived than announced */
};

/* From the node; size and digest are the expected ones. When fn reports success, the local file is
 * on disk with mode 0600. */
void transfer_fetch(struct transfer *c);
/* To the node; size and digest are taken from the local file if not set. A file that the node has
 * already is not sent again. It gets mode 0600 and belongs to root. */
void transfer_send(struct transfer *c);

#endif
