/* A link: one connection to one node's agent, over the user's own ssh. How many are open at once:
 * slots.h.
 *
 * The remote command starts the agent if its hash lies there already (under /var/lib/slipway/), and
 * else reads it from the pipe first; then frames of wire.h. The ssh command line comes from the
 * provider's settings alone: configuration, keys, agents, jump hosts and host-key checks are ssh's
 * own. */
#ifndef SLIPWAY_LINK_H
#define SLIPWAY_LINK_H

#include <jansson.h>

#include "artifact/fetch.h"
#include "deliver/wire.h"
#include "node/nodespec.h"

struct event_base;
struct link;

/* How ssh is called for one node; link_argv shows it (also for `slipway ssh`). */
struct link_target {
        const char *name; /* the node's, for sentences */
        const char
                *cluster; /* the cluster's id: a node of another cluster refuses; NULL: not asked */
        const char *host, *user, *key, *bastion; /* user, key, bastion: may be NULL: as ssh would */
        long port;                               /* 0: as ssh would */
        const struct strings *options;           /* ssh -o words; may be NULL */
        bool sudo;                 /* become root with sudo when the user is not root */
        const char *sudo_password; /* NULL: none is needed (sudo -n) */
        const char *known_hosts;   /* a file of our own for machines we made; NULL: the user's */
        bool accept_new; /* record unknown host keys (and say so); a changed key always stops */
        /* A host that is not in the file any more must be the one that was recorded, or nothing is
         * sent to it. */
        bool strict; /* its host key must be known to ssh, whatever the options say; a host of
                        another cluster is refused */
        const char *host_key;   /* and be this one, as link_host_key told it; NULL: not recorded */
        const char *machine_id; /* its /etc/machine-id must be this; NULL: not recorded */
        const char
                *digest; /* of what was applied there last: it must still be so; NULL: not asked */
        bool urgent; /* others wait for what it does: it goes before those that wait for a slot */
        const char *root; /* tests: a directory on the node that stands for its /; NULL: / itself */
};

/* From the loop; any may be NULL. After on_closed the link is gone; before it, link_free and
 * link_close may be called from any of them. */
struct link_events {
        /* The agent said hello: what it found, the digest it applied last ("" if none), and what
         * drifted since (a JSON list of names). The JSON is the link's: json_incref what is to be
         * kept. */
        void (*on_hello)(
                struct link *l, json_t *facts, const char *digest, json_t *drift, void *arg);
        /* An entry of the spec changed (never called for entries that were unchanged). One that
         * was removed is no longer in the spec: it has its kind, and its path or name, and lives
         * only during the call. */
        void (*on_entry)(struct link *l, const struct spec_entry *e, enum wire_state state,
                const char *detail, void *arg);
        /* Bytes of blobs sent so far, of all that were missing. */
        void (*on_progress)(struct link *l, int64_t sent, int64_t total, void *arg);
        void (*on_applied)(struct link *l, unsigned changed, unsigned failed, void *arg);
        /* ssh recorded a key it had not seen: its line as ssh printed it, and the key's
         * fingerprint. */
        void (*on_new_key)(struct link *l, const char *line, void *arg);
        /* The end. err is NULL when link_close asked for it, else a sentence with a hint:
         * unreachable, key changed, no sudo, agent failed, cut. Its code tells which: ECONNREFUSED,
         * ETIMEDOUT, EHOSTUNREACH, ECONNRESET (worth trying again while a machine boots),
         * EKEYREJECTED (changed host key), ENOKEY (unknown host key), EREMCHG (another machine or
         * node than was meant), EACCES (not let in), EPERM (sudo), ENOSPC, EPIPE (cut), … */
        void (*on_closed)(struct link *l, struct error *err, void *arg);
        void *arg;
        /* After hello, and whenever what went on over it has ended: it may be freed here. */
        void (*on_idle)(struct link *l, void *arg);
};

/* Starts to connect, when there is a slot; the target may go after the call. SIGPIPE must be
 * ignored by the program. */
int link_open(struct event_base *base, const struct link_target *target,
        const struct link_events *events, struct link **out, struct error *err);
/* Makes the node equal to the spec. `items` gives the blobs of artifact and image entries (found by
 * name and version). The spec and the items must live until on_applied or on_closed. Before hello:
 * begins then. One at a time. */
void link_apply(struct link *l, const struct nodespec *spec, const struct item *items, size_t count,
        enum apply_mode mode);
/* Runs a program on the node; fn is called once with its status and output. Status -1: it could not
 * be run or its end was not heard of, because the link closed. Status LINK_RUN_OVER: it printed
 * more than `max` bytes; there is no output then, and `errors` says so (of its errors the last
 * `max` bytes are kept). Several at once, and before hello: they wait their turn. argv and input
 * together at most LINK_RUN_MAX. */
#define LINK_RUN_MAX  ((size_t)900 << 10)
#define LINK_RUN_OVER 256 /* no program ends with it */
void link_run(struct link *l, const char *const *argv, const char *input, size_t max,
        void (*fn)(struct link *l, int status, const char *out, const char *errors, void *arg),
        void *arg);
/* The same for more than text: bytes to read, and a sink that gets what it prints as it comes,
 * without a maximum. */
struct link_program {
        const char *const *argv;
        const void *input;
        size_t input_len, max; /* max: of what is kept, as above */
        void (*sink)(struct link *l, const void *data, size_t n,
                void *arg); /* NULL: its output is kept */
        void (*fn)(struct link *l, int status, const char *out, const char *errors, void *arg);
        void *arg;
};
void link_run_program(struct link *l, const struct link_program *p);
/* The node's host key, "ssh-ed25519 SHA256:…", as the link's own ssh told it; NULL over a
 * connection that the user had open. */
const char *link_host_key(const struct link *l);
/* The agent waits, and nobody waits for it. */
bool link_idle(const struct link *l);
/* It waits for a slot: nothing was begun. */
bool link_queued(const struct link *l);
/* Ends it in good order; on_closed follows. */
void link_close(struct link *l);
void link_free(struct link *l); /* without callbacks; NULL is fine */

/* The digest that stands for a whole spec: what HELLO's is compared with. Hex, 65 bytes. */
void link_digest(const struct nodespec *spec, const struct item *items, size_t count, char out[65]);
/* The ssh command for a person (no agent): NULL-terminated, in the arena; `remote` words are
 * appended quoted. */
const char **link_argv(
        const struct link_target *target, const char *const *remote, struct arena *a);

/* "ProxyCommand=ssh …" through the bastion, with the target's key, which -J would not use there. */
const char *link_jump(const struct link_target *target, struct arena *a);

/* The agent's program, as it lies on the node: the one that the program carries. Defined by the
 * program that links this room in. */
const void *agent_bytes(size_t *n);
/* The agent for "amd64" or "arm64": that one, or a file agent-MACHINE beside the program. NULL:
 * there is none. */
const void *agent_for(const char *arch, size_t *n);

#endif
