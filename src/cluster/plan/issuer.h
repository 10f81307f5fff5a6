/* Queries the provider of auth.oidc from this computer before the plan: its discovery document must
 * match what the API servers and kubelogin will check. Problems are only warnings: the API servers
 * may reach a provider that this computer cannot, and it may run in the cluster itself. */
#ifndef SLIPWAY_ISSUER_H
#define SLIPWAY_ISSUER_H

#include "cluster/site/site.h"

void step_issuer(struct step *s); /* arg: site; sets found.warning */
/* Appends a sentence if the document is wrong; returns false if it is right. */
bool issuer_fault(const struct oidc *o, const char *text, size_t n, struct str *out);

#endif
