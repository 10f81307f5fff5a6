/* The cache: blobs named by their digest. They are written under another name and renamed, so a
 * blob that exists is complete and verified. */
#ifndef SLIPWAY_BLOB_H
#define SLIPWAY_BLOB_H

#include <stdatomic.h>

#include "base/error.h"

struct evp_md_ctx_st;

/* $SLIPWAY_CACHE, $XDG_CACHE_HOME/slipway or ~/.cache/slipway; creates
 * its directories. malloc'd. */
int cache_open(char **out, struct error *err);
/* Malloc'd CACHE/DIR/NAME. */
char *cache_path(const char *cache, const char *dir, const char *name);
/* Removes what killed runs left. Only for the holder of the cache's lock. */
void cache_clean(const char *cache);
/* The same for builds, which have a lock of their own: CACHE/artifacts/.work.* */
void builds_clean(const char *cache);

/* Malloc'd ROOT/blobs/sha256/HEX: the cache's, or a bundle's. */
char *blob_path(const char *root, const char *digest);
bool blob_there(const char *root, const char *digest, int64_t size);

/* A blob being written. Starts zeroed but for fd: struct blob b
 * CLEANUP(blob_release) = BLOB_INIT; */
struct blob {
        int fd;
        char *tmp;
        struct evp_md_ctx_st *sum;
        int64_t size;
        const char *cache;
};
#define BLOB_INIT \
        { \
                .fd = -1 \
        }

int blob_begin(struct blob *b, const char *cache, struct error *err);
int blob_add(struct blob *b, const void *data, size_t n, struct error *err);
/* Renames it to its digest. */
int blob_end(struct blob *b, char digest[65], int64_t *size, struct error *err);
void blob_release(struct blob *b);

/* Set by another thread to end long work early; may be NULL. */
typedef const atomic_bool *stop_flag;

/* Calls `each` with the file's bytes, in pieces. */
int file_pieces(const char *path, stop_flag stop,
        int (*each)(void *arg, const void *data, size_t n, struct error *err), void *arg,
        struct error *err);
/* Copies a file into a blob. */
int blob_copy(const char *cache, const char *from, stop_flag stop, char digest[65], int64_t *size,
        struct error *err);
/* Renames a file on the cache's own file system into a blob; its digest is known already. */
int blob_adopt(const char *cache, const char *from, const char *digest, struct error *err);
int file_digest(
        const char *path, stop_flag stop, char digest[65], int64_t *size, struct error *err);

#endif
