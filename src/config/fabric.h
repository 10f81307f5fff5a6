/* The table of pod networks: what each is made of, which options it uses and how it is known to
 * work. The other rooms ask it instead of comparing names. Versions are in
 * artifact/catalogue.c; what a reset removes is in agent/reset/traces.c, because the agent
 * includes nothing of this room. */
#ifndef SLIPWAY_CONFIG_FABRIC_H
#define SLIPWAY_CONFIG_FABRIC_H

#include "config/cluster.h"

/* Programs on every node. Each is a bit of node/context.h and of artifact/items.c. */
enum fabric_part {
        FABRIC_FLANNELD = 1 << 0, /* flanneld, a service: addresses and packets between nodes */
        FABRIC_BRIDGE = 1 << 1,   /* the CNI plugin flannel: pods on a bridge */
        /* calico-node, a service (policies and pods' routes), and the CNI plugin calico */
        FABRIC_FELIX = 1 << 2,
        /* Calico also hands out the addresses and carries packets between nodes */
        FABRIC_CALICO_IPAM = 1 << 3,
};

/* Options of network.fabric. */
enum fabric_option {
        FABRIC_TAKES_BACKEND = 1 << 0,
        FABRIC_TAKES_MTU = 1 << 1,
        FABRIC_TAKES_INTERFACE = 1 << 2,
        FABRIC_TAKES_MANIFESTS = 1 << 3,
};

struct fabric_chart {
        const char *repository, *url, *chart, *version;
        const char *(*values)(const struct cluster *c); /* YAML, in the arena */
};

struct fabric_row {
        unsigned parts;         /* enum fabric_part; 0: nothing of it is slipway's */
        unsigned options;       /* enum fabric_option */
        unsigned backends;      /* bits of enum fabric_backend; 0: it has none to choose from */
        bool needs_proxy;       /* it does not replace kube-proxy */
        bool policy;            /* it enforces NetworkPolicies, which verify proves */
        const char *up;         /* annotation of a Node on which it works; NULL: it has none */
        const char *objects[3]; /* templates of addon/ */
        bool replaces_proxy;    /* it serves Services itself if network.proxyMode is none */
        /* Upstream's chart: a row of services.charts that comes first; NULL: it has none. */
        const struct fabric_chart *chart;
};

extern const char *const fabric_names[]; /* by enum fabric_kind; the last is NULL */
const struct fabric_row *fabric_row(enum fabric_kind kind);
/* Of the cluster's fabric. */
static inline const struct fabric_row *cluster_fabric(const struct cluster *c)
{
        return fabric_row(c->network.fabric.kind);
}
/* Appends the row of services.charts and the repository that the fabric stands for; its values
 * need the nodes (cluster_expand). */
void fabric_expand(struct cluster *c);
/* fabric_chart.c: */
extern const struct fabric_chart cilium_chart, kube_ovn_chart;

static inline bool fabric_has(const struct cluster *c, enum fabric_part part)
{
        return cluster_fabric(c)->parts & part;
}

#endif
