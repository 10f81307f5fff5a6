/* kube-proxy and CoreDNS of an adopted cluster. They stay the cluster's own; slipway changes only
 * their images (network.proxyImage, network.dnsImage; `upgrade` edits both). Without these options
 * they are not changed. */
#ifndef SLIPWAY_OWN_IMAGES_H
#define SLIPWAY_OWN_IMAGES_H

#include "cluster/site/site.h"

/* The image in the file; NULL: not changed by slipway. */
const char *own_image_wanted(const struct cluster *c, enum own_image part);
const char *own_image_name(enum own_image part);
/* The cluster uses another image. Known only after own_images_observe. */
bool own_image_differs(const struct site *s, enum own_image part);
/* Reads the images of the components that the file names, then calls fn. kube: the API that
 * answers, which may be one of removed nodes. */
void own_images_observe(struct site *s, struct kube *kube, void (*fn)(void *arg), void *arg);
/* slipway does not change their configuration, so options about it must be equal to
 * what they use. */
int own_images_check(const struct site *s, struct error *err);
/* Sets the image and waits until they run with it. arg: site */
void step_own_images(struct step *s);

#endif
