// Clock: where the time comes from, passed by hand, so that tests and simulations bring their own.
#pragma once

#include "base/time.h"

typedef struct Clock {
    TimeNs (*read)(void *state);
    void *state;
} Clock;

Clock clock_wall(void);    // since 1970 in UTC; may jump
Clock clock_steady(void);  // since some start; never goes back

static inline TimeNs clock_now(Clock c) { return c.read(c.state); }
