/* A directory that is written atomically: as a hidden directory beside it, which then replaces it.
 * So a reader sees the old or the new rendering, nothing of the old one remains, and a killed run
 * leaves no partial one. No fsync: it can be rendered again. */
#ifndef SLIPWAY_OUTDIR_H
#define SLIPWAY_OUTDIR_H

#include <sys/types.h>

#include "base/error.h"

/* The parent directory, made if it does not exist, and locked against other runs until released. */
struct outroot {
        char *path;
        int fd;
        mode_t umask;
};

struct outdir {
        const struct outroot *root;
        char *name, *hidden;
        int fd; /* of the hidden directory; -1: not begun */
        mode_t mode;
        /* Directories made so far, with their final mode; links, made at the end, so that nothing
         * is written through them. */
        struct outdir_row *dirs, *links;
        size_t dir_count, dir_cap, link_count, link_cap;
};

int outroot_open(const char *path, struct outroot *out, struct error *err);
void outroot_release(struct outroot *r);

/* Begins root/name with that mode. Refuses to replace a directory that has none of the files
 * `marks` (NULL-terminated) of a rendering. */
int outdir_begin(const struct outroot *root, const char *name, mode_t mode,
        const char *const *marks, struct outdir *out, struct error *err);
/* Paths are relative, parents are made (0755). The umask is ignored. */
int outdir_dir(struct outdir *d, const char *path, mode_t mode, struct error *err);
int outdir_file(struct outdir *d, const char *path, const void *data, size_t n, mode_t mode,
        struct error *err);
int outdir_link(struct outdir *d, const char *path, const char *target, struct error *err);
/* Replaces root/name with it. */
int outdir_commit(struct outdir *d, struct error *err);
/* Removes what was not committed. */
void outdir_release(struct outdir *d);

#endif
