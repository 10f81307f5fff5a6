/* Serving certificates of kubelets that kubeadm joined. Our own nodes' are issued with the rest
 * of their Identity; a joined machine's kubelet asks the API for one
 * (CertificateSigningRequest), and somebody has to say that it is right: `slipway certs approve
 * NODE`, once. What was approved is kept in the state directory (joined/NODE: its names and
 * addresses), and up approves renewals of exactly that.
 *
 * The request and the Node come from the machine itself: they are judged, and never may name an
 * address or a host that is somebody else's. */
#ifndef SLIPWAY_SERVING_H
#define SLIPWAY_SERVING_H

#include "cluster/plan/chores.h"

#define SERVING_REQUESTS \
        "/apis/certificates.k8s.io/v1/certificatesigningrequests?fieldSelector=spec.signerName%3Dkubernetes.io%2Fkubelet-serving&limit=500"

struct serving { /* a request that waits */
        const char *node;
        struct strings names; /* "DNS:joiner", "IP:10.0.0.9": what it asks for */
        const char *trouble;  /* why it must not be approved; NULL: it may */
        const json_t *object; /* the list's, while that lives */
};

/* Those that wait in the list of requests, judged by the file and by the Nodes the API has (a
 * list of them, or its items). */
size_t serving_read(struct arena *a, const struct cluster *c, const json_t *requests,
        const json_t *nodes, struct serving **out);
/* Whether the kubelet of that node waits for one. */
bool serving_asks(const json_t *requests, const char *node);
/* Approves it. */
struct chore serving_chore(struct arena *a, const struct serving *r);
/* "joiner, 10.0.0.9" */
void serving_names(const struct serving *r, struct str *out);

/* It asks for what a person approved for that node before. */
bool serving_known(const struct site *s, const struct serving *r);
bool serving_any_known(const struct site *s);
int serving_remember(const struct site *s, const struct serving *r, struct error *err);

#endif
