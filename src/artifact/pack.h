/* Packs sets and images as blobs, and reads upstream's archives. The same input gives
 * the same bytes. */
#ifndef SLIPWAY_PACK_H
#define SLIPWAY_PACK_H

#include "artifact/blob.h"

struct pack_image {
        const char *reference; /* its tag */
        const char *arch;
        const char *path; /* of the program in the image: what it runs */
        const char *user; /* NULL: root */
        const char *file; /* the program, or NULL: */
        const void *data;
        size_t len;
};

/* A docker archive of one layer with one static program. */
int pack_image(const char *cache, const struct pack_image *image, stop_flag stop, char digest[65],
        int64_t *size, struct error *err);
/* Every regular file of a directory. */
int pack_set(const char *cache, const char *dir, stop_flag stop, char digest[65], int64_t *size,
        struct error *err);

struct unpack {
        const char *member; /* "*": every program, as a set */
        bool found;
        char digest[65];
        int64_t size;
};

/* Members of a tar archive, compressed or not, each as a blob. One that is not there is an error;
 * so is an archive that holds more than `max` bytes. */
int unpack_members(const char *cache, const char *archive, int64_t max, struct unpack *wanted,
        size_t n, stop_flag stop, struct error *err);

#endif
