/* Files: whole reads with a maximum, atomic writes, directories, locks. Errors name the path and
 * the cause. */
#ifndef SLIPWAY_FILE_H
#define SLIPWAY_FILE_H

#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"

/* Reads a regular file of at most `max` bytes; "-" is standard input. Refuses directories, devices
 * and larger files with a sentence. */
int file_read(const char *path, size_t max, struct str *out, struct error *err);
/* The same for a user's password or key file: refused if others than its owner have access. */
int file_read_secret(const char *path, size_t max, struct str *out, struct error *err);

enum file_write_flags {
        FILE_SYNC = 1, /* fsync the file and its directory: for what cannot be recreated */
};

/* Writes a temporary file beside `path` and renames it: a reader sees the old or the new bytes. If
 * the bytes and the mode are unchanged, nothing is written; `*changed` (may be NULL) tells which.
 * On failure nothing is left behind. */
int file_write(const char *path, const void *data, size_t n, mode_t mode, unsigned flags,
        bool *changed, struct error *err);

/* All of it, whatever interrupts; 0 or a negative errno. */
int write_all(int fd, const void *data, size_t n);

/* mkdir -p; the last directory gets `mode`, parents 0755. An existing directory is left
 * as it is. */
int dir_make(const char *path, mode_t mode, struct error *err);
/* rm -r, without following links out of the tree. A missing path is no error. */
int dir_remove(const char *path, struct error *err);

/* An exclusive lock held by this process until the descriptor is closed, with who holds it
 * written inside. Held by another: EXIT_STATE, and the sentence names the holder (pid, user,
 * host, since, what). */
int lock_take(const char *path, const char *what, int *fd, struct error *err);

char *path_join(const char *a, const char *b); /* malloc'd a/b */

#endif
