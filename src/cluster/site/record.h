/* The record of the cluster's hosts: STATE/NAME/record.json. It holds, for every node that was ever
 * applied and not yet removed, how its host is reached and how it is recognised. Only it and the
 * file decide which host is connected to: what the API or etcd says of an address is shown and
 * never followed. */
#ifndef SLIPWAY_CLUSTER_RECORD_H
#define SLIPWAY_CLUSTER_RECORD_H

#include "base/arena.h"
#include "base/error.h"

struct host_record { /* a text may be NULL: not known */
        const char *name, *address, *user;
        long port;            /* 0: the provider's */
        const char *ip;       /* what the cluster uses */
        const char *host_key; /* "ssh-ed25519 SHA256:…", as ssh told it */
        const char *machine_id;
        unsigned roles;
};

struct host_records {
        bool born; /* its API has answered once: a blank etcd is then a loss, not a beginning */
        bool old;  /* read from a file of an earlier version: only control-plane and etcd nodes,
                      without keys and ids */
        struct host_record *v;
        size_t n, cap;
};

/* A record that is not there is an empty one. One that is damaged, too long or of a newer version
 * fails (EXIT_STATE). */
int records_read(const char *dir, struct arena *a, struct host_records *out, struct error *err);
/* Atomic; the file of the earlier version goes. The same contents are not written again. */
int records_write(const char *dir, const struct host_records *r, struct error *err);
struct host_record *records_find(const struct host_records *r, const char *name);
struct host_record *records_put(
        struct host_records *r, struct arena *a, const char *name); /* finds or adds */
void records_drop(struct host_records *r, const char *name);

#endif
