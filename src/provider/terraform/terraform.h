/* Machines that Terraform or OpenTofu has created. Their addresses are in the output `slipway` of
 * provider.terraform.dir; with these they are hosts as with provider ssh. */
#ifndef SLIPWAY_PROVIDER_TERRAFORM_H
#define SLIPWAY_PROVIDER_TERRAFORM_H

#include <jansson.h>

#include "provider/provider.h"

extern const struct provider_ops terraform_ops;

/* output.c: the value of the output `slipway`; NULL: there is none yet. From outputs.json in the
 * directory if it exists, otherwise from tofu or terraform. `*source` says which, for messages. */
int terraform_output(const struct cluster *c, struct arena *a, json_t **out, const char **source,
        struct error *err);

#endif
