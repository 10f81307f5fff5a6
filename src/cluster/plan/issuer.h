/* The provider of auth.oidc, asked from this computer before the plan: its discovery document must
 * say what the API servers and kubelogin will check. Only a warning: the API servers may reach what
 * this computer does not, and the provider may run in the cluster itself. */
#ifndef SLIPWAY_ISSUER_H
#define SLIPWAY_ISSUER_H

#include "cluster/site/site.h"

/* arg: site; sets found.warning. Of services.dex only if it is installed: after the step that
 * observes services. */
void step_issuer(struct step *s);
/* Asks once, from this computer, at the address that people use. fn: why NULL when the document and
 * the certificate are as they must be. It is called once, maybe before this returns. */
void issuer_ask(struct site *s, void (*fn)(const char *why, void *arg), void *arg);
/* What is wrong with the text of the document: a sentence is added; false: nothing. */
bool issuer_fault(const struct oidc *o, const char *text, size_t n, struct str *out);

#endif
