// Counters: the memory traffic of the whole machine, where it lets itself be counted.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cores.h"
#include "base/clock.h"

typedef struct Counters {
    int      fds[CORES_MAX];  // cache misses of each core, by perf
    uint32_t n;
    char     resctrl[96];  // a file with bytes; "": there is none
    uint64_t last;
    TimeNs   since;
    char     status[160];  // for people: what is used, or why nothing is
} Counters;

// Never fails: without counters there is only less to go by. cpus NULL: none of perf's.
void   counters_open(Counters *c, const uint32_t *cpus, uint32_t n);
void   counters_close(Counters *c);
bool   counters_any(const Counters *c);
double counters_rate(Counters *c, TimeNs now);  // bytes a nanosecond since the last call
