/* Shared by the verbs that query a cluster: the site without a lock, a node by name,
 * the user's ssh. */
#ifndef SLIPWAY_REACH_H
#define SLIPWAY_REACH_H

#include "cluster/site/site.h"
#include "cmd/cmd.h"

/* Starts zeroed: struct reach r CLEANUP(reach_release) = { 0 }; */
struct reach {
        struct arena arena;
        struct event_base *base;
        struct cluster *cluster;
        struct site site;
        bool opened;
};

int reach_open(struct reach *r, const struct options *o, struct error *err);
/* The same with the API client: r->site.kube. */
int reach_api(struct reach *r, const struct options *o, struct error *err);
void reach_release(struct reach *r);
/* The node with that name, if its machine can be reached; otherwise an error, with
 * "did you mean". */
struct member *reach_member(struct reach *r, const char *name, struct error *err);
/* The same if it has a machine at all: one that is stopped too. */
struct member *reach_machine(struct reach *r, const char *name, struct error *err);
/* Before ssh is called for a node: an error if no way leads to it, which ssh would call a name that
 * cannot be resolved. */
int reach_way(const struct member *m, struct error *err);
/* Makes one line the whole standard input of the program of reach_exec: for sudo's password. */
int reach_input(const char *line, struct error *err);
/* Replaces this process by the program; returns only if it cannot be started. */
int reach_exec(const char *const *argv, struct error *err);
/* Runs the program and shows its output, escaped on a terminal, otherwise unchanged. Returns
 * its exit status. */
int reach_show(const char *const *argv, struct error *err);

#endif
