// Probe: what this machine can do, measured: arithmetic, bandwidth of each memory, talk of cores.
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
    size_t bytes;     // what each core worked on; 0: there is no such level, or no memory for it
    double one, all;  // of one core; of all at once, summed
} ProbeRate;

typedef struct ProbeSpread {  // nanoseconds
    double   least, median, p90;
    uint32_t samples;  // 0: not measured
} ProbeSpread;

typedef struct Probe {
    uint32_t    cores;
    ProbeRate   fma;                 // GFLOP/s
    ProbeRate   read[PROBE_LEVELS];  // GB/s
    ProbeRate   triad;               // GB/s of DRAM that a program sees: two reads, one write
    ProbeSpread hop;                 // a cache line to another core and back
    ProbeSpread wake;                // from a wake-up call to the sleeper's first step
    double      clock_ns, thread_clock_ns;  // cost of one look
} Probe;

// Best of many short samples each, so that a busy machine still shows what it could do. The team's
// members should be bound, one to a core. About 2 s, or a fifth of that when quick.
MUST_USE Err probe_machine(const Cpu *cpu, const Isa *isa, Team *team, bool quick,
                           ProgressSink sink, Probe *out);

double      probe_fma_peak(const Isa *isa);  // GFLOP/s of the calling thread's core, in 25 ms
const char *probe_level_name(ProbeLevel l);
CacheSizes  probe_caches(const Cpu *cpu);  // what is unknown is guessed

// ProbeSample: the best of many short samples that members of a team take side by side.

// One sample's work of member index; round counts samples.
typedef void ProbeWork(void *self, uint32_t index, uint32_t round);

// Shortest time from the first member's start to the last one's end, over at least 3 samples and
// for as long as budget. 0 when there is no memory.
TimeNs probe_sample(Team *t, uint32_t count, TimeNs budget, ProbeWork *work, void *self);

// ProbeLatency: what it costs to reach another core, to wake a thread, to look at a clock.

// Over pairs of allowed cores. Machines with one core have none: no samples.
MUST_USE Err probe_hops(const Cpu *cpu, TimeNs budget, ProbeSpread *out);
MUST_USE Err probe_wakes(const Cpu *cpu, TimeNs budget, ProbeSpread *out);

double probe_clock_cost(clockid_t id);  // nanoseconds
