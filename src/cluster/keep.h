/* kube-proxy and CoreDNS of a cluster that was taken over: they stay the cluster's own, and of them no more than the image is ours (network.proxyImage,
 * network.dnsImage; `upgrade` edits both). Without the option they are left alone. */
#ifndef SLIPWAY_KEEP_H
#define SLIPWAY_KEEP_H

#include "cluster/site.h"

/* The image that the file wants; NULL: left alone. */
const char *keep_wanted(const struct cluster *c, enum keep_part part);
const char *keep_name(enum keep_part part);
/* It has another one than that. Known only after keep_look. */
bool keep_differs(const struct site *s, enum keep_part part);
/* Asks for those that the file names, then calls fn. kube: the API that answers, which may not be the one of the nodes in the file. */
void keep_look(struct site *s, struct kube *kube, void (*fn)(void *arg), void *arg);
/* Gives them the image and waits until they run with it. arg: site */
void step_keep(struct step *s);

#endif
