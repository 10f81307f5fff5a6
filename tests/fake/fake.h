/* A cluster that is not there: links, the API, etcd and the clock are played by this program, so
 * that every answer can be lost, late, refused or in another order. It takes the place of link.h,
 * kube.h and a few functions of other rooms at link time (--wrap, see meson.build).
 *
 * Each answer is an event. Events are counted from 1 on, and the faults of a run name the event at
 * which something goes wrong. Time is virtual: it passes only when nothing is left to do, so a
 * deadline of an hour takes no time, and a run that waits for nothing is seen at once. */
#ifndef FAKE_H
#define FAKE_H

#include "base/arena.h"
#include "base/str.h"
#include "cluster/etcd/etcd.h"
#include "cluster/site/site.h"
#include "config/minors.h"

#define FAKE_NODES   5 /* c1 c2 c3 w1 w2 */
#define FAKE_PEERS   8
#define FAKE_NEW     KUBERNETES_NEWEST
#define FAKE_OLD     KUBERNETES_PREVIOUS
#define FAKE_KUBELET "/usr/local/bin/kubelet"

enum fault_kind {
        FAULT_NONE,
        FAULT_CUT,       /* the victim's link closes before the event */
        FAULT_CUT_ALL,   /* all links close */
        FAULT_LOST,      /* what was asked for was done; the answer is lost with its link */
        FAULT_REFUSE,    /* the answer is no */
        FAULT_NOT_YET,   /* etcd's "not yet"; else no */
        FAULT_REORDER,   /* what was to come next comes first */
        FAULT_DELAY,     /* it comes an hour later */
        FAULT_API_GONE,  /* from then on the API answers nothing */
        FAULT_CLOCK,     /* the wall clock jumps an hour ahead */
        FAULT_INTERRUPT, /* the operator ends the run */
        FAULT_COUNT
};
struct fault {
        enum fault_kind kind;
        size_t at, victim;
};

enum how { HOW_PLAIN, HOW_LOST, HOW_REFUSED, HOW_NOT_YET };

struct fake_event;

struct fake_node {
        char version[16];     /* of its kubelet, by the API's word */
        char given[16];       /* of what was applied last */
        int64_t starts;       /* when its kubelet is there with what was given; 0: it is */
        bool broken;          /* its kubelet does not start with the new version */
        bool fresh;           /* a machine with nothing on it */
        bool reset;           /* nothing of ours is there any more */
        bool away;            /* nobody answers at its address */
        bool mute;            /* its kubelet does not register */
        bool cordoned, moved; /* moved: its pod was evicted */
        bool gone;            /* its Node is deleted */
        bool outdated;        /* its operating system wants a reboot */
        bool old;             /* its machine is outdated */
        unsigned made;        /* how often it was made */
        struct fake_event *making;
        unsigned boots;    /* how often it was rebooted */
        int64_t goes_down; /* when a reboot that was ordered begins; 0: none was */
        struct link *link;
};
struct fake_peer {
        uint64_t id;
        char name[16], peer[48], client[48];
        bool learner, tried;
};

struct fake_release {
        char name[16], state[20], inputs[48];
        long revision, deployed, made; /* made: what the label says */
};

struct fake_thing {           /* something outside: a load balancer, a volume */
        bool there, ordered;  /* ordered: its deletion was */
        int64_t takes, until; /* until it is gone, from then on; takes -1: it never goes */
};

struct world {
        struct event_base *base;
        struct fault faults[2];
        size_t seen; /* events so far */
        bool api_gone;
        bool api_on_c1; /* the API answers only while c1 is not broken */
        int64_t wall;   /* what the wall clock is ahead */
        struct fake_node nodes[FAKE_NODES];
        struct fake_peer peers[FAKE_PEERS];
        size_t peer_count;
        uint64_t last_id;
        uint64_t applied[FAKE_NODES]; /* raft's applied index of each */
        size_t leader;                /* who leads etcd */
        unsigned no_leader;           /* a bit for each node whose member sees no leader */
        const char *snapshot_from;    /* who was asked to take one */
        size_t opened, closed;        /* links */
        size_t slots;                 /* how many may be open at once; 0: one for each node */
        struct fake_call *calls;      /* of the API, open */
        struct fake_fetch *fetches;
        struct fake_release
                releases[4];  /* of helm, in namespace shop; revision 0: it is not there */
        const char *manifest; /* an older one is in the inventory; NULL: none */
        const char *ending;   /* a namespace that is being deleted; NULL: none */
        struct fake_thing balancer, volume;
        unsigned balanced; /* a bit for each control-plane node that the provider's balancer has */
        bool retained;     /* the volume has the reclaim policy Retain */
        bool workload;     /* whose pod uses the volume, and comes back as long as it is there */
        bool early;        /* a node was reset while they were there */
        const char *wrong; /* something went before what it must wait for; NULL: nothing did */
        const char *story; /* for messages */
        const struct run *run;
};
extern struct world world;

/* ---- events ---- */

struct fake_event;
typedef void (*fake_fn)(void *self, enum how how);
struct fake_event *fake_post(unsigned ms, fake_fn fn, void *self);
void fake_forget(struct fake_event *e); /* NULL is fine */
int64_t fake_now(void);                 /* virtual milliseconds */

/* ---- links ---- */

size_t fake_index(const char *node); /* c1 is 0 */
extern const char *const fake_names[FAKE_NODES];
void fake_cut(size_t node);
bool fake_api_gone(void);
/* What a program on a node answers: its status; out and errors are filled. */
int fake_program(
        size_t node, const char *const *argv, enum how how, struct str *out, struct str *errors);

/* ---- services: fake_services.c ---- */

struct helm_call;
/* The file's services; what the cluster has of them. */
void fake_services(struct site *s, const char *dir);
void fake_services_check(struct site *s, int result);
/* What a helm does; its status. */
int fake_helm(const struct helm_call *call, enum how how, struct str *out);
json_t *fake_metadata(const char *path); /* items */

/* ---- what a cluster has outside: fake_outside.c ---- */

/* A release with a load balancer, a driver, a pod with a volume; `takes` as in fake_thing. */
void fake_outside(struct site *s, int64_t takes);
const struct step *fake_step_named(const struct site *s, const char *name); /* it is there */
void fake_volume_kept(const struct site *s);
bool fake_outside_there(void);            /* a load balancer or a volume */
json_t *fake_list(const char *path);      /* items */
void fake_deleted(const char *documents); /* these are to go */

/* ---- machines that are made anew: fake_machines.c ---- */

/* The provider of the site can do it; those of nodes that are `old` are outdated. */
void fake_machines(struct site *s, struct provider_ops *ops);
void fake_machines_end(void);

/* ---- runs of test_async.c, and single ones: fake_alone.c ---- */

int up_run(struct site *s, struct error *err);
void test_snapshot_without_name(void **state);
void test_upgrade_without_api(void **state);
void test_look_gives_up(void **state);
void test_api_after_slow_delivery(void **state);

/* ---- a site ---- */

/* A live cluster of three control-plane nodes and two workers with this version wanted; `running`
 * is what all of them run. */
void fake_begin(struct site *s, const char *wanted, const char *running, size_t slots);
void fake_end(struct site *s);
struct provider_ops *fake_ops(void);
const char *fake_dir(void); /* the state directory of this run */
void fake_release(void);    /* after the last */
void fake_show(const struct run *r);

#endif
