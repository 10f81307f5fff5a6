/* Machines in AWS. */
#ifndef SLIPWAY_PROVIDER_AWS_H
#define SLIPWAY_PROVIDER_AWS_H

#include "provider/provider.h"

extern const struct provider_ops aws_provider_ops;

#endif
