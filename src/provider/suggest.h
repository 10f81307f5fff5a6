/* What a first cluster.yaml could say, asked from the cloud. */
#ifndef SLIPWAY_PROVIDER_SUGGEST_H
#define SLIPWAY_PROVIDER_SUGGEST_H

#include "config/cluster.h"

#define SUGGEST_MAX 12

struct suggestions {
        struct pair v[SUGGEST_MAX]; /* "image": "debian-12"; a list as "[a, b]", of names only */
        size_t n;
};

/* Fills `out` with names that the cloud has. None where the provider has nobody to ask, or where
 * there are no credentials: that is no error. Changes nothing in the cloud. */
int provider_suggest(
        const char *provider, struct arena *a, struct suggestions *out, struct error *err);
void suggest_put(struct suggestions *s, const char *key, const char *value);
const char *suggest_get(const struct suggestions *s, const char *key); /* NULL: none */

#endif
