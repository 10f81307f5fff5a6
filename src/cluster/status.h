/* How the cluster is, asked of every machine, of etcd and of the API at once. Changes nothing; what cannot be reached is part of the answer. */
#ifndef SLIPWAY_STATUS_H
#define SLIPWAY_STATUS_H

#include "cluster/site.h"

/* Asks, for at most half a minute, and answers as one JSON object (see status_json.c for its fields). `healthy` is false when anything is not as it should be:
 * "problems" lists what. Fails only when nothing could be asked at all. The site comes from site_look. */
int status_ask(struct site *s, json_t **out, bool *healthy, struct error *err);

/* ---- between the two files ---- */
struct status_node {
        struct status *status;
        struct member *member;
        char *trouble; /* why its machine could not be asked */
        bool etcd_asked, closed;
        json_t *etcd; /* etcdctl's own words about this member */
        char *etcd_trouble;
};
struct status {
        struct site *site;
        struct status_node *nodes;
        size_t waiting; /* answers still to come */
        bool api_asked, api_ready;
        char *api_trouble, *api_version;
        json_t *others; /* Nodes of the API that are not in cluster.yaml */
};
json_t *status_json(const struct status *st, bool *healthy);

#endif
