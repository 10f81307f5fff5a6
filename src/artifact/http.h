/* HTTP downloads on the event loop: into a file from an offset on, or into memory. */
#ifndef SLIPWAY_HTTP_H
#define SLIPWAY_HTTP_H

#include "base/error.h"
#include "base/str.h"

struct event_base;
struct http;
struct transfer;

struct transfer_spec {
        const char *url;
        bool head;             /* only: does it answer? */
        int fd;                /* the file, or -1: into memory */
        int64_t offset;        /* what the file holds already */
        const char *validator; /* the ETag of what it holds, or NULL; a server that has other bytes
                                  by now sends all of them */
        int64_t max;           /* bytes of the whole, whatever the server says of its length */
        const char *ca;        /* PEM: trusted instead of the system's CAs; NULL: those */
        unsigned seconds;      /* for the whole; 0: as long as bytes come */
        int64_t *room; /* bytes that may come with this transfer and its siblings; counted down. May
                          be NULL */
        void (*on_progress)(
                int64_t now, int64_t total, void *arg); /* total -1: not known. May be NULL. */
        void (*on_done)(struct transfer *t, void *arg); /* the transfer is gone after it */
        void *arg;
};

enum transfer_end {
        TRANSFER_OK,
        TRANSFER_ABSENT, /* the server answered: it has no such thing for us (403, 404, 410…) */
        TRANSFER_UNREACHABLE, /* no answer: name, connection, certificate */
        TRANSFER_CUT,   /* an answer that broke off, came too slowly, or was a server's failure: try
                           again */
        TRANSFER_RANGE, /* what is there already does not fit: begin anew */
        TRANSFER_LARGE, /* more than it may be */
        TRANSFER_FAILED, /* nothing that trying again would change */
};

int http_new(struct event_base *base, struct http **out, struct error *err);
void http_free(struct http *h); /* and all transfers, without on_done. NULL is fine. */

int transfer_start(
        struct http *h, const struct transfer_spec *spec, struct transfer **out, struct error *err);
void transfer_free(struct transfer *t); /* stops it, without on_done. NULL is fine. */

/* In on_done: */
enum transfer_end transfer_end(const struct transfer *t);
const char *transfer_why(
        const struct transfer *t); /* "404 Not Found", "Could not resolve host: x" */
const char *transfer_etag(const struct transfer *t); /* "" when the server gave none */
struct str *transfer_body(struct transfer *t);
int transfer_errno(const struct transfer *t);   /* why the file could not be written, or 0 */
int64_t transfer_got(const struct transfer *t); /* bytes of this try */

#endif
