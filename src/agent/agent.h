/* The agent applies a NodeSpec to its node and reports each change. It is a static program that
 * needs nothing else on the node and ends with the connection. */
#ifndef SLIPWAY_AGENT_H
#define SLIPWAY_AGENT_H

#include <sys/stat.h>

#include "agent/session.h"
#include "base/index.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/spec.h"

#define ENTRIES_MAX 20000
/* Of all entries of a spec; larger contents are sent as blobs. */
#define CONTENTS_MAX ((size_t)64 << 20)

/* What lstat says of a path. As long as it is equal, the content is the one that
 * the agent wrote. */
struct print {
        uint64_t size, ino;
        int64_t changed; /* ctime in ns: no program can set it, unlike mtime */
        unsigned mode, uid, gid;
        bool known;
};

/* A line of the record: one applied entry. */
struct row {
        enum spec_kind kind;
        unsigned flags;
        bool seen;               /* the spec has it too */
        char *id, *key, *target; /* id: kind and key; target: of a link or a sysctl */
        /* of the content; unit: of all that it reads, "" while a restart is due */
        char digest[SHA256_HEX];
        struct print print;
        struct row_member { /* of a set */
                char *path;
                struct print print;
                char digest[SHA256_HEX];
        } * members;
        size_t member_count;
};

struct record {
        struct row **rows; /* in the order they were applied */
        size_t count, cap;
        struct index index;    /* by kind and key */
        char spec[SHA256_HEX]; /* "" when the last run did not finish */
        char *cluster, *node; /* which node this is; node: NULL in a record of an earlier version */
};

struct unit_state {
        bool known, found, masked, enabled, active, failed;
        bool over;  /* a oneshot that ended with success: inactive is its normal state */
        bool stale; /* its file changed after systemd read it */
};

struct entry {
        enum spec_kind kind;
        enum spec_class class;
        unsigned flags, mode;
        char *id; /* kind and key, for the index */
        char *path, *name, *target, *owner, *units;
        char *content; /* wiped when freed */
        size_t len, index;
        bool blob; /* the content comes as a blob of that digest */
        char digest[SHA256_HEX];
        /* set by the check */
        enum wire_state state; /* what applying it would do */
        bool content_same;     /* only its mode or owner differ */
        bool needed;           /* its blob is missing here */
        struct unit_state unit;
        char reads[SHA256_HEX];
        /* unit: what it reads changes; it runs and must restart; a reload is enough */
        bool news, restart, soft;
        size_t after; /* unit: index of the last changed entry that it reads */
        /* set by the run */
        bool over, broken, touched; /* reported; failed; unit: masked or enabled */
};

struct original { /* what was at a path before the agent first changed it */
        char *key, *kind, *value;
        unsigned mode, uid, gid;
};

struct agent {
        struct session session;
        const char *root; /* "", or in tests a directory that replaces / */
        char *state;      /* /var/lib/slipway */
        int lock;
        bool ours; /* the state directory exists and this process holds its lock */
        struct record record;
        struct entry *entries;
        size_t count, cap, expected, contents;
        char digest[SHA256_HEX], *cluster, *node;
        bool receiving, complete; /* between SPEC and SPEC_END; after it */
        struct index wanted;      /* entries by kind and key */
        struct blob {
                int fd;
                uint64_t size, at;
                char digest[SHA256_HEX];
                struct sha256 sum;
        } blob;
        struct {
                struct original *v;
                size_t count, cap, next;
                bool loaded, dirty;
        } before;
        bool reload;  /* systemd must read its unit files again */
        bool recheck; /* the state of units may have changed since the check */
        bool pods_ended;
        enum apply_mode mode;
        size_t changed, failed;
};

/* entry.c */
int entry_decode(struct agent *a, const struct wire_frame *f, struct error *err);
void entries_release(struct agent *a);
const char *entry_key(const struct entry *e); /* the path or the name */
const char *kind_name(enum spec_kind k);
bool word_in(const char *list, const char *word);
/* The next word of a space-separated list; moves *list on. False at the end. */
bool word_next(const char **list, char *word, size_t size);
int entry_owner(const struct entry *e, unsigned *uid, unsigned *gid, struct error *err);
/* Reports the result of an entry, once: as event, in the journal and in the counts. */
void entry_done(struct agent *a, struct entry *e, enum wire_state state, const char *fmt, ...)
        PRINTF(4, 5);
void entry_report(struct agent *a, struct entry *e, enum wire_state state); /* without a detail */
void entry_failed(struct agent *a, struct entry *e, struct error *err);

