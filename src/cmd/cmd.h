/* The command line. Verbs and options are tables, from which the parser, help, completion and the
 * man page are made. */
#ifndef SLIPWAY_CMD_H
#define SLIPWAY_CMD_H

#include "base/print.h"
#include "base/error.h"
#include "base/str.h"
#include "config/cluster.h"
#include "config/problem.h"

enum option_type { OPT_FLAG, OPT_STRING, OPT_LIST };

/* How an option's or an argument's values are completed. */
enum complete { COMPLETE_NONE, COMPLETE_FILE, COMPLETE_DIR, COMPLETE_WORDS };

struct option_row {
        const char *name; /* long, without -- */
        char letter;      /* 0: none */
        enum option_type type;
        size_t offset;     /* into struct options */
        const char *value; /* "FILE" for help; NULL for flags */
        const char *words; /* space-separated choices, checked and completed; NULL: any */
        enum complete complete;
        const char *help;
};

/* The options of all verbs; each verb's row names those that it accepts. */
struct options {
        struct strings files; /* -f */
        const char *state;    /* --state */
        const char *output;   /* -o text|json */
        bool help, version;
        const char *dir, *format, *facts, *provider, *from_kubespray, *name;
        struct strings nodes;
        bool secrets, crd, docs, man, force, stage;
        const char *plan; /* --plan */
        const char *lines, *kubeconfig, *ttl, *user, *token_file, *to;
        bool follow, merge, oidc, use, yes, exit_code, watch, hardening;
        bool ask_sudo_password, finish, control_plane, ssh_config, ansible;
        bool no_cleanup, keep_volumes, delete_volumes, all, delete;
        const char *prefix; /* --prefix */
        const char *cleanup_timeout;
        const char *key; /* --key */
        struct strings ssh_options;
        struct strings args; /* arguments that are not options */
};

struct verb {
        const char *name;
        const char *args;       /* "bash|zsh|fish" for help; "" */
        const char *arg_words;  /* choices of the first argument, or NULL */
        int min_args, max_args; /* max -1: any number */
        const char *summary;    /* one line */
        const char *help;       /* paragraphs for `help VERB` and the man page; may be NULL */
        const char *options;    /* space-separated names of option rows beyond the global ones */
        const char *force;      /* what --force does; NULL: the verb has no such option */
        /* returns an exit status, or a negative value with err set */
        int (*run)(const struct options *o, struct error *err);
};

extern const struct option_row option_table[];
extern const size_t option_count;
extern const struct verb verb_table[];
extern const size_t verb_count;

const struct verb *verb_find(const char *name);

/* Loads the Cluster of -f (default: cluster.yaml) and prints its problems to stderr. */
int cmd_load(const struct options *o, struct arena *a, struct cluster **out, struct error *err);
/* The same for verbs that edit its files: they must be valid before the edit. */
struct edit;
int cmd_edit(const struct options *o, struct arena *a, struct edit *e, struct cluster **out,
        struct error *err);
bool cmd_json(const struct options *o); /* -o json */

int cmd_addons(const struct options *o, struct error *err);
int cmd_adopt(const struct options *o, struct error *err);
int cmd_check(const struct options *o, struct error *err);
int cmd_up(const struct options *o, struct error *err);
int cmd_plan(const struct options *o, struct error *err);
int cmd_upgrade(const struct options *o, struct error *err);
int cmd_rollback(const struct options *o, struct error *err);
int cmd_down(const struct options *o, struct error *err);
int cmd_certs(const struct options *o, struct error *err);
int certs_approve(const struct options *o, struct error *err); /* of cmd_certs; approve.c */
int cmd_encryption(const struct options *o, struct error *err);
int cmd_completion(const struct options *o, struct error *err);
int cmd_export(const struct options *o, struct error *err);
int cmd_etcd(const struct options *o, struct error *err);
int cmd_help(const struct options *o, struct error *err);
int cmd_init(const struct options *o, struct error *err);
int cmd_inventory(const struct options *o, struct error *err);
int cmd_kubeconfig(const struct options *o, struct error *err);
int cmd_logs(const struct options *o, struct error *err);
int cmd_ssh(const struct options *o, struct error *err);
int cmd_status(const struct options *o, struct error *err);
int cmd_token(const struct options *o, struct error *err);
int cmd_programs(const struct options *o, struct error *err);
int cmd_report(const struct options *o, struct error *err);
int cmd_render(const struct options *o, struct error *err);
int cmd_reboot(const struct options *o, struct error *err);
int cmd_leaks(const struct options *o, struct error *err);
int cmd_remove_node(const struct options *o, struct error *err);
int cmd_reset(const struct options *o, struct error *err);
int cmd_scale(const struct options *o, struct error *err);
int cmd_schema(const struct options *o, struct error *err);
int cmd_verify(const struct options *o, struct error *err);
int cmd_version(const struct options *o, struct error *err);

/* help.c */
void help_overview(struct str *out);
void help_verb(const struct verb *v, struct str *out);

#endif
