/* A directory written as a whole: everything goes into a hidden directory beside it, which then takes its place. So a reader sees the old rendering or the
 * new one, nothing of the old one is left over, and a run that was killed leaves no half. No fsync: it can be made again. */
#ifndef SLIPWAY_OUTDIR_H
#define SLIPWAY_OUTDIR_H

#include <sys/types.h>

#include "base/error.h"

/* The directory that holds them all, made if it is not there, and locked against another run until released. */
struct outroot {
        char *path;
        int fd;
        mode_t umask;
};

struct outdir {
        const struct outroot *root;
        char *name, *hidden;
        int fd; /* of the hidden directory; -1: nothing begun */
        mode_t mode;
        struct outdir_row *dirs, *links; /* made already, with the mode they get in the end; links come last, so that nothing is written through them */
        size_t dir_count, dir_cap, link_count, link_cap;
};

int outroot_open(const char *path, struct outroot *out, struct error *err);
void outroot_release(struct outroot *r);

/* Begins root/name with that mode. Refuses to replace a directory that none of `marks` (NULL-terminated names of files) tells to be a rendering. */
int outdir_begin(const struct outroot *root, const char *name, mode_t mode, const char *const *marks, struct outdir *out, struct error *err);
/* Paths are relative, parents are made (0755). The umask does not decide. */
int outdir_dir(struct outdir *d, const char *path, mode_t mode, struct error *err);
int outdir_file(struct outdir *d, const char *path, const void *data, size_t n, mode_t mode, struct error *err);
int outdir_link(struct outdir *d, const char *path, const char *target, struct error *err);
/* Puts it in place. */
int outdir_commit(struct outdir *d, struct error *err);
/* Removes what was not committed. */
void outdir_release(struct outdir *d);

#endif