/* record.c */
int record_load(struct agent *a, struct error *err);
int record_save(struct agent *a, struct error *err);
void record_release(struct record *r);
struct row *record_find(const struct record *r, enum spec_kind kind, const char *key);
/* Finds or adds a row. */
struct row *record_put(struct record *r, enum spec_kind kind, const char *key);
void record_drop(struct record *r, struct row *row);
/* Finds or adds the row and copies the entry's flags and target. */
struct row *record_entry(struct agent *a, const struct entry *e);
void row_members_clear(struct row *row);
struct row_member *row_member_add(struct row *row, const char *path);

/* journal.c */
void journal(struct agent *a, const char *fmt, ...) PRINTF(2, 3);
void journal_bound(struct agent *a);

/* before.c */
/* Saves what is at the path, the first time only. */
int before_keep(struct agent *a, const char *path, struct error *err);
void before_made(struct agent *a, const char *path); /* a parent directory that the agent created */
void before_value(struct agent *a, const char *kind, const char *key, const char *value);
const char *before_get(struct agent *a, const char *kind, const char *key); /* the value, or NULL */
bool before_is(struct agent *a, const char *kind, const char *key);
/* `word`: "active", "enabled" or "masked". */
bool before_unit_was(struct agent *a, const char *unit, const char *word);
/* `fn` must not change the list. */
void before_each(struct agent *a, const char *kind,
        void (*fn)(struct agent *a, const char *key, const char *value));
int before_flush(struct agent *a, struct error *err);
/* Restores what was at the path before, or removes it. 0: nothing is there now; 1: restored; 2: it
 * is a directory with contents of others, and stays. */
int before_restore(struct agent *a, const char *path, struct error *err);
void before_release(struct agent *a);

/* store.c */
/* Returns 1 when the store has the whole blob. */
int store_offset(struct agent *a, const char *digest, uint64_t *have);
int store_begin(struct agent *a, const struct wire_frame *f, struct error *err);
int store_data(struct agent *a, const struct wire_frame *f, struct error *err);
char *store_path(struct agent *a, const char *digest);
bool store_has(struct agent *a, const char *digest);
void store_clean(struct agent *a);

/* put.c: directories, files, links, artifacts */
char *agent_path(const struct agent *a, const char *path); /* below the root, malloc'd */
int make_parents(struct agent *a, const char *path, struct error *err);
struct staged { /* a file written beside its path, then renamed to it */
        struct entry *e;
        char *path, *full, *temp;
        char *blob; /* path in the store, when the blob itself may become the file */
        int fd;
        bool once, linked;
};
int stage_open(struct agent *a, const char *path, struct staged *s, struct error *err);
int stage_commit(struct agent *a, struct staged *s, struct print *print, struct error *err);
void stage_release(struct staged *s);
int own(int fd, unsigned mode, unsigned uid, unsigned gid);
void sync_dir(const char *full);
/* Hidden, in the same directory, always the same: the next run finds what a killed one left. */
char *temp_name(const char *full);
void temp_remove(struct agent *a, const char *path);
bool file_digest(const char *full, char out[SHA256_HEX]);
void apply_dirs(struct agent *a, struct entry *e, size_t n);
void apply_files(struct agent *a, struct entry *e, size_t n);
void apply_links(struct agent *a, struct entry *e, size_t n);

/* look.c */
bool print_take(const char *full, struct print *out); /* false: it does not exist */
bool print_equal(const struct print *a, const struct print *b);
bool dir_print(const struct agent *a, const char *path, struct print *out);
void check_dir(struct agent *a, struct entry *e);
void check_file(struct agent *a, struct entry *e);
void check_link(struct agent *a, struct entry *e);
void check_artifact(struct agent *a, struct entry *e);

/* untar.c */
void apply_sets(struct agent *a, struct entry *e, size_t n);

/* kernel.c */
void check_sysctl(struct agent *a, struct entry *e);
void check_module(struct agent *a, struct entry *e);
void check_mount(struct agent *a, struct entry *e);
void apply_sysctls(struct agent *a, struct entry *e, size_t n);
void apply_modules(struct agent *a, struct entry *e, size_t n);
void apply_mounts(struct agent *a, struct entry *e, size_t n);
bool sysctl_same(struct agent *a, const char *name, const char *value, bool *there);
int sysctl_write(struct agent *a, const char *name, const char *value, struct error *err);
/* Saves, before the first run, the settings that the cluster's programs set by themselves. */
void sysctls_keep(struct agent *a);
bool kernel_has(const char *module); /* loaded, or built in */
bool kernel_may(const char *module); /* or loadable */

