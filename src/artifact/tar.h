/* Writes ustar archives that depend on nothing but their members: time 0, root, no
 * names of users. */
#ifndef SLIPWAY_TAR_H
#define SLIPWAY_TAR_H

#include "artifact/blob.h"

struct tar {
        int (*write)(void *arg, const void *data, size_t n, struct error *err);
        void *arg;
};

/* A directory (name ends in '/') or a regular file, whose `size` bytes and tar_pad() come next.
 * Names of up to 100 bytes. */
int tar_member(
        const struct tar *t, const char *name, unsigned mode, int64_t size, struct error *err);
int tar_pad(const struct tar *t, int64_t size, struct error *err);
int tar_end(const struct tar *t, struct error *err);
/* Header, bytes and padding. */
int tar_data(const struct tar *t, const char *name, unsigned mode, const void *data, size_t n,
        struct error *err);
int tar_file(const struct tar *t, const char *name, unsigned mode, const char *path, stop_flag stop,
        struct error *err);
/* What a member takes in the archive. */
int64_t tar_room(int64_t size);
#define TAR_END 1024

#endif
