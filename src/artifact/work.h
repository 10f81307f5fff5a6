/* One thread for what would hold up the loop: hashing, unpacking, packing. Everything else stays in
 * the loop. */
#ifndef SLIPWAY_WORK_H
#define SLIPWAY_WORK_H

#include "artifact/blob.h"

struct event_base;
struct worker;

struct work {
        /* In the thread. Touches only what the loop leaves alone until done. */
        int (*run)(struct work *w, stop_flag stop, struct error *err);
        /* In the loop; err is NULL on success. */
        void (*done)(struct work *w, struct error *err);
        struct error err;
        struct work *next;
};

int worker_new(struct event_base *base, struct worker **out, struct error *err);
void worker_submit(struct worker *k, struct work *w);
/* Tells what runs to stop, and waits for it; what is queued is dropped without done.
 * NULL is fine. */
void worker_free(struct worker *k);

#endif
