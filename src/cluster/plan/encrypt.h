/* Encryption that comes to a cluster which lives without it. */
#ifndef SLIPWAY_ENCRYPT_H
#define SLIPWAY_ENCRYPT_H

#include "cluster/site/site.h"

/* When the machines have said what they have, before anything is rendered: begins it where it is
 * due (nothing is written before the plan is approved). Encryption that is to end is refused. */
int encrypt_look(struct site *s, struct error *err);
/* What the plan says of it; NULL: nothing. */
const char *encrypt_text(const struct site *s);

#endif
