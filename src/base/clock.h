/* The two clocks. Whatever is a duration, a deadline or a window is measured with clock_ms: nobody
 * can set it, so a step of the wall clock ends nothing early. */
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

/* Milliseconds of no particular beginning, as libevent counts its timers. The time that this
 * computer sleeps is not part of it. */
static inline int64_t clock_ms(void) { return clock_read(CLOCK_MONOTONIC); }
/* Since 1970, as the computer believes: to be shown, written down, and compared with certificates.
 */
static inline int64_t clock_wall_ms(void) { return clock_read(CLOCK_REALTIME); }
/* Since this computer was started, as the kernel counts the beginnings of processes. */
static inline int64_t clock_boot_ms(void) { return clock_read(CLOCK_BOOTTIME); }

#endif
