/* Between aws.c, machines.c and addresses.c. */
#ifndef SLIPWAY_PROVIDER_AWS_OPS_H
#define SLIPWAY_PROVIDER_AWS_OPS_H

#include "provider/aws/impl.h"
#include "provider/login.h"

void nodes_address(struct aws_run *w);
void cluster_balance(struct aws_run *w);
void cluster_conf(struct aws_run *w);
void machine_fill(struct aws_run *w, struct machine *m);

/* Functions of provider_ops. */
void aws_prepare(struct provider_run *run, void (*say)(const char *what, int permille, void *arg),
        void (*fn)(struct error *err, void *arg), void *arg);
void aws_create(struct provider_run *run, struct machine *m,
        void (*fn)(struct machine *m, struct error *err, void *arg), void *arg);
int aws_leaks(struct provider_run *run, struct leaks *out, struct error *err);
int aws_leak_delete(struct provider_run *run, const struct leak *l, struct error *err);
void aws_retire(struct provider_run *run, struct machine *m,
        void (*fn)(struct machine *m, struct error *err, void *arg), void *arg);
void aws_destroy(struct provider_run *run, struct machine *m,
        void (*fn)(struct machine *m, struct error *err, void *arg), void *arg);
void aws_members(struct provider_run *run, const struct node *const *nodes, size_t n,
        void (*fn)(struct error *err, void *arg), void *arg);
const struct machine *aws_bastion(struct provider_run *run);
int aws_cleanup(struct provider_run *run, struct error *err);

#endif
