/* The agent: makes a node equal to its NodeSpec, and says what it did. Static, alone, and gone when the run is over. */
#ifndef SLIPWAY_AGENT_H
#define SLIPWAY_AGENT_H

#include <sys/stat.h>

#include "agent/session.h"
#include "base/index.h"
#include "base/sha256.h"
#include "base/spec.h"

#define ENTRIES_MAX  20000
#define CONTENTS_MAX ((size_t)64 << 20) /* of all entries of a spec; what is bigger is sent as a blob */

/* What the file system says of a path: while it says the same, what is there is what we put there. */
struct print {
        uint64_t size, ino;
        int64_t changed; /* ctime, ns: unlike mtime nobody can set it */
        unsigned mode, uid, gid;
        bool known;
};

/* A line of the record: what was applied. */
struct row {
        enum spec_kind kind;
        unsigned flags;
        bool seen;               /* is in the spec too */
        char *id, *key, *target; /* id: kind and key; target: of a link, a sysctl */
        char digest[SHA256_HEX]; /* of the content; unit: of all that it reads, "" when it has yet to be restarted */
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
        struct index index;              /* by kind and key */
        char spec[SHA256_HEX], *cluster; /* spec: "" when the last run did not finish */
};

struct unit_state {
        bool known, found, masked, enabled, active, failed;
        bool over;  /* of a kind that runs to its end and is then not active */
        bool stale; /* its file changed since systemd read it */
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
        /* found by looking */
        enum wire_state state; /* what it would become */
        bool content_same;     /* only its mode or owner differ */
        bool needed;           /* its blob */
        struct unit_state unit;
        char reads[SHA256_HEX];
        bool news, restart, soft; /* unit: what it reads changes; and it runs; a reload is enough */
        size_t after;             /* unit: the last changed entry that it reads */
        /* of the run */
        bool over, broken, touched; /* dealt with; failed; unit: masked or enabled */
};

struct original { /* what a path held before we first touched it */
        char *key, *kind, *value;
        unsigned mode, uid, gid;
};

struct agent {
        struct session session;
        const char *root; /* "" or a directory that stands for / in tests */
        char *state;      /* /var/lib/slipway */
        int lock;
        bool ours; /* the state directory is there and locked */
        struct record record;
        struct entry *entries;
        size_t count, cap, expected, contents;
        char digest[SHA256_HEX], *cluster;
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
        bool reload;  /* systemd has to read unit files again */
        bool recheck; /* what was known of units may no longer be so */
        bool pods_ended;
        int mode;
        size_t changed, failed;
};

/* entry.c */
int entry_decode(struct agent *a, const struct wire_frame *f, struct error *err);
void entries_release(struct agent *a);
const char *entry_key(const struct entry *e); /* its path, or its name */
const char *kind_name(enum spec_kind k);
bool word_in(const char *list, const char *word);
/* The next word of a space-separated list; moves *list on. False at the end. */
bool word_next(const char **list, char *word, size_t size);
int entry_owner(const struct entry *e, unsigned *uid, unsigned *gid, struct error *err);
/* Reports what became of an entry, once: the event, the journal, the counts. */
void entry_done(struct agent *a, struct entry *e, enum wire_state state, const char *fmt, ...) PRINTF(4, 5);
void entry_report(struct agent *a, struct entry *e, enum wire_state state); /* without a detail */
void entry_failed(struct agent *a, struct entry *e, struct error *err);

/* record.c */
int record_load(struct agent *a, struct error *err);
int record_save(struct agent *a, struct error *err);
void record_release(struct record *r);
struct row *record_find(const struct record *r, enum spec_kind kind, const char *key);
struct row *record_put(struct record *r, enum spec_kind kind, const char *key); /* finds or adds */
void record_drop(struct record *r, struct row *row);
struct row *record_entry(struct agent *a, const struct entry *e); /* puts the entry's flags and target in */
void row_members_clear(struct row *row);
struct row_member *row_member_add(struct row *row, const char *path);

/* journal.c */
void journal(struct agent *a, const char *fmt, ...) PRINTF(2, 3);
void journal_bound(struct agent *a);

/* before.c */
int before_keep(struct agent *a, const char *path, struct error *err); /* the first time: remembers what is there */
void before_made(struct agent *a, const char *path);                   /* a directory made on the way to a file */
void before_value(struct agent *a, const char *kind, const char *key, const char *value);
const char *before_get(struct agent *a, const char *kind, const char *key); /* the value, or NULL */
bool before_is(struct agent *a, const char *kind, const char *key);
bool before_unit_was(struct agent *a, const char *unit, const char *word);                                            /* "active", "enabled", "masked" */
void before_each(struct agent *a, const char *kind, void (*fn)(struct agent *a, const char *key, const char *value)); /* fn must not change the list */
int before_flush(struct agent *a, struct error *err);
/* Puts back what was there, or removes: 0 when the path is gone now, 1 when something is back, 2 when it is a directory in use. */
int before_restore(struct agent *a, const char *path, struct error *err);
void before_release(struct agent *a);

