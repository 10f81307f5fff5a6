/* Adding encryption to a running cluster. */
#ifndef SLIPWAY_ENCRYPT_H
#define SLIPWAY_ENCRYPT_H

#include "cluster/site/site.h"

/* Called when the machines have reported their state and before anything is rendered:
 * starts it where necessary (nothing is written before the plan is approved). Removing
 * encryption is refused. */
int encrypt_look(struct site *s, struct error *err);
/* What the plan shows about it; NULL: nothing. */
const char *encrypt_text(const struct site *s);

#endif
