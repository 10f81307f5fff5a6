/* kube-proxy and CoreDNS of a cluster that was taken over: they stay the cluster's own, and of them
 * no more than the image is ours (network.proxyImage, network.dnsImage; `upgrade` edits both).
 * Without the option they are left alone. */
#ifndef SLIPWAY_OWN_IMAGES_H
#define SLIPWAY_OWN_IMAGES_H

#include "cluster/site/site.h"

/* The image that the file wants; NULL: left alone. */
const char *own_image_wanted(const struct cluster *c, enum own_image part);
const char *own_image_name(enum own_image part);
/* It has another one than that. Known only after own_images_observe. */
bool own_image_differs(const struct site *s, enum own_image part);
/* Asks for those that the file names, then calls fn. kube: the API that answers, which may not be
 * the one of the nodes in the file. */
void own_images_observe(struct site *s, struct kube *kube, void (*fn)(void *arg), void *arg);
/* Their configuration is left alone, so what the file says of it must be unchanged. */
int own_images_check(const struct site *s, struct error *err);
/* Gives them the image and waits until they run with it. arg: site */
void step_own_images(struct step *s);

#endif