/* store.c */
int store_offset(struct agent *a, const char *digest, uint64_t *have); /* 1: whole */
int store_begin(struct agent *a, const struct wire_frame *f, struct error *err);
int store_data(struct agent *a, const struct wire_frame *f, struct error *err);
char *store_path(struct agent *a, const char *digest);
bool store_has(struct agent *a, const char *digest);
void store_clean(struct agent *a);

/* put.c: directories, files, links, artifacts */
char *agent_path(const struct agent *a, const char *path); /* below the root; malloc'd */
int make_parents(struct agent *a, const char *path, struct error *err);
struct staged { /* a file written beside its place, to be put there */
        struct entry *e;
        char *path, *full, *temp;
        char *blob; /* in the store, when it may become the file itself */
        int fd;
        bool once, linked;
};
int stage_open(struct agent *a, const char *path, struct staged *s, struct error *err);
int stage_commit(struct agent *a, struct staged *s, struct print *print, struct error *err);
void stage_release(struct staged *s);
int write_all(int fd, const void *data, size_t n);
int own(int fd, unsigned mode, unsigned uid, unsigned gid);
void sync_dir(const char *full);
char *temp_name(const char *full); /* beside it, hidden, always the same: the next run finds what a killed one left */
void temp_remove(struct agent *a, const char *path);
bool file_digest(const char *full, char out[SHA256_HEX]);
void apply_dirs(struct agent *a, struct entry *e, size_t n);
void apply_files(struct agent *a, struct entry *e, size_t n);
void apply_links(struct agent *a, struct entry *e, size_t n);

/* look.c */
bool print_take(const char *full, struct print *out); /* false: nothing there */
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
void sysctls_keep(struct agent *a);  /* before the first run: those that the programs we bring set by themselves */
bool kernel_has(const char *module); /* loaded, or built in */
bool kernel_may(const char *module); /* or can be loaded */

/* probe.c */
bool link_kind_works(const char *kind);
bool nftables_works(void);

/* package.c */
void check_packages(struct agent *a);
void apply_packages(struct agent *a, struct entry *e, size_t n);
const char *package_manager(void);
void packages_drift(struct agent *a, struct str *frame);

/* image.c */
struct child *images_list(struct agent *a); /* NULL when the runtime does not run */
bool images_have(const struct str *list, const char *name);
void check_images(struct agent *a);
void apply_images(struct agent *a, struct entry *e, size_t n);
void image_remove(struct agent *a, const char *name);
void images_stage(struct agent *a);

/* pods.c: these are static pods, or their etcd, that change together with what they stand on; ends them, in order, before they do */
bool pods_change(struct agent *a, const struct entry *e, size_t n);
void pods_stop(struct agent *a);

/* unit.c */
void check_units(struct agent *a);
void apply_units(struct agent *a, struct entry *e, size_t n);
void units_rest(struct agent *a);                       /* those that waited for something after them, and those that failed */
void units_premask(struct agent *a);                    /* before packages come: what they would start */
void unit_keep(struct agent *a, const struct entry *e); /* the first time: how it is before us */
void unit_remove(struct agent *a, const struct row *row);
bool is_unit_file(const char *path);
struct child *units_show(struct agent *a, const struct words *names);
/* One state for each name, in order. */
void units_read(const struct str *text, struct unit_state *out, size_t n);
bool unit_as_wanted(const struct unit_state *u, unsigned flags);

/* look.c, apply.c */
bool agent_own(struct agent *a, struct error *err);
void spec_check(struct agent *a); /* what each entry would become */
void spec_needs(struct agent *a); /* the blobs that are missing, and READY */
int spec_apply(struct agent *a, int mode, struct error *err);
void record_undo(struct agent *a);       /* every entry of the record goes back to what was there before */
bool agent_whole(const struct agent *a); /* / itself: units, packages, images and modules are of the machine */

/* drift.c: the paths and units that are not as they were applied, one DRIFT field each */
struct drift {
        struct child *units;
        struct child *images;
        struct words names;
};
void drift_begin(struct agent *a, struct drift *d); /* starts the programs it needs */
void drift_end(struct agent *a, struct drift *d, struct str *frame);

/* reset.c */
int reset_apply(struct agent *a, struct error *err); /* takes everything off the host */
void places_keep(struct agent *a);                   /* before the first run: which directories of the cluster's programs are there */
void rules_keep(struct agent *a);                    /* reset_rules.c: the tables of rules that are there before us */

/* facts.c */
void facts_write(struct agent *a, struct str *out);
void facts_network(struct str *out); /* facts_net.c */
void facts_ports(struct str *out);

/* pause.c */
int pause_main(void);

/* check.c */
int probe_main(int argc, char **argv);

#endif
