/* The state of the cluster, queried from every machine, etcd and the API at the same time. Changes
 * nothing; what cannot be reached is part of the answer. */
#ifndef SLIPWAY_STATUS_H
#define SLIPWAY_STATUS_H

#include "cluster/site/answer.h"
#include "cluster/site/site.h"
#include "node/cis.h"

/* Seconds for the answers of all machines; with many machines, links are opened
 * in turn (slots.h). */
unsigned status_patience(const struct site *s);

/* Queries for at most 30 seconds and returns one JSON object (its fields: status_json.c). `healthy`
 * is false if there is any problem; "problems" lists them. Fails only if nothing could be queried.
 * The site comes from site_look. */
int status_ask(struct site *s, json_t **out, bool *healthy, struct error *err);

/* Repeats this every `seconds` until `fn` returns false or SIGINT or SIGTERM arrives: the API each
 * time, the machines less often. Each answer is passed on as soon as it arrives; it is borrowed. */
int status_watch(struct site *s, unsigned seconds,
        bool (*fn)(const json_t *answer, bool healthy, void *arg), void *arg, struct error *err);

/* ---- shared by the files of this folder ---- */
struct status_node {
        struct status *status;
        struct member *member;
        char *trouble;                  /* why its machine could not be queried */
        unsigned asking;                /* answers that its link still waits for */
        bool etcd_asked, heard, closed; /* heard: HELLO arrived since the last query */
        json_t *etcd;                   /* etcdctl's answer about this member */
        char *etcd_trouble;
        bool api_asking, api_ready; /* a control-plane node's own API server */
        char *api_trouble;
};
struct status {
        struct site *site;
        struct status_node *nodes;
        size_t api_waiting, server_waiting, node_waiting; /* answers not received yet */
        struct event *timer;
        json_t *hardening;  /* cis.h; NULL: not queried */
        const char *script; /* the script that reads it */
        bool api_asked, api_ready;
        char *api_trouble, *api_version;
        json_t *others;              /* Nodes in the API that are not in cluster.yaml */
        json_t *requests;            /* pending requests for serving certificates (serving.h) */
        json_t *failing[2];          /* pods of the control plane and of DNS that do not start */
        json_t *secrets;             /* helm's: metadata of all revisions; NULL: unknown */
        json_t *workloads[3];        /* managed by helm: Deployments, DaemonSets, StatefulSets */
        struct status_addon *addons; /* built-in ones of the file (status_addons.c) */
        size_t addon_count;
        json_t *inventory;              /* of services' objects; NULL: not known */
        bool login_asking, login_known; /* services.dex */
        char *login_trouble;
};
void status_begin(struct status *st, struct site *s);
void status_ask_nodes(struct status *st);
void status_ask_api(struct status *st);
/* Part of status_ask_api: releases, if the file has charts. */
void status_ask_services(struct status *st, unsigned timeout_ms);
json_t *status_releases_json(const struct status *st, json_t *problems);
/* The same for addons that are built in. */
void status_ask_addons(struct status *st, unsigned timeout_ms);
json_t *status_addons_json(const struct status *st, json_t *problems);
void status_addons_end(struct status *st);
void status_ask_login(struct status *st);
/* NULL: there is no services.dex, or it was not asked. */
json_t *status_login_json(const struct status *st, json_t *problems);
/* One answer has arrived. */
void status_answered(struct status *st, size_t *waiting);
/* Queries every API server separately; those with an open query are not queried
 * again. After status_ask_api. */
void status_ask_servers(struct status *st);
/* Runs the loop until every query is answered, for at most this long; then marks the rest
 * as not answering. */
int status_wait(struct status *st, unsigned seconds, struct error *err);
/* Ends all open queries. */
void status_give_up(struct status *st);
void status_end(struct status *st);
json_t *status_json(const struct status *st, bool *healthy);

#endif
