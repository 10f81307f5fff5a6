/* A session with AWS: credentials from people's own places, signatures, addresses. */
#ifndef SLIPWAY_CLOUD_AWS_H
#define SLIPWAY_CLOUD_AWS_H

#include "cloud/cloud.h"

struct aws_session;

struct aws_options {
        const char *profile; /* NULL: environment first, then AWS_PROFILE or default */
        const char *region;  /* NULL: AWS_REGION, AWS_DEFAULT_REGION, the profile's */
        const char
                *endpoint; /* of all services, for tests; NULL: AWS_ENDPOINT_URL…, or AWS's own */
};

/* Reads files and environment, and asks nobody yet. */
int aws_open(
        struct cloud *c, const struct aws_options *o, struct aws_session **out, struct error *err);
void aws_free(struct aws_session *s); /* after its calls, or with the loop at rest; NULL is fine */
struct session *aws_session(struct aws_session *s);
const char *aws_session_region(const struct aws_session *s);
const char *aws_session_origin(const struct aws_session *s); /* of the credentials, for sentences */

#endif
