// Counters: memory traffic of the whole machine, from resctrl or perf where available.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cores.h"
#include "base/clock.h"

typedef struct Counters {
    int      fds[CORES_MAX];  // cache misses of each core, by perf
    uint32_t n;
    char     resctrl[96];  // path of the byte counter; "": none
    uint64_t last;
    TimeNs   since;
    char     status[160];  // text for users: the counter in use, or why there is none
} Counters;

// Never fails; without counters the monitor uses block times alone. cpus NULL: no perf.
void   counters_open(Counters *c, const uint32_t *cpus, uint32_t n);
void   counters_close(Counters *c);
bool   counters_any(const Counters *c);
double counters_rate(Counters *c, TimeNs now);  // bytes a nanosecond since the last call
