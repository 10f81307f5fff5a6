/* What slipway created in a cloud and no longer belongs to a cluster. */
#ifndef SLIPWAY_LEAKS_H
#define SLIPWAY_LEAKS_H

#include "cluster/site/site.h"

/* With `prefix` that of a cluster whose state directory is lost, otherwise of this one (`ours`) and
 * of others. The site comes from site_look or site_open. */
int leaks_find(struct site *s, const char *prefix, struct leaks *out, struct error *err);
/* Deletes those that are `ours`; s->provider.kept then has what was not deleted, and why. */
int leaks_delete(struct site *s, const struct leaks *all, struct error *err);

#endif
