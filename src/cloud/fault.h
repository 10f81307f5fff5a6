/* Why a call did not succeed, and the sentence that says it. */
#ifndef SLIPWAY_CLOUD_FAULT_H
#define SLIPWAY_CLOUD_FAULT_H

#include <jansson.h>

#include "base/error.h"
#include "cloud/redact.h"

enum fault_kind {
        FAULT_NONE,
        FAULT_UNREACHABLE, /* no connection, no answer in time, a broken answer */
        FAULT_CREDENTIALS, /* missing, refused or expired; transient for a run: exit status 5 */
        FAULT_FORBIDDEN,   /* 403: a policy */
        FAULT_ABSENT,      /* 404, Invalid*.NotFound */
        FAULT_CONFLICT,    /* 409, DependencyViolation, already exists */
        FAULT_QUOTA,       /* over a limit of the project or the account */
        FAULT_THROTTLED,   /* to the end of the deadline */
        FAULT_WRONG,       /* another 4xx: the request itself */
        FAULT_SERVER,      /* 5xx */
        FAULT_ANSWER,      /* the answer cannot be understood */
};

struct fault {
        enum fault_kind kind;
        bool lost;  /* it may have been done: list by mark before it is sent again */
        int status; /* HTTP, 0 without an answer */
        char *service, *call, *resource; /* "nova", "create server", "w1" or NULL */
        char *code;                      /* "InvalidVpcID.NotFound", or NULL */
        char *cause;                     /* without secrets, harmless */
        char *request_id;                /* or NULL */
        char *hint;                      /* or NULL */
};

void fault_release(struct fault *f);
/* From a refusal's body (JSON, the JSON of XML, or text that is neither): code, cause, request id
 * and kind. `code` and `id`: from headers, may be NULL. */
void fault_read(struct fault *f, const struct secrets *secrets, const json_t *body,
        const char *text, const char *code, const char *id);
/* "nova: create server w1: status 403: Quota exceeded for cores (request req-1)". Returns
 * -err->code. */
int fault_error(const struct fault *f, struct error *err);

#endif
