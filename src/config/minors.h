/* The Kubernetes minors this slipway knows. The rules refuse others; the catalogue has a
 * row for each. */
#ifndef SLIPWAY_MINORS_H
#define SLIPWAY_MINORS_H

#define KUBERNETES_OLDEST_MINOR 34
#define KUBERNETES_NEWEST_MINOR 36
#define KUBERNETES_MINORS       "1.34, 1.35, 1.36"
#define KUBERNETES_NEWEST       "1.36.3"
/* A release of the minor before: what the tests upgrade from. */
#define KUBERNETES_PREVIOUS "1.35.4"

#endif
