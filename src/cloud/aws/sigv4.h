/* AWS Signature Version 4. By hand, because libcurl's own cannot sign with a corrected clock. */
#ifndef SLIPWAY_CLOUD_SIGV4_H
#define SLIPWAY_CLOUD_SIGV4_H

#include "base/str.h"

#define SIGV4_HEADERS 8

struct sigv4_header {
        const char *name, *value; /* the name in lower case */
};

struct sigv4 {
        const char *method, *url;                   /* the url escaped as uri_escape does */
        struct sigv4_header headers[SIGV4_HEADERS]; /* signed beside host; ends with name NULL */
        const char *body;
        size_t len;
        const char *id, *secret, *region, *service;
        const char *date; /* 20150830T123600Z, also among the headers as x-amz-date */
};

#define SIGV4_DATE 17
void sigv4_date(int64_t seconds, char out[SIGV4_DATE]);
/* The host of the url as the Host header has it. */
char *sigv4_host(const char *url);
/* What is hashed, for tests and for comparison with a server's "canonical string". */
void sigv4_canonical(struct str *s, const struct sigv4 *in);
/* The value of the Authorization header. */
void sigv4_sign(struct str *s, const struct sigv4 *in);

#endif
