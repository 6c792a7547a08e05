// InterferenceMonitor: how much tenants and strangers disturb each other now, as one level for the
// policy.
//
// What co-runs is known, and so is what it asks of cache and memory: that gives a first estimate.
// How much longer blocks take than alone corrects it; blocks that lost their cores to other
// processes say nothing about caches and are left out. Counters help where the machine has them.
#pragma once

#include <stdbool.h>

#include "contract/node.h"

typedef struct InterferenceOptions {  // 0: the usual
    double memory;                    // weight of the past, per sample: 0.95
    double doubt;                     // how much evidence moves the correction: 0.02
    double slack;      // in levels, beyond the half way to the next before it changes: 0.25
    double lost_most;  // share of a sample that may be lost to others: 0.03
} InterferenceOptions;

typedef struct InterferenceLoad {  // of a block that runs
    double l3_bytes;               // kept hot
    double dram_bytes_ns;
} InterferenceLoad;

typedef struct InterferenceSample {
    double wall_ns, stolen_ns;
    double expected_ns;  // alone
    double slope;        // of ln(time) by level, as the model says
} InterferenceSample;

typedef struct InterferenceMonitor {
    InterferenceOptions o;
    double              l3_bytes, dram_bytes_ns;  // of the machine
    InterferenceLoad    running;                  // all blocks together
    double   measured;     // bytes of memory traffic in a nanosecond, by counters; 0 without
    double   top, bottom;  // of the correction: a weighted mean with a prior of 0
    uint64_t samples, preempted;
    uint32_t level;
} InterferenceMonitor;

void interference_init(InterferenceMonitor *w, const InterferenceOptions *o, const NodeMachine *m);

void interference_begin(InterferenceMonitor *w, InterferenceLoad l);
void interference_end(InterferenceMonitor *w, InterferenceLoad l);
void interference_sample(InterferenceMonitor *w, const InterferenceSample *s);

float    interference_pressure(const InterferenceMonitor *w);  // 0 to NODE_LEVELS - 1
uint32_t interference_level(InterferenceMonitor *w);           // the same in steps, with hysteresis
