// Probe: measures this machine: peak FMA rate, bandwidth of each memory level, core-to-core and
// wake-up latency, cost of clock reads.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/err.h"
#include "base/team.h"
#include "base/term.h"
#include "kernel/isa.h"

typedef enum ProbeLevel { PROBE_L1, PROBE_L2, PROBE_L3, PROBE_DRAM, PROBE_LEVELS } ProbeLevel;

typedef struct ProbeRate {
    size_t bytes;     // working set per core; 0: no such level, or not enough memory to measure it
    double one, all;  // one core alone; all cores together, summed
} ProbeRate;

typedef struct ProbeSpread {  // nanoseconds
    double   least, median, p90;
    uint32_t samples;  // 0: not measured
} ProbeSpread;

typedef struct Probe {
    uint32_t    cores;
    ProbeRate   fma;                        // GFLOP/s
    ProbeRate   read[PROBE_LEVELS];         // GB/s
    ProbeRate   triad;                      // GB/s of DRAM: two reads and one write per element
    ProbeSpread hop;                        // round trip of a cache line to another core
    ProbeSpread wake;                       // from futex wake to the sleeper running
    double      clock_ns, thread_clock_ns;  // cost of one clock read
} Probe;

// Each result is the best of many short samples, so that other load on the machine matters little.
// The team has one member per core. Takes about 2 s, or a fifth of that if quick.
MUST_USE Err probe_machine(const Cpu *cpu, const Isa *isa, Team *team, bool quick,
                           ProgressSink sink, Probe *out);

double      probe_fma_peak(const Isa *isa);  // GFLOP/s of the calling thread's core; takes 25 ms
const char *probe_level_name(ProbeLevel l);
CacheSizes  probe_caches(const Cpu *cpu);    // unknown sizes get defaults
double      probe_clock_cost(clockid_t id);  // nanoseconds per clock_gettime

// One sample's work of team member `index`; `round` counts samples.
typedef void ProbeWork(void *self, uint32_t index, uint32_t round);

// Shortest time from the first member's start to the last member's end. Samples for `budget`, or up
// to 8 times that until there are 20 samples. 0 if memory is exhausted.
TimeNs probe_sample(Team *t, uint32_t count, TimeNs budget, ProbeWork *work, void *self);
