/* Between the verbs that ask a cluster something: the site without a lock, a node by its name, the
 * user's ssh. */
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
/* The same, and the API's client: r->site.kube. */
int reach_api(struct reach *r, const struct options *o, struct error *err);
void reach_release(struct reach *r);
/* The node of that name, whose machine can be reached; else a sentence, with "did you mean". */
struct member *reach_member(struct reach *r, const char *name, struct error *err);
/* Makes one line the whole standard input of what reach_exec becomes: for sudo's password. */
int reach_input(const char *line, struct error *err);
/* Becomes the program: returns only when it cannot be started. */
int reach_exec(const char *const *argv, struct error *err);
/* Runs it and shows what it prints: harmless at a terminal, else as it is. Its exit status. */
int reach_show(const char *const *argv, struct error *err);

#endif
