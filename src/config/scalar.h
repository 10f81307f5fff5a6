/* What words in cluster.yaml mean: pure functions of text. A `fault` is NULL for good text, else
 * why it is not. */
#ifndef SLIPWAY_SCALAR_H
#define SLIPWAY_SCALAR_H

#include "base/str.h"

/* 1h30m, 90s, 365d, 2w; with `millis` also 100ms, and the result counts milliseconds. */
bool duration_parse(const char *s, bool millis, int64_t *out);
void duration_add(struct str *s, int64_t value, bool millis); /* in its largest whole unit */
/* 20GiB, 20Gi, 20G, 20GB: letters with i count by 1024, others by 1000. */
bool size_parse(const char *s, int64_t *out);
void size_add(struct str *s, int64_t bytes);

const char *name_fault(const char *s);     /* RFC 1123 label */
const char *host_fault(const char *s);     /* a DNS name or an address */
const char *hostport_fault(const char *s); /* host, host:port, [v6]:port */
const char *url_fault(const char *s);      /* http or https */
const char *abspath_fault(const char *s);
const char *label_key_fault(const char *s);
const char *label_value_fault(const char *s);

#define HOST_MAX 254
/* Splits host, host:port, v6 and [v6]:port; port 0 when there is none. False when it is
 * none of them. */
bool hostport_split(const char *s, char host[HOST_MAX], long *port);
/* The place of the first control character, or NULL. */
const char *control_in(const char *s, uint32_t *cp);

#endif
