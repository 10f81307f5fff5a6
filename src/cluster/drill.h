/* A drill: a snapshot restored into an etcd and an API server of its own, on this computer's loopback alone, and read back through the API. */
#ifndef SLIPWAY_DRILL_H
#define SLIPWAY_DRILL_H

#include "base/proc.h"
#include "cluster/snapshots.h"

struct drill_kind { /* a resource that can be listed */
        struct drill *drill;
        const char *group, *version, *resource; /* group "": core */
        const char *prefix;                     /* of its keys, behind /registry/ */
        size_t keys, objects;
        char *trouble;
};

struct drill {
        struct site *site;
        struct snapshot *snapshot;
        char *dir;
        struct proc *etcd, *api, *other; /* other: a program that ends by itself */
        struct str said;                 /* the last that one of them said */
        struct str out;
        int client_port, peer_port, api_port;
        int64_t revision;
        struct kube *kube;
        struct event *timer;
        struct step *step;     /* that waits */
        const char **keys;     /* behind /registry/ */
        size_t key_count, own; /* own: of the API server itself, which no API serves */
        struct drill_kind *kinds;
        size_t kind_count, kind_cap, open, objects;
        struct str orphans; /* keys that nobody serves: "12 of foo.example.net/bars" */
};

/* Steps; arg: the drill. */
void drill_steps(struct drill *d, struct site *s, struct snapshot *snapshot);
void step_drill_count(struct step *s);
/* Ends its programs and removes what it wrote. */
void drill_release(struct drill *d);
json_t *drill_json(const struct drill *d);

#endif
