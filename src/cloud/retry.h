/* When a request is sent again. Pure functions. */
#ifndef SLIPWAY_CLOUD_RETRY_H
#define SLIPWAY_CLOUD_RETRY_H

#include "base/base.h"

#define RETRY_AFTER_MAX 120000 /* milliseconds that a server may ask for */

/* Milliseconds before attempt `n` (from 1): exponential, between half of it and the whole of it. */
int64_t retry_backoff(unsigned n, uint32_t random);
/* Milliseconds of a Retry-After: seconds, or a date. `wall` is the server's own time (its Date) or
 * ours, in seconds. -1: it says nothing that can be used. */
int64_t retry_after(const char *text, int64_t wall);
/* Seconds since 1970 of an HTTP date; -1. */
int64_t http_date(const char *text);
/* Seconds since 1970 of 2026-11-17T10:00:00[.000000][Z|+00:00]; -1. */
int64_t iso_date(const char *text);
/* An error code of AWS that says "too fast". */
bool retry_throttle_code(const char *code);
uint32_t retry_random(void);
/* Credentials that live so long, and have so much left, are fetched anew. */
bool renewal_due(int64_t life_ms, int64_t left_ms);

#endif
