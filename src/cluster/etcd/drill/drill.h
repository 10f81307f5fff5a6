/* A drill: a snapshot restored into an etcd and an API server of its own, on this computer's
 * loopback alone, and read back through the API. */
#ifndef SLIPWAY_DRILL_H
#define SLIPWAY_DRILL_H

#include "base/proc.h"
#include "cluster/etcd/snapshots.h"

struct drill_kind { /* a resource that can be listed */
        struct drill *drill;
        const char *group, *version, *resource; /* group "": core */
        const char *prefix;                     /* of its keys, behind /registry/ */
        size_t keys, objects;
        int64_t live; /* how many the live cluster has; -1: it did not say */
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
        int64_t live;       /* objects of the live cluster; -1: it does not answer */
};

void drill_steps(struct drill *d, struct site *s, struct snapshot *snapshot);
/* Ends its programs and removes what it wrote. */
void drill_release(struct drill *d);
json_t *drill_json(const struct drill *d);

/* ---- between its files ---- */

void step_drill_programs(struct step *s); /* arg of all: the drill */
void step_drill_restore(struct step *s);
void step_drill_etcd(struct step *s);
void step_drill_api(struct step *s);
void step_drill_count(struct step *s);
void step_drill_live(struct step *s);

#define DRILL_PATIENCE 600 /* seconds for a program to be there, on a computer that is busy */
/* Ends the step that waits, once: a program that ends later has nobody to tell. */
void drill_good(struct drill *d);
#define drill_fail(d, status, hint, ...) \
        do { \
                struct step *waits_ = TAKE((d)->step); \
                if (waits_) \
                        step_fail(waits_, EIO, status, hint, __VA_ARGS__); \
        } while (0)
const char *drill_path(struct drill *d, const char *name); /* in its directory; in the arena */
const char *drill_program(struct drill *d, const char *name);
/* Its output comes to d->out, its words to d->said. false: the step has failed. */
bool drill_start(struct drill *d, const char *const *argv, struct proc **at,
        void (*on_exit)(struct proc *, int, void *));
/* The step fails: a program ended that should not have. */
void drill_ended(struct drill *d, const char *name, int status);
const char **drill_etcdctl(struct drill *d, const char *const *words);
int drill_port(void); /* one of the loopback that is free now; 0: none */
int drill_keys(struct drill *d, struct error *err);
/* /apis/GROUP/VERSION/RESOURCE?QUERY; in the arena */
const char *drill_kind_path(const struct drill_kind *k, const char *query);

#endif
