/* Between the files that check what addons promise. */
#ifndef SLIPWAY_VERIFY_PROMISE_H
#define SLIPWAY_VERIFY_PROMISE_H

#include "cluster/apply/verify.h"
#include "config/addon.h"
#include "kube/kube.h"

/* Begins the next check that is promised; after the last one calls verify_end. */
void promise_next(struct verify *v);
/* Begins to wait until the deadline. */
void promise_begin(struct verify *v, int64_t deadline, const char *doing);
/* Keeps what the API said last: it is told if the time is over. */
void promise_waits(struct verify *v, const char *why);
void promise_ask(struct verify *v, const char *path, kube_fn fn);

void verify_ingress(struct verify *v);
void verify_targets(struct verify *v);

#endif
