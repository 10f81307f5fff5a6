/* services.dex: what of Dex's own configuration stands in files. */
#ifndef SLIPWAY_CONFIG_DEX_H
#define SLIPWAY_CONFIG_DEX_H

#include "config/cluster.h"

#define DEX_NAMESPACE "slipway-dex" /* slipway's own: it is deleted with the provider */

/* A field that names a file, in a connector's configuration or a static client. */
struct dex_file {
        const char *key, *field; /* "clientSecretFile" becomes Dex's "clientSecret" */
        bool secret;             /* readable only by its owner; as text. Else: PEM, as base64 */
};

/* NULL: the field names no file. */
const struct dex_file *dex_file_of(const char *key);
/* The row whose secret this field holds; NULL: it holds none. */
const struct dex_file *dex_secret_of(const char *field);
/* What the file holds that is named at this place; NULL: it names none, or was not read. */
const char *dex_text(const struct dex *d, const struct tree *at);
/* Calls fn for every value below t that is in a map. */
void dex_each(const struct tree *t, void (*fn)(const struct tree *at, void *arg), void *arg);

#endif
