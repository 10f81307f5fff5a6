/* The two clocks. Durations, deadlines and time windows are measured with clock_ms, which cannot be
 * set, so a change of the wall clock ends nothing early. */
#ifndef SLIPWAY_CLOCK_H
#define SLIPWAY_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_read(clockid_t clock)
{
        struct timespec t;
        clock_gettime(clock, &t);
        return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Milliseconds since an unspecified start, as in libevent's timers. Suspended time
 * does not count. */
static inline int64_t clock_ms(void) { return clock_read(CLOCK_MONOTONIC); }
/* Milliseconds since 1970 by the computer's clock: for display, records and certificates. */
static inline int64_t clock_wall_ms(void) { return clock_read(CLOCK_REALTIME); }
/* Milliseconds since this computer booted, as the kernel counts start times of processes. */
static inline int64_t clock_boot_ms(void) { return clock_read(CLOCK_BOOTTIME); }

#endif
