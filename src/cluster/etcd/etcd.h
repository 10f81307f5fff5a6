/* Queries to etcd. etcdctl runs on each member's own node, with the health check's certificate,
 * against that node's endpoint. So a failed member does not affect the answers of the others, and
 * etcd's keys stay on their nodes. */
#ifndef SLIPWAY_ETCD_H
#define SLIPWAY_ETCD_H

#include "cluster/site/peer.h"

/* `answer` (borrowed) is the JSON that etcdctl printed. Numbers with more than 15 digits are
 * strings in it, because ids are unsigned 64-bit numbers: etcd_number reads both. If there is no
 * answer it is NULL, and `trouble` is the last line of etcdctl's error output. */
typedef void (*etcd_fn)(struct member *m, json_t *answer, const char *trouble, void *arg);

/* Runs etcdctl with these arguments on the member's node. fn is called once, from the loop,
 * within about `seconds`. */
void etcd_ask(struct member *m, const char *const *words, unsigned seconds, etcd_fn fn, void *arg);
#define ETCD_MEMBERS \
        (const char *const[]) { "member", "list", NULL }
/* The member list as this member knows it, which needs no quorum. */
#define ETCD_MEMBERS_LOCAL \
        (const char *const[]) { "member", "list", "--consistency=s", NULL }
#define ETCD_STATUS \
        (const char *const[]) { "endpoint", "status", NULL }
#define ETCD_HEALTH \
        (const char *const[]) { "endpoint", "health", NULL }
#define ETCD_ALARMS \
        (const char *const[]) { "alarm", "list", NULL }

uint64_t etcd_number(const json_t *v);    /* reads an integer or a string of digits; otherwise 0 */
json_t *etcd_json(const char *text);      /* numbers as described above; NULL if it is not JSON */
char *etcd_id(uint64_t id, char out[17]); /* hexadecimal, as etcdctl expects it */
/* The member's own, on the loopback address; constant. */
const char *etcd_endpoint(const struct member *m);

/* ---- reading answers ---- */

/* Allocated in the arena; *n is their number. */
struct etcd_peer *etcd_peers(const json_t *answer, struct arena *a, size_t *n);

struct etcd_state {          /* `endpoint status` of one member */
        uint64_t id, leader; /* leader 0: none known */
        uint64_t cluster;
        int64_t revision, size, in_use, quota; /* bytes */
        uint64_t index, applied, term;         /* raft: committed, applied */
        const char *version;                   /* borrowed from the answer */
        bool learner;
        const json_t *errors; /* borrowed: sentences, including alarms */
};
bool etcd_state(const json_t *answer, struct etcd_state *out); /* false: no status in it */
/* Whether defragmentation is worthwhile: the file is large, and much of it is free. */
bool etcd_wants_defrag(const struct etcd_state *s);
/* The alarm in an error of `endpoint status`: NOSPACE, CORRUPT or NULL. */
const char *etcd_alarm(const char *error);

/* ---- all members at once ---- */

struct etcd_seen { /* an etcd node of cluster.yaml */
        struct member *member;
        char *trouble; /* why its machine or its etcd did not answer; NULL: both did */
        bool reached;  /* its machine answered */
        bool answered; /* its etcd answered */
        /* etcd_wake: it has data; its index, revision and size are known even if it
         * does not answer */
        bool waits;
        bool healthy; /* a read through the quorum succeeded */
        struct etcd_state state;
        const struct etcd_peer *peer; /* its row in the member list; NULL: not a member */
        /* while the queries run: */
        struct etcd_view *view;
        json_t *status, *list;
        bool over;
        unsigned open;
};
struct etcd_view {
        struct site *site;
        struct etcd_seen *seen;
        size_t count;
        struct etcd_peer *peers; /* as listed by the member with the newest data */
        size_t peer_count;
        bool quorum; /* a member reads through the quorum, or most members name the same leader */
        size_t waiting;
        bool wake; /* start etcd where it is stopped */
};
/* Queries every etcd node, for at most 30 seconds, over links of its own; changes nothing.
 * Blocks. Unreachable nodes are part of the result, not an error. The caller releases the view
 * in any case. */
int etcd_look(struct site *s, struct etcd_view *out, struct error *err);
/* The same, but first starts members that are stopped, because an interrupted recovery leaves one
 * stopped. A member that does not answer because it has no quorum is measured instead. */
int etcd_wake(struct site *s, struct etcd_view *out, struct error *err);
void etcd_view_release(struct etcd_view *v);
/* {"cluster":.., "quorum":.., "members":[..], "problems":[..]}; see etcd_members.c */
json_t *etcd_view_json(const struct etcd_view *v);
json_t *etcd_alarms_json(const struct etcd_state *s); /* ["NOSPACE"] */

/* The steps of a defragmentation of the view's members that answer: one at a time, the leader last.
 * At the end the NOSPACE alarm is disarmed. */
void defrag_steps(struct etcd_view *v);

#endif
