/* Existing hosts, reached over ssh. */
#ifndef SLIPWAY_PROVIDER_SSH_H
#define SLIPWAY_PROVIDER_SSH_H

#include "provider/provider.h"

extern const struct provider_ops ssh_ops;

/* Its functions, for providers whose machines are such hosts too: provider.ssh has their settings,
 * the node its address. */
int ssh_host_find(
        struct provider_run *run, const struct node *n, struct machine *out, struct error *err);
void ssh_host_prepare(struct provider_run *run,
        void (*say)(const char *what, int permille, void *arg),
        void (*fn)(struct error *err, void *arg), void *arg);
void ssh_host_nothing(struct provider_run *run, struct machine *m,
        void (*fn)(struct machine *m, struct error *err, void *arg), void *arg);
int ssh_host_cleanup(struct provider_run *run, struct error *err);

#endif
