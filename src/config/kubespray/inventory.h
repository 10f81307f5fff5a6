/* An Ansible inventory: hosts, groups and their variables, from INI or YAML. Values are trees: a
 * scalar of an INI file is one too. Everything lives in the arena; sizes are bounded, so that a
 * hostile file costs little. */
#ifndef SLIPWAY_INVENTORY_H
#define SLIPWAY_INVENTORY_H

#include "base/index.h"
#include "base/tree.h"

#define INVENTORY_MAX_FILE   ((size_t)8 << 20) /* bytes of one file */
#define INVENTORY_MAX_HOSTS  20000
#define INVENTORY_MAX_GROUPS 1000
#define INVENTORY_MAX_LINKS  1000000 /* hosts and groups named in groups, and variables of hosts */
#define INVENTORY_MAX_NAME   253
#define INVENTORY_MAX_RANGES 4 /* of one host pattern */

struct inventory_var {
        const char *name;
        const struct tree *value;
        struct inventory_var *next; /* an older one: the newest wins */
};

struct inventory_link {
        struct inventory_group *group;
        struct inventory_link *next;
};

struct inventory_group {
        const char *name;
        struct inventory_var *vars;
        struct index by_name; /* of vars, made by inventory_finish */
        struct inventory_link *parents;
        unsigned depth; /* below `all`: the deeper group's variables win */
        unsigned mark;  /* the walk that saw it last */
        struct inventory_group *next;
};

struct inventory_host {
        const char *name;
        struct inventory_var *vars;
        struct inventory_link *groups; /* those that name it */
        struct inventory_host *next;
};

struct inventory {
        struct arena *arena;
        struct inventory_host *hosts, **hosts_end; /* in the order they were first named */
        struct inventory_group *groups;
        struct index host_index, group_index;
        size_t host_count, group_count, links;
        unsigned mark;
};

void inventory_init(struct inventory *inv, struct arena *a);
void inventory_release(struct inventory *inv);

/* Adds what a file says. Errors carry "file:line: …" */
int inventory_ini(
        struct inventory *inv, const char *name, const char *text, size_t len, struct error *err);
int inventory_yaml(struct inventory *inv, const struct tree *root, struct error *err);

/* The group or host, made when it is not there; NULL and err set when there are too many. */
struct inventory_group *inventory_group(struct inventory *inv, const char *name, struct error *err);
struct inventory_host *inventory_host(struct inventory *inv, const char *name, struct error *err);
/* Every host that a pattern with ranges (node[1:3], rack-[a:c]-[01:10]) names goes into the group
 * and gets the variables, newest first. */
int inventory_pattern(struct inventory *inv, const char *pattern, struct inventory_group *in,
        struct inventory_var *vars, struct error *err);
int inventory_join(struct inventory *inv, struct inventory_group *child,
        struct inventory_group *parent, struct error *err);
void inventory_set(struct inventory *inv, struct inventory_var **vars, const char *name,
        const struct tree *value);
void inventory_set_map(struct inventory *inv, struct inventory_var **vars, const struct tree *map);

/* After the last file: sorts out which variables win. */
void inventory_finish(struct inventory *inv);
bool inventory_in(struct inventory *inv, const struct inventory_host *h, const char *group);
/* The variable as this host sees it: its own, else the deepest group's, else that of `all`; NULL
 * when it is nowhere. */
const struct tree *inventory_get(
        struct inventory *inv, const struct inventory_host *h, const char *name);

#endif
