/* A link: one connection to one node's agent, over the user's own ssh. slots.h limits how many are
 * open. The remote command starts the agent if a file with its hash exists on the node (under
 * /var/lib/slipway/), otherwise it first receives the agent through the pipe; then both exchange
 * frames (wire.h). The ssh command line contains only the provider's settings: configuration, keys,
 * agents, jump hosts and host-key checks are left to ssh. */
#ifndef SLIPWAY_LINK_H
#define SLIPWAY_LINK_H

#include <jansson.h>

#include "artifact/fetch.h"
#include "deliver/wire.h"
#include "node/nodespec.h"

struct event_base;
struct link;

/* The end of a bastion's name as long as there is none: a name that leads nowhere. */
#define LINK_NOWHERE ".invalid"

/* How ssh is called for one node; link_argv shows it (also for `slipway ssh`). */
struct link_target {
        const char *name; /* the node's name, for messages */
        /* the cluster's id: nodes of another cluster refuse; NULL: not checked */
        const char *cluster;
        const char *host, *user, *key, *bastion; /* user, key, bastion: NULL: ssh's default */
        long port;                               /* 0: ssh's default */
        const struct strings *options;           /* ssh -o words; may be NULL */
        bool sudo;                               /* become root with sudo if the user is not root */
        const char *sudo_password;               /* NULL: not needed (sudo -n) */
        /* slipway's own file for machines that it made; NULL: the user's */
        const char *known_hosts;
        /* slipway made the bastion too: its key is in known_hosts, and it takes only `key` */
        bool own_bastion;
        /* record unknown host keys (and report them); a changed key is always an error */
        bool accept_new;
        /* A host that is no longer in the file must be the recorded one, or nothing is sent to it.
         * strict: its host key must be known to ssh, whatever the options say, and a host of
         * another cluster is refused. */
        bool strict;
        const char *host_key; /* and must be this one, as from link_host_key; NULL: not recorded */
        const char *machine_id; /* its /etc/machine-id must be equal; NULL: not recorded */
        /* digest of the spec applied last, must be unchanged; NULL: not checked */
        const char *digest;
        bool urgent;      /* others depend on it: it comes first in the queue for a slot */
        const char *root; /* tests: a directory on the node used as /; NULL: / itself */
};

/* Called from the loop; each may be NULL. After on_closed the link is freed; before that, link_free
 * and link_close may be called from any of them. */
struct link_events {
        /* The agent sent HELLO: its facts, the digest that it applied last ("" if none), and what
         * has drifted since (a JSON list of names). The JSON belongs to the link: json_incref
         * what is kept. */
        void (*on_hello)(
                struct link *l, json_t *facts, const char *digest, json_t *drift, void *arg);
        /* An entry of the spec changed (not called for unchanged entries). A removed entry is
         * no longer in the spec: it has its kind and its path or name, and is valid only
         * during the call. */
        void (*on_entry)(struct link *l, const struct spec_entry *e, enum wire_state state,
                const char *detail, void *arg);
        /* Bytes of blobs sent so far, and of all missing blobs. */
        void (*on_progress)(struct link *l, int64_t sent, int64_t total, void *arg);
        void (*on_applied)(struct link *l, unsigned changed, unsigned failed, void *arg);
        /* ssh recorded a new host key: the line that ssh printed, and the key's fingerprint. */
        void (*on_new_key)(struct link *l, const char *line, void *arg);
        /* The end. err is NULL after link_close, otherwise a sentence with a hint: unreachable, key
         * changed, no sudo, agent failed, cut. Its code is ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH,
         * ECONNRESET (retried while a machine boots), EKEYREJECTED (changed host key), ENOKEY
         * (unknown host key), EREMCHG (another machine or node than expected), EACCES (login
         * refused), EPERM (sudo), ENOSPC, EPIPE (cut), … */
        void (*on_closed)(struct link *l, struct error *err, void *arg);
        void *arg;
        /* After HELLO, and whenever the link becomes idle: it may be freed here. */
        void (*on_idle)(struct link *l, void *arg);
};

/* Starts to connect when there is a slot; the target may be freed after the call. The program
 * must ignore SIGPIPE. */
int link_open(struct event_base *base, const struct link_target *target,
        const struct link_events *events, struct link **out, struct error *err);
/* Applies the spec to the node. `items` has the blobs of artifact and image entries (found by name
 * and version). The spec and the items must stay valid until on_applied or on_closed. Before HELLO,
 * it waits for that. One at a time. */
void link_apply(struct link *l, const struct nodespec *spec, const struct item *items, size_t count,
        enum apply_mode mode);
/* Runs a program on the node; fn is called once with its status and output. Status -1: it could not
 * be run, or its end is unknown because the link closed. Status LINK_RUN_OVER: it printed more than
 * `max` bytes; then there is no output, and `errors` says so (of its error output the last `max`
 * bytes are kept). Several may be started, also before HELLO: they wait in a queue. argv and input
 * together have at most LINK_RUN_MAX bytes. */
#define LINK_RUN_MAX  ((size_t)900 << 10)
#define LINK_RUN_OVER 256 /* not a possible exit status */
void link_run(struct link *l, const char *const *argv, const char *input, size_t max,
        void (*fn)(struct link *l, int status, const char *out, const char *errors, void *arg),
        void *arg);
/* The same for binary input, and with a sink that gets the output as it arrives,
 * without a maximum. */
struct link_program {
        const char *const *argv;
        const void *input;
        size_t input_len, max; /* max: of the kept output, as above */
        /* NULL: the output is kept */
        void (*sink)(struct link *l, const void *data, size_t n, void *arg);
        void (*fn)(struct link *l, int status, const char *out, const char *errors, void *arg);
        void *arg;
};
void link_run_program(struct link *l, const struct link_program *p);
/* The node's host key, "ssh-ed25519 SHA256:…", as the link's own ssh reported it; NULL over a
 * connection that the user had open. */
const char *link_host_key(const struct link *l);
/* The agent is waiting, and no request is open. */
bool link_idle(const struct link *l);
/* It waits for a slot: nothing was started. */
bool link_queued(const struct link *l);
/* Closes it normally; on_closed follows. */
void link_close(struct link *l);
void link_free(struct link *l); /* without callbacks; l may be NULL */

/* The digest of a whole spec, to compare with HELLO's. Hexadecimal, 65 bytes. */
void link_digest(const struct nodespec *spec, const struct item *items, size_t count, char out[65]);
/* The ssh command for the user (without the agent): NULL-terminated, in the arena; `remote` words
 * are appended quoted. */
const char **link_argv(
        const struct link_target *target, const char *const *remote, struct arena *a);

/* Through a bastion that slipway makes and that does not run. */
bool link_nowhere(const struct link_target *t);
/* "ProxyCommand=ssh …" through the bastion, with the target's key, which -J would not use there. */
const char *link_jump(const struct link_target *target, struct arena *a);

/* The agent that is embedded in the program. Defined by the program that links this room. */
const void *agent_bytes(size_t *n);
/* The agent for "amd64" or "arm64": the embedded one, or a file agent-MACHINE beside the program.
 * NULL: there is none. */
const void *agent_for(const char *arch, size_t *n);

#endif
