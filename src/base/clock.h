// Time: nanoseconds as an integer. Floats drift, and drift makes runs unrepeatable.
#pragma once

#include <stdint.h>

typedef int64_t TimeNs;

// Clock: where the time comes from, passed by hand, so that tests and simulations bring their own.

typedef struct Clock {
    TimeNs (*read)(void *state);
    void *state;
} Clock;

Clock clock_realtime(void);   // since 1970 in UTC; may jump
Clock clock_monotonic(void);  // since some start; never goes back

static inline TimeNs clock_now(Clock c) { return c.read(c.state); }
