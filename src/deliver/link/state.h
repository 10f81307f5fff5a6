/* The inside of a link, for link*.c alone. */
#ifndef SLIPWAY_LINK_STATE_H
#define SLIPWAY_LINK_STATE_H

#include "base/arena.h"
#include "base/proc.h"
#include "base/sha256.h"
#include "deliver/link/gate.h"
#include "deliver/link/link.h"
#include "deliver/link/slots.h"

#define LINK_PIECE \
        ((size_t)128 << 10) /* what is queued for ssh at once: fifty links together stay small */
#define LINK_PROMPT  "slipway:prompt" /* what sudo asks with */
#define RUNS_AT_ONCE 16               /* the agent takes more, but not without end */

enum link_phase {
        PHASE_SHELL, /* ssh connects, the shell looks around: until its first word */
        PHASE_AGENT, /* the agent is being sent */
        PHASE_HELLO, /* it is there and starts */
        PHASE_IDLE,  /* nothing but programs to run */
        PHASE_SPEC,  /* the spec is being sent */
        PHASE_NEEDS, /* the agent says what is missing */
        PHASE_BLOBS, /* which is being sent */
        PHASE_APPLY, /* and the agent works */
};

/* The first word on standard output says how it stands on the node. */
enum link_word {
        WORD_NONE,
        WORD_HAVE,
        WORD_NEED,
        WORD_PASSWORD,
        WORD_NOSUDO,
        WORD_NOROOT,
        WORD_FAILED,
        WORD_DAMAGED,
        WORD_OTHER
};

struct link_blob { /* missing on the node */
        char digest[SHA256_HEX];
        const char *path, *content; /* a file, or memory */
        int64_t size, at;
};

struct link_run {
        struct link_run *next;
        uint64_t id;
        struct str frame; /* until it is sent */
        bool sent;
        size_t max;
        bool over; /* it printed more */
        struct str out, errors;
        void (*sink)(struct link *l, const void *data, size_t n, void *arg);
        void (*fn)(struct link *l, int status, const char *out, const char *errors, void *arg);
        void *arg;
};

#define TALK_LINES 24

/* What ssh, the shell and sudo said on standard error. */
struct link_talk {
        struct str line;         /* not whole yet */
        char *lines[TALK_LINES]; /* the last ones */
        size_t count;
        char *noise;        /* the last line on standard output that was not for us */
        char *host_key;     /* "ssh-ed25519 SHA256:…" */
        char *accepted;     /* the key that the node would take */
        struct str offered; /* those it was offered, ", " between */
        bool signalled;     /* the remote program was ended by a signal */
        bool changed_key, wrong_password;
        unsigned prompts;
};

struct link {
        struct event_base *base;
        struct link_events events;
        struct link_target target; /* strings in the arena */
        struct strings options;
        struct arena arena;
        char *password;   /* wiped when sent */
        struct slot slot; /* from link_open until it is gone */
        struct gate gate;
        unsigned drops;    /* how often sshd has dropped it before it said who it is */
        struct proc *proc; /* NULL before its turn has come, and between two tries */
        struct event *timer;
        enum link_phase phase;
        enum link_word word;
        bool closing, dead;
        unsigned busy; /* within a callback of ours: freeing waits */
        struct error err;
        struct link_talk talk;
        struct str in;
        const struct link_agent *agent; /* that the node needs */
        size_t agent_sent;
        struct { /* of one link_apply */
                const struct nodespec *spec;
                const struct item *items;
                size_t count, next; /* next: entry to be sent */
                enum apply_mode mode;
                unsigned events; /* that came */
                struct link_blob *blobs;
                size_t blob_count, blob_cap, blob; /* blob: the one being sent */
                int fd;
                bool begun; /* its BLOB frame is sent */
                int64_t sent, total;
        } job;
        struct link_run *runs;
        uint64_t last_run;
};

/* link.c: the first failure counts; ssh is ended, and on_closed tells it. */
int link_failed(struct link *l); /* after l->err was set */
void link_patience(struct link *l, unsigned seconds);

/* ssh.c */
const char **link_forward(const struct link_target *t, const char *forward,
        struct arena *a);                                                 /* no command, only -L */
const char **link_settings(const struct link_target *t, struct arena *a); /* ssh -G */
const char *link_door(
        const struct link_target *t, struct arena *a); /* the sshd that is knocked at first */
const char **link_command(
        const struct link_target *t, bool password, struct arena *a); /* for the agent */
const char *link_state_dir(const struct link_target *t, struct arena *a);
const char *link_by_hand(
        const struct link_target *t, struct arena *a); /* the command a person would type */

/* agents.c */
struct link_agent {
        const char *machine; /* what `uname -m` says where it runs; NULL: unknown */
        const char *bytes;
        size_t len;
        char hash[SHA256_HEX];
};
const struct link_agent *link_agent_own(void); /* that the program carries */
const struct link_agent *link_agent_other(
        void); /* for the other architecture; NULL: there is none */
const struct link_agent *link_agent(
        const char *machine); /* "" or NULL: unknown, so our own; NULL: there is none */

/* who.c: it is who was meant; else the link has failed, with a sentence */
bool link_who_key(struct link *l);  /* after each piece of ssh's talk, */
bool link_who_said(struct link *l); /* before the first word of its shell is followed, */
void link_who_other(
        struct link *l, const char *rest); /* when that word is that it is another machine, */
bool link_who_hello(
        struct link *l, const json_t *facts, const char *digest); /* and by what its agent says */

/* read.c */
void link_read(struct link *l, const char *data, size_t n);

/* send.c */
void link_begin(struct link *l); /* the job, if there is one */
void link_pump(struct link *l);  /* more for ssh, as long as little is queued */
int link_needs(struct link *l, const char *digest, int64_t offset);
void link_ready(struct link *l); /* all needs are known */
void link_job_release(struct link *l);

/* run.c */
void link_run_send(struct link *l);
void link_run_out(struct link *l, const struct wire_frame *f);
void link_run_exit(struct link *l, const struct wire_frame *f);
void link_run_end(struct link *l, bool tell);

/* talk.c */
void link_talk(struct link *l, const char *data, size_t n);
void link_talk_release(struct link_talk *t);
void link_noise(struct link *l, const char *line, size_t n);
const char *link_said(const struct link_talk *t,
        const char *text); /* the last line with that text in it, or NULL */

/* error.c: why ssh ended, as a sentence. */
void link_explain(struct link *l, int status, struct error *err);
bool link_dropped(const struct link *l); /* sshd, the jump host's or the node's, hung up before it
                                            said who it is, and nothing else is known */

#endif