/* netlink.c */
/* Sends one request; the error in the answer, 0 for none or for any other answer. */
int netlink_ask(int protocol, const void *message, size_t len);
bool link_kind_works(const char *kind);
bool nftables_works(void);

/* package.c */
void check_packages(struct agent *a);
void apply_packages(struct agent *a, struct entry *e, size_t n);
const char *package_manager(void);
void packages_drift(struct agent *a, struct str *frame);

/* user.c */
void check_user(struct agent *a, struct entry *e);
void apply_users(struct agent *a, struct entry *e, size_t n);
int user_remove(struct agent *a, const char *name, struct error *err);
bool user_find(const char *name, unsigned *uid, unsigned *gid);
bool group_find(const char *name, unsigned *gid);

/* extra/block.c, extra/command.c: what users add */
void check_block(struct agent *a, struct entry *e);
void apply_blocks(struct agent *a, struct entry *e, size_t n);
bool block_drifted(struct agent *a, const struct row *row);
int block_remove(struct agent *a, const char *path, struct error *err);
void check_command(struct agent *a, struct entry *e);
void apply_commands(struct agent *a, struct entry *e, size_t n);

/* image.c */
struct child *images_list(struct agent *a); /* NULL when the runtime is not running */
bool images_have(const struct str *list, const char *name);
void check_images(struct agent *a);
void apply_images(struct agent *a, struct entry *e, size_t n);
void image_remove(struct agent *a, const char *name);
void images_stage(struct agent *a);

/* pods.c: whether these entries change static pods, or their etcd, together with the kubelet;
 * pods_stop ends them in order before that */
bool pods_change(struct agent *a, const struct entry *e, size_t n);
void pods_stop(struct agent *a);

/* unit.c */
void check_units(struct agent *a);
void apply_units(struct agent *a, struct entry *e, size_t n);
/* Units that waited for a later entry, and a check of all that were started. */
void units_rest(struct agent *a);
/* Has systemd read changed unit files. */
void units_reload(struct agent *a);
/* Masks units before the installation of a package could start them. */
void units_premask(struct agent *a);
/* Saves the unit's state before the first change. */
void unit_keep(struct agent *a, const struct entry *e);
void unit_remove(struct agent *a, const struct row *row);
bool is_unit_file(const char *path);
struct child *units_show(struct agent *a, const struct words *names);
/* One state for each name, in order. */
void units_read(const struct str *text, struct unit_state *out, size_t n);
bool unit_as_wanted(const struct unit_state *u, unsigned flags);

/* look.c, apply.c */
bool agent_own(struct agent *a, struct error *err);
/* Whether an order for that node (NULL: any) is for this host. */
int agent_meant(const struct agent *a, const char *node, struct error *err);
void spec_check(struct agent *a); /* finds out what applying each entry would do */
void spec_needs(struct agent *a); /* sends NEED for each missing blob, then READY */
int spec_apply(struct agent *a, enum apply_mode mode, struct error *err);
void record_undo(struct agent *a); /* undoes every entry of the record */
/* The root is /: only then units, packages, images and modules are changed. */
bool agent_whole(const struct agent *a);

/* drift.c: finds the paths and units that changed since they were applied; one DRIFT field each */
struct drift {
        struct child *units;
        struct child *images;
        struct words names;
};
void drift_begin(struct agent *a, struct drift *d); /* starts the programs it needs */
void drift_end(struct agent *a, struct drift *d, struct str *frame);

/* reset.c */
int reset_apply(struct agent *a, struct error *err); /* removes Kubernetes from the host */
/* Saves, before the first run, which data directories exist and what is in them. */
void places_keep(struct agent *a);
/* The same for one directory that is new in the spec. */
void place_keep(struct agent *a, const char *path);
/* reset/rules.c: saves which tables of rules exist before the first run. */
void rules_keep(struct agent *a);

/* facts.c */
void facts_write(struct agent *a, struct str *out);
void facts_network(struct str *out); /* facts_net.c */
void facts_ports(struct str *out);
void facts_boot(const struct agent *a, struct str *out); /* facts_boot.c */

/* pod/: what the agent is in images of slipway's own */
int pause_main(void);
int probe_main(int argc, char **argv);
/* probe.c: the port's socket, at all addresses or at 127.0.0.1 only; it says itself why it fails.
 * 0, or an exit status. */
int probe_listen(const char *port, bool loopback, int *fd);
int volume_main(int argc, char **argv);
int volume_keeps(char **argv);
int forward_main(const char *port, const char *host, const char *to);

#endif
