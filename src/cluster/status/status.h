/* How the cluster is, asked of every machine, of etcd and of the API at once. Changes nothing; what
 * cannot be reached is part of the answer. */
#ifndef SLIPWAY_STATUS_H
#define SLIPWAY_STATUS_H

#include "cluster/site/answer.h"
#include "cluster/site/site.h"
#include "node/cis.h"

/* Seconds for the answers of all machines; many of them take turns (slots.h). */
unsigned status_patience(const struct site *s);

/* Asks, for at most half a minute, and answers as one JSON object (see status_json.c for its
 * fields). `healthy` is false when anything is not as it should be: "problems" lists what. Fails
 * only when nothing could be asked at all. The site comes from site_look. */
int status_ask(struct site *s, json_t **out, bool *healthy, struct error *err);

/* The same again and again, every `seconds` until `fn` says false or SIGINT or SIGTERM comes: the
 * API each time, the machines every few times, each answer shown as soon as it is there. The answer
 * is borrowed. */
int status_watch(struct site *s, unsigned seconds,
        bool (*fn)(const json_t *answer, bool healthy, void *arg), void *arg, struct error *err);

/* ---- between the files ---- */
struct status_node {
        struct status *status;
        struct member *member;
        char *trouble;                  /* why its machine could not be asked */
        unsigned asking;                /* answers that its link still waits for */
        bool etcd_asked, heard, closed; /* heard: it said hello since it was asked last */
        json_t *etcd;                   /* etcdctl's own words about this member */
        char *etcd_trouble;
        bool api_asking, api_ready; /* a control-plane node: its own API server */
        char *api_trouble;
};
struct status {
        struct site *site;
        struct status_node *nodes;
        size_t api_waiting, server_waiting, node_waiting; /* answers still to come */
        struct event *timer;
        json_t *hardening;  /* cis.h; NULL: nobody asks */
        const char *script; /* that asks for it */
        bool api_asked, api_ready;
        char *api_trouble, *api_version;
        json_t *others;       /* Nodes of the API that are not in cluster.yaml */
        json_t *requests;     /* serving certificates that kubelets ask for (serving.h) */
        json_t *failing[2];   /* pods of the control plane, and of DNS, that do not come up */
        json_t *secrets;      /* helm's: metadata of all revisions; NULL: not known */
        json_t *workloads[3]; /* that helm manages: Deployments, DaemonSets, StatefulSets */
        bool login_asking, login_known; /* services.dex */
        char *login_trouble;
};
void status_begin(struct status *st, struct site *s);
void status_ask_nodes(struct status *st);
void status_ask_api(struct status *st);
/* Inside it: releases, where the file has charts. */
void status_ask_services(struct status *st, unsigned timeout_ms);
json_t *status_releases_json(const struct status *st, json_t *problems);
void status_ask_login(struct status *st);
/* NULL: there is no services.dex, or it was not asked. */
json_t *status_login_json(const struct status *st, json_t *problems);
/* One answer fewer is waited for. */
void status_answered(struct status *st, size_t *waiting);
/* Every API server by itself; those that still owe an answer are not asked again. After
 * status_ask_api. */
void status_ask_servers(struct status *st);
/* Runs the loop until everything asked is answered, at most so long, and then says of the rest that
 * it did not answer. */
int status_wait(struct status *st, unsigned seconds, struct error *err);
/* What has not answered by now will not. */
void status_give_up(struct status *st);
void status_end(struct status *st);
json_t *status_json(const struct status *st, bool *healthy);

#endif
