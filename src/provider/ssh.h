/* Provider ssh: existing hosts. */
#ifndef SLIPWAY_PROVIDER_SSH_H
#define SLIPWAY_PROVIDER_SSH_H

#include "provider/provider.h"

extern const struct provider_ops ssh_ops;

#endif
