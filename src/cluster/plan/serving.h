/* Serving certificates of kubelets that joined with kubeadm. Those of slipway's nodes are issued
 * with the rest of their Identity. The kubelet of a joined machine requests one from the API
 * (CertificateSigningRequest), and an operator approves the first: `slipway certs approve NODE`.
 * The approved names and addresses are stored in the state directory (joined/NODE), and `up`
 * approves renewals with exactly these. The request and the Node come from the machine itself, so
 * they are checked: they must not contain an address or a host name of another one. */
#ifndef SLIPWAY_SERVING_H
#define SLIPWAY_SERVING_H

#include "cluster/plan/chores.h"

#define SERVING_REQUESTS \
        "/apis/certificates.k8s.io/v1/certificatesigningrequests?fieldSelector=spec.signerName%3Dkubernetes.io%2Fkubelet-serving&limit=500"

struct serving { /* a pending request */
        const char *node;
        struct strings names; /* "DNS:joiner", "IP:10.0.0.9": the requested names */
        const char *trouble;  /* why it must not be approved; NULL: it may be */
        const json_t *object; /* borrowed from the list */
};

/* The pending ones in the list of requests, checked with the file and the API's Nodes (a list
 * or its items). */
size_t serving_read(struct arena *a, const struct cluster *c, const json_t *requests,
        const json_t *nodes, struct serving **out);
/* Whether the kubelet of that node has a pending request. */
bool serving_asks(const json_t *requests, const char *node);
/* The chore that approves it. */
struct chore serving_chore(struct arena *a, const struct serving *r);
/* "joiner, 10.0.0.9" */
void serving_names(const struct serving *r, struct str *out);

/* It requests the names that were approved for that node before. */
bool serving_known(const struct site *s, const struct serving *r);
bool serving_any_known(const struct site *s);
int serving_remember(const struct site *s, const struct serving *r, struct error *err);

#endif
