/* Internals of a link, only for the files of this folder. */
#ifndef SLIPWAY_LINK_STATE_H
#define SLIPWAY_LINK_STATE_H

#include "base/arena.h"
#include "base/proc.h"
#include "base/sha256.h"
#include "deliver/link/gate.h"
#include "deliver/link/link.h"
#include "deliver/link/slots.h"

/* Queued for ssh at once: small, because there may be fifty links. */
#define LINK_PIECE   ((size_t)128 << 10)
#define LINK_PROMPT  "slipway:prompt" /* the prompt of sudo */
#define RUNS_AT_ONCE 16               /* limit, although the agent accepts more */

enum link_phase {
        PHASE_SHELL, /* ssh connects, the shell starts: until its first word */
        PHASE_AGENT, /* the agent is being sent */
        PHASE_HELLO, /* the agent starts */
        PHASE_IDLE,  /* only programs to run */
        PHASE_SPEC,  /* the spec is being sent */
        PHASE_NEEDS, /* the agent reports missing blobs */
        PHASE_BLOBS, /* which are being sent */
        PHASE_APPLY, /* the agent applies */
};

/* The first word on standard output: the state of the node. */
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
        bool over; /* it printed more than max */
        struct str out, errors;
        void (*sink)(struct link *l, const void *data, size_t n, void *arg);
        void (*fn)(struct link *l, int status, const char *out, const char *errors, void *arg);
        void *arg;
};

#define TALK_LINES 24

/* What ssh, the shell and sudo printed on standard error. */
struct link_talk {
        struct str line;         /* incomplete */
        char *lines[TALK_LINES]; /* the last ones */
        size_t count;
        char *noise;        /* the last other line on standard output */
        char *host_key;     /* "ssh-ed25519 SHA256:…" */
        char *accepted;     /* the key that the node would accept */
        struct str offered; /* those that were offered, separated by ", " */
        bool signalled;     /* the remote program was killed by a signal */
        bool warned_key, changed_key, wrong_password;
        unsigned prompts;
};

struct link {
        struct event_base *base;
        struct link_events events;
        struct link_target target; /* strings in the arena */
        struct strings options;
        struct arena arena;
        char *password;   /* wiped when sent */
        struct slot slot; /* from link_open until the link is freed */
        struct gate gate;
        unsigned drops;    /* how often sshd dropped it before its banner */
        struct proc *proc; /* NULL before its turn and between attempts */
        struct event *timer;
        enum link_phase phase;
        enum link_word word;
        bool closing, dead;
        unsigned busy; /* inside a callback: freeing is delayed */
        struct error err;
        struct link_talk talk;
        struct str in;
        const struct link_agent *agent; /* the one for the node */
        size_t agent_sent;
        struct { /* of one link_apply */
                const struct nodespec *spec;
                const struct item *items;
                size_t count, next; /* next: index of the entry to send */
                enum apply_mode mode;
                unsigned events; /* events received */
                struct link_blob *blobs;
                size_t blob_count, blob_cap, blob; /* blob: index of the one being sent */
                int fd;
                bool begun; /* its BLOB frame was sent */
                int64_t sent, total;
        } job;
        struct link_run *runs;
        uint64_t last_run;
};

/* link.c: the first failure is kept; ssh is ended, and on_closed reports it. */
int link_failed(struct link *l); /* after l->err was set */
void link_patience(struct link *l, unsigned seconds);

/* ssh.c */
/* Without a command, only -L. */
const char **link_forward(const struct link_target *t, const char *forward, struct arena *a);
const char **link_settings(const struct link_target *t, struct arena *a); /* ssh -G */
/* The sshd that is connected to first. */
const char *link_door(const struct link_target *t, struct arena *a);
/* For the agent. */
const char **link_command(const struct link_target *t, bool password, struct arena *a);
const char *link_state_dir(const struct link_target *t, struct arena *a);
/* The command that a user would type. */
const char *link_by_hand(const struct link_target *t, struct arena *a);

/* agents.c */
struct link_agent {
        const char *machine; /* output of `uname -m` where it runs; NULL: unknown */
        const char *bytes;
        size_t len;
        char hash[SHA256_HEX];
};
const struct link_agent *link_agent_own(void); /* the embedded one */
/* For the other architecture; NULL: there is none. */
const struct link_agent *link_agent_other(void);
/* "" or NULL: unknown architecture, so the embedded agent. Returns NULL if there is none. */
const struct link_agent *link_agent(const char *machine);

/* who.c: whether the host is the expected one; otherwise the link has failed, with a sentence */
bool link_who_key(struct link *l);  /* after each piece of ssh's output */
bool link_who_said(struct link *l); /* before the shell's first word is used */
/* If that word says that it is another machine. */
void link_who_other(struct link *l, const char *rest);
/* From the facts of its agent. */
bool link_who_hello(struct link *l, const json_t *facts, const char *digest);

/* read.c */
void link_read(struct link *l, const char *data, size_t n);

/* send.c */
void link_begin(struct link *l); /* starts the job, if there is one */
void link_pump(struct link *l);  /* gives ssh more data while little is queued */
int link_needs(struct link *l, const char *digest, int64_t offset);
void link_ready(struct link *l); /* all NEED frames have arrived */
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
/* The last line that contains the text, or NULL. */
const char *link_said(const struct link_talk *t, const char *text);

/* error.c: why ssh ended, as a sentence. */
void link_explain(struct link *l, int status, struct error *err);
/* Sshd of the jump host or the node closed the connection before its banner, and no other
 * reason is known. */
bool link_dropped(const struct link *l);

#endif
