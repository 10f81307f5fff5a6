/* The record of the cluster's hosts: STATE/NAME/record.json. For every node that was applied and
 * not yet removed, it has how to reach and recognise its host. Only the record and the file decide
 * which hosts slipway connects to; addresses from the API or etcd are only shown. */
#ifndef SLIPWAY_CLUSTER_RECORD_H
#define SLIPWAY_CLUSTER_RECORD_H

#include "base/arena.h"
#include "base/error.h"

struct host_record { /* texts are NULL if unknown */
        const char *name, *address, *user;
        long port;            /* 0: the provider's port */
        const char *ip;       /* the address used within the cluster */
        const char *host_key; /* "ssh-ed25519 SHA256:…", as reported by ssh */
        const char *machine_id;
        /* the version of Kubernetes with which the node was last healthy */
        const char *healthy;
        /* a run has begun to change it to this version, and none has seen it healthy since, or
         * rolled back */
        const char *unproven;
        unsigned roles;
};

struct host_records {
        /* its API has answered before: a blank etcd now means lost data */
        bool existed;
        bool adopted; /* 'adopt' has read the cluster: it exists, before slipway has changed it */
        /* read from an earlier version's file: only control-plane and etcd nodes, without
         * keys and machine-ids */
        bool old;
        struct host_record *v;
        size_t n, cap;
};

/* A missing file is an empty record. A file that is damaged, too long or of a newer version is
 * an error (EXIT_STATE). */
int records_read(const char *dir, struct arena *a, struct host_records *out, struct error *err);
/* Writes atomically, and only if the contents changed; removes the earlier version's file. */
int records_write(const char *dir, const struct host_records *r, struct error *err);
struct host_record *records_find(const struct host_records *r, const char *name);
/* Finds the row, or adds it. */
struct host_record *records_put(struct host_records *r, struct arena *a, const char *name);
void records_drop(struct host_records *r, const char *name);

#endif
