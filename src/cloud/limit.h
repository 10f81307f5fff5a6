/* How fast one service of a cloud may be asked: a bucket of tokens, and a number of requests at the
 * same time. Pure: the caller gives the time (base/clock.h, clock_ms). */
#ifndef SLIPWAY_CLOUD_LIMIT_H
#define SLIPWAY_CLOUD_LIMIT_H

#include "base/base.h"

struct limit {
        double rate, most; /* requests a second: now, and when the service is not throttling */
        double burst;      /* tokens that can be saved */
        double tokens;     /* may be spent now */
        int64_t at;        /* when the tokens were counted */
        int64_t paused;    /* nothing starts before this time */
        unsigned running, at_once;
};

void limit_init(struct limit *l, double rate, double burst, unsigned at_once, int64_t now);
/* 0: a request may start now. Else milliseconds until then, or -1: when one has ended. */
int64_t limit_wait(struct limit *l, int64_t now);
void limit_take(struct limit *l, int64_t now); /* one starts; limit_wait has said 0 */
void limit_give(struct limit *l);              /* one has ended */
/* The service has said that it is too much: everybody waits, and then asks at half the rate. */
void limit_throttled(struct limit *l, int64_t now, int64_t ms);
void limit_good(struct limit *l); /* an answer: a little faster again, up to `most` */

#endif
