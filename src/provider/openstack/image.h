/* The image of the machines: one that exists, by name, id or properties, or one that slipway
 * uploads as the cluster's own. That one has our mark as a property from the call that creates
 * it. When all of it is there and was checked it gets a tag with its SHA-256: so what an
 * interrupted run left is known by the missing tag, and made again. An image of the same name
 * without our mark is never touched. */
#ifndef SLIPWAY_OPENSTACK_IMAGE_H
#define SLIPWAY_OPENSTACK_IMAGE_H

#include "cloud/exchange.h"
#include "provider/openstack/openstack.h"

#define IMAGE_SHA "sha256-" /* a tag, and the digits */
#define SUMS      3

struct evp_md_ctx_st;
struct http;

/* What is to be uploaded. */
struct os_upload {
        struct os_image *image; /* its id is "" until it is there */
        const char *format, *id;
        int64_t size, done;
        bool import, began; /* glance downloads it, and has begun to */
        bool open;          /* fd is */
        int fd;
        char *part; /* in the cache; NULL: the user's file */
        struct http *http;
        unsigned tries;
        int permille; /* that was said last */
        struct evp_md_ctx_st *sums[SUMS];
        char digits[SUMS][129];
        struct stream stream;
};

static inline bool os_uploads(const struct os *os)
{
        return os->options->image.file || os->options->image.url;
}
/* The user's file, as it is on this computer. */
const char *os_image_path(const struct os *os);
/* That or the URL, as it may be shown: a query can be a signature that lets anybody in. */
const char *os_image_source(const struct os *os);
/* It has our mark, the file's checksum and all its bytes. */
bool os_image_is_whole(const struct os *os, const struct os_image *image);

/* After the list said which images there are: the one of the row, or what is to do about it. */
void os_image_survey(struct os *os, struct survey *out, struct os_image_of *row);

void stage_image_methods(struct os_job *j);
void stage_image_fetch(struct os_job *j);
void stage_image_digest(struct os_job *j);
void stage_image(struct os_job *j);
void stage_image_ready(struct os_job *j);

#endif
