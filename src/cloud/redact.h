/* No secret in a sentence: values that are known to be secret, and what looks like one. */
#ifndef SLIPWAY_CLOUD_REDACT_H
#define SLIPWAY_CLOUD_REDACT_H

#include "base/str.h"

#define REDACTED "[hidden]"

/* Values that must not appear; starts zeroed. */
struct secrets {
        size_t n;
        char **v;
};

/* Texts of fewer than six bytes are left out: they would hide parts of ordinary words. */
void secrets_add(struct secrets *s, const char *value);
void secrets_release(struct secrets *s);
/* Appends the text with the known values, and what stands behind words such as "password" or
 * "Signature=", hidden; made harmless and at most `max` characters. `s` may be NULL. */
void redact(struct str *out, const struct secrets *s, const char *text, size_t max);

#endif
