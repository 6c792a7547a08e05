// Clock: a time source passed as an argument, so that tests and simulations supply their own.
#pragma once

#include <stdint.h>

typedef int64_t TimeNs;  // nanoseconds; integers, because float rounding makes runs unrepeatable

typedef struct Clock {
    TimeNs (*read)(void *state);
    void *state;
} Clock;

Clock clock_realtime(void);   // CLOCK_REALTIME: since 1970 in UTC, may jump
Clock clock_monotonic(void);  // CLOCK_MONOTONIC: never goes back

static inline TimeNs clock_now(Clock c) { return c.read(c.state); }

TimeNs clock_monotonic_ns(void);  // clock_now(clock_monotonic()), for code that has no Clock
