#include "cloud/limit.h"

#define SLOWEST 1 /* requests a second, however often it was throttled */

void limit_init(struct limit *l, double rate, double burst, unsigned at_once, int64_t now)
{
        *l = (struct limit){ .rate = rate,
                .most = rate,
                .burst = burst,
                .tokens = burst,
                .at = now,
                .at_once = at_once };
}

static void limit_count(struct limit *l, int64_t now)
{
        if (now > l->at) {
                l->tokens += (double)(now - l->at) * l->rate / 1000;
                l->at = now;
        }
        if (l->tokens > l->burst)
                l->tokens = l->burst;
}

int64_t limit_wait(struct limit *l, int64_t now)
{
        limit_count(l, now);
        if (l->running >= l->at_once)
                return -1;
        if (now < l->paused)
                return l->paused - now;
        if (l->tokens >= 1)
                return 0;
        return (int64_t)((1 - l->tokens) * 1000 / l->rate) + 1;
}

void limit_take(struct limit *l, int64_t now)
{
        limit_count(l, now);
        l->tokens -= 1;
        l->running++;
}

void limit_give(struct limit *l)
{
        if (l->running)
                l->running--;
}

void limit_throttled(struct limit *l, int64_t now, int64_t ms)
{
        bool first = now >= l->paused; /* and not one of many that were sent together */
        limit_count(l, now);
        if (now + ms > l->paused)
                l->paused = now + ms;
        if (!first)
                return;
        l->tokens = l->tokens > 1 ? 1 : l->tokens; /* what was saved would come as a burst again */
        l->rate = l->rate / 2 > SLOWEST ? l->rate / 2 : l->rate < SLOWEST ? l->rate : SLOWEST;
}

void limit_good(struct limit *l) { l->rate = l->rate * 1.1 < l->most ? l->rate * 1.1 : l->most; }
