/* etcd, asked on its members' own nodes: etcdctl there, with the health check's certificate,
 * against the node's own endpoint. So one member that is down hides nothing of the others, and no
 * key of etcd's leaves its node. */
#ifndef SLIPWAY_ETCD_H
#define SLIPWAY_ETCD_H

#include "cluster/site/peer.h"

/* `answer` (borrowed) is what etcdctl printed as JSON, with numbers of more than 15 digits as text,
 * for ids have 64 bits without a sign: etcd_number reads either. NULL when there is none: then
 * `trouble` is why, in etcdctl's own last line. */
typedef void (*etcd_fn)(struct member *m, json_t *answer, const char *trouble, void *arg);

/* Runs etcdctl with these words on the member's node, over its open link; fn is called once, from
 * the loop, within about `seconds`. */
void etcd_ask(struct member *m, const char *const *words, unsigned seconds, etcd_fn fn, void *arg);
#define ETCD_MEMBERS \
        (const char *const[]) { "member", "list", NULL }
/* What this member has heard last, also without a quorum. */
#define ETCD_MEMBERS_LOCAL \
        (const char *const[]) { "member", "list", "--consistency=s", NULL }
#define ETCD_STATUS \
        (const char *const[]) { "endpoint", "status", NULL }
#define ETCD_HEALTH \
        (const char *const[]) { "endpoint", "health", NULL }
#define ETCD_ALARMS \
        (const char *const[]) { "alarm", "list", NULL }

uint64_t etcd_number(const json_t *v);    /* an integer, or digits; else 0 */
json_t *etcd_json(const char *text);      /* as above; NULL when it is not JSON */
char *etcd_id(uint64_t id, char out[17]); /* as etcdctl wants it on its command line: hexadecimal */
const char *etcd_endpoint(const struct member *m); /* its own, on the loopback; constant */

/* ---- what answers say ---- */

/* In the arena; *n is how many. */
struct etcd_peer *etcd_peers(const json_t *answer, struct arena *a, size_t *n);

struct etcd_state {          /* `endpoint status` of one */
        uint64_t id, leader; /* leader 0: it knows of none */
        uint64_t cluster;
        int64_t revision, size, in_use, quota; /* bytes */
        uint64_t index, applied, term;         /* of raft: committed, applied */
        const char *version;                   /* borrowed from the answer */
        bool learner;
        const json_t *errors; /* borrowed: sentences, alarms too */
};
bool etcd_state(const json_t *answer, struct etcd_state *out); /* false: it says nothing */
/* Worth the work: much of a file that is not small is free. */
bool etcd_wants_defrag(const struct etcd_state *s);
/* NOSPACE, CORRUPT or NULL: the alarm an error of `endpoint status` tells of. */
const char *etcd_alarm(const char *error);

/* ---- all members at once ---- */

struct etcd_seen { /* an etcd node of cluster.yaml */
        struct member *member;
        char *trouble; /* why its machine or etcd could not be asked; NULL: it answered */
        bool reached;  /* its machine answered, whatever etcd there did */
        bool answered; /* etcd did */
        bool waits;   /* etcd_wake: it has data, and its index, revision and size are known, whether
                         it answers or not */
        bool healthy; /* it read through the quorum */
        struct etcd_state state;
        const struct etcd_peer *peer; /* its row; NULL: it is no member */
        /* of the asking: */
        struct etcd_view *view;
        json_t *status, *list;
        bool over;
        unsigned open;
};
struct etcd_view {
        struct site *site;
        struct etcd_seen *seen;
        size_t count;
        struct etcd_peer *peers; /* as the member with the newest data lists them */
        size_t peer_count;
        bool quorum; /* some member reads through it, or most of them name the same leader */
        size_t waiting;
        bool wake; /* etcd is started where it is not */
};
/* Asks every etcd node, for at most half a minute; opens and closes links of its own, changes
 * nothing. Foreground. What cannot be reached is part of the answer. Release in any case. */
int etcd_look(struct site *s, struct etcd_view *out, struct error *err);
/* The same, but members that are stopped are started first, for a recovery that was cut off leaves
 * one so; and one that answers nothing because it waits for a quorum is measured. */
int etcd_wake(struct site *s, struct etcd_view *out, struct error *err);
void etcd_view_release(struct etcd_view *v);
/* {"cluster":.., "quorum":.., "members":[..], "problems":[..]}; see etcd_members.c */
json_t *etcd_view_json(const struct etcd_view *v);
json_t *etcd_alarms_json(const struct etcd_state *s); /* ["NOSPACE"] */

/* The steps of a defragmentation: one member at a time, the leader last, and the alarm for want of
 * space taken back at the end. The view's members that answer. */
void defrag_steps(struct etcd_view *v);

#endif
