/* A drill: a snapshot is restored into a temporary etcd, and read back through a temporary API
 * server. Both listen only on this computer's loopback address. */
#ifndef SLIPWAY_DRILL_H
#define SLIPWAY_DRILL_H

#include "base/proc.h"
#include "cluster/etcd/snapshots.h"

struct drill_kind { /* a resource that can be listed */
        struct drill *drill;
        const char *group, *version, *resource; /* "": the core group */
        const char *prefix;                     /* of its keys, after /registry/ */
        size_t keys, objects;
        int64_t live; /* objects in the live cluster; -1: unknown */
        char *trouble;
};

struct drill {
        struct site *site;
        struct snapshot *snapshot;
        char *dir;
        struct proc *etcd, *api, *other; /* other: a program that exits by itself */
        struct str said;                 /* the last error output */
        struct str out;
        int client_port, peer_port, api_port;
        int64_t revision;
        struct kube *kube;
        struct event *timer;
        struct step *step;     /* the step that waits */
        const char **keys;     /* without /registry/ */
        size_t key_count, own; /* own: keys of the API server itself, which no API serves */
        struct drill_kind *kinds;
        size_t kind_count, kind_cap, open, objects;
        struct str orphans; /* keys that no API serves: "12 of foo.example.net/bars" */
        int64_t live;       /* objects in the live cluster; -1: it does not answer */
};

void drill_steps(struct drill *d, struct site *s, struct snapshot *snapshot);
/* Stops the programs and removes the files. */
void drill_release(struct drill *d);
json_t *drill_json(const struct drill *d);

/* ---- shared by the drill's files ---- */

void step_drill_programs(struct step *s); /* arg of all steps: the drill */
void step_drill_restore(struct step *s);
void step_drill_etcd(struct step *s);
void step_drill_api(struct step *s);
void step_drill_count(struct step *s);
void step_drill_live(struct step *s);

#define DRILL_PATIENCE 600 /* seconds until a program must answer, also on a busy computer */
/* Ends the waiting step, once; programs that end later are ignored. */
void drill_good(struct drill *d);
#define drill_fail(d, status, hint, ...) \
        do { \
                struct step *waits_ = TAKE((d)->step); \
                if (waits_) \
                        step_fail(waits_, EIO, status, hint, __VA_ARGS__); \
        } while (0)
/* In the drill's directory; allocated in the arena. */
const char *drill_path(struct drill *d, const char *name);
const char *drill_program(struct drill *d, const char *name);
/* Output goes to d->out, error output to d->said. Returns false if the step has failed. */
bool drill_start(struct drill *d, const char *const *argv, struct proc **at,
        void (*on_exit)(struct proc *, int, void *));
/* Fails the step because a program ended unexpectedly. */
void drill_ended(struct drill *d, const char *name, int status);
const char **drill_etcdctl(struct drill *d, const char *const *words);
int drill_port(void); /* a free port on the loopback address; 0: none */
int drill_keys(struct drill *d, struct error *err);
/* /apis/GROUP/VERSION/RESOURCE?QUERY; allocated in the arena */
const char *drill_kind_path(const struct drill_kind *k, const char *query);

#endif
