#ifndef SLIPWAY_PROVIDER_AWS_SUGGEST_H
#define SLIPWAY_PROVIDER_AWS_SUGGEST_H

#include "provider/suggest.h"

int aws_suggest(struct arena *a, struct suggestions *out, struct error *err);

#endif
