/* Queries the provider of auth.oidc from this computer before the plan: its discovery document must
 * match what the API servers and kubelogin will check. Problems are only warnings: the API servers
 * may reach a provider that this computer cannot, and it may run in the cluster itself. */
#ifndef SLIPWAY_ISSUER_H
#define SLIPWAY_ISSUER_H

#include "cluster/site/site.h"

/* arg: site; sets found.warning. Of services.dex only if it is installed: after the step that
 * observes services. */
void step_issuer(struct step *s);
/* Asks once, from this computer, at the address that people use. fn: why NULL when the document and
 * the certificate are as they must be. It is called once, maybe before this returns. */
void issuer_ask(struct site *s, void (*fn)(const char *why, void *arg), void *arg);
/* Appends a sentence if the document is wrong; returns false if it is right. */
bool issuer_fault(const struct oidc *o, const char *text, size_t n, struct str *out);

#endif
