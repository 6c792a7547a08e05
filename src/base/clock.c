#include "base/clock.h"

#include <stddef.h>
#include <time.h>

#include "base/err.h"

static TimeNs read_clock(clockid_t id) {
    struct timespec t;
    CHECK(clock_gettime(id, &t) == 0);
    return (TimeNs)t.tv_sec * 1000000000 + t.tv_nsec;
}

static TimeNs read_realtime(void *state) {
    (void)state;
    return read_clock(CLOCK_REALTIME);
}

static TimeNs read_monotonic(void *state) {
    (void)state;
    return read_clock(CLOCK_MONOTONIC);
}

Clock clock_realtime(void) { return (Clock){read_realtime, NULL}; }
Clock clock_monotonic(void) { return (Clock){read_monotonic, NULL}; }

TimeNs clock_monotonic_ns(void) { return read_clock(CLOCK_MONOTONIC); }
