/* Internal: one HTTP request and its answer. Nothing is sent twice here: a connection that is used
 * again can die under a request, and libcurl then sends it once more by itself, so what must not be
 * sent twice gets a connection of its own. Redirects are not followed. */
#ifndef SLIPWAY_CLOUD_EXCHANGE_H
#define SLIPWAY_CLOUD_EXCHANGE_H

#include "base/curl_loop.h"
#include "base/str.h"

/* Headers of the answer that somebody reads. */
enum head {
        HEAD_DATE,
        HEAD_RETRY_AFTER,
        HEAD_TYPE,
        HEAD_TOKEN,      /* X-Subject-Token */
        HEAD_ID,         /* the request's id, in any spelling */
        HEAD_ERROR_TYPE, /* X-Amzn-ErrorType */
        HEADS,
};

struct exchange;

struct trust {
        const char *ca_file; /* NULL: those that this computer trusts */
        const char *cert_file, *key_file;
        bool insecure;
};

/* A body that is not kept in memory: that of the request, from a file, or that of the answer. */
struct stream {
        int fd;       /* the file, from its first byte; -1: the answer */
        int64_t size; /* of the file, or at most of the answer */
        void (*fn)(const char *data, size_t n, void *arg); /* is told of all of it, in pieces */
        void *arg;
};

struct exchange_spec {
        const char *method, *url;
        const struct stream *stream; /* NULL: both are texts */
        struct curl_slist *headers;  /* taken */
        const char *body;            /* NULL: none; borrowed until the end */
        size_t len;
        unsigned timeout_ms;
        size_t max; /* bytes of the answer */
        bool once;  /* on a connection of its own */
        const struct trust *trust;
        void (*fn)(struct exchange *x, void *arg);
        void *arg;
};

struct exchange {
        struct exchange_spec spec;
        CURL *easy;
        CURLM *multi;
        struct str text;
        char *heads[HEADS];
        /* When it has ended: */
        CURLcode code;
        int status; /* 0: no whole answer */
        bool sent;  /* some of the request left this computer */
        bool too_large;
        int64_t streamed; /* bytes of the stream */
        char why[CURL_ERROR_SIZE];
};

struct exchange *exchange_start(CURLM *multi, const struct exchange_spec *spec);
void exchange_done(struct exchange *x, CURLcode code); /* calls fn, which frees it */
void exchange_free(struct exchange *x);                /* NULL is fine */
/* Why there is no answer, as part of a sentence. */
void exchange_trouble(struct str *s, const struct exchange *x);

#endif
