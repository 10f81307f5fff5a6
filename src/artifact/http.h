/* HTTP downloads on the event loop: into a file from an offset, or into memory. */
#ifndef SLIPWAY_HTTP_H
#define SLIPWAY_HTTP_H

#include "base/error.h"
#include "base/str.h"

struct event_base;
struct http;
struct transfer;

struct transfer_spec {
        const char *url;
        bool head;      /* only check whether it answers */
        int fd;         /* the file, or -1: into memory */
        int64_t offset; /* size of what the file has already */
        /* the ETag of what it has, or NULL; a server with other bytes sends all of them */
        const char *validator;
        int64_t max;      /* maximum of the whole, whatever the server announces */
        const char *ca;   /* PEM: trusted instead of the system's CAs; NULL: those */
        unsigned seconds; /* for the whole; 0: while bytes arrive */
        /* bytes that this and other transfers may still receive; counted down. May be NULL */
        int64_t *room;
        /* total -1: unknown. May be NULL. */
        void (*on_progress)(int64_t now, int64_t total, void *arg);
        void (*on_done)(struct transfer *t, void *arg); /* the transfer is freed after it */
        void *arg;
};

enum transfer_end {
        TRANSFER_OK,
        TRANSFER_ABSENT,      /* the server does not have it (403, 404, 410…) */
        TRANSFER_UNREACHABLE, /* no answer: name, connection, certificate */
        /* an answer that was interrupted, too slow or a server error: try again */
        TRANSFER_CUT,
        TRANSFER_RANGE,  /* the existing part does not match: start again */
        TRANSFER_LARGE,  /* larger than allowed */
        TRANSFER_FAILED, /* an error that a retry would not solve */
};

int http_new(struct event_base *base, struct http **out, struct error *err);
void http_free(struct http *h); /* and all transfers, without on_done. NULL is fine. */

int transfer_start(
        struct http *h, const struct transfer_spec *spec, struct transfer **out, struct error *err);
void transfer_free(struct transfer *t); /* stops it without on_done; t may be NULL */

/* In on_done: */
enum transfer_end transfer_end(const struct transfer *t);
/* "404 Not Found", "Could not resolve host: x". */
const char *transfer_why(const struct transfer *t);
const char *transfer_etag(const struct transfer *t); /* "" when the server gave none */
struct str *transfer_body(struct transfer *t);
int transfer_errno(const struct transfer *t);   /* why the file could not be written, or 0 */
int64_t transfer_got(const struct transfer *t); /* bytes of this try */

#endif
