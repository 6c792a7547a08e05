// InterferenceMonitor: the current interference between tenants and with other processes, as one
// level for the policy.
//
// The footprints and bandwidths of running blocks give a first estimate. The measured slow-down of
// blocks corrects it; blocks preempted by other
// processes are left out. Hardware counters add to it where the machine has them.
#pragma once

#include <stdbool.h>

#include "contract/node.h"

typedef struct InterferenceOptions {  // 0: the usual
    double memory;                    // decay per sample: 0.95
    double doubt;                     // prior weight of the correction: 0.02
    double slack;                     // hysteresis in levels: 0.25
    double lost_most;                 // samples with a larger stolen share are ignored: 0.03
} InterferenceOptions;

typedef struct InterferenceLoad {  // of a running block
    double l3_bytes;               // kept hot
    double dram_bytes_ns;
} InterferenceLoad;

typedef struct InterferenceSample {
    double wall_ns, stolen_ns;
    double expected_ns;  // without interference
    double slope;        // d ln(time) / d level, from the model
} InterferenceSample;

typedef struct InterferenceMonitor {
    InterferenceOptions o;
    double              l3_bytes, dram_bytes_ns;  // of the machine
    InterferenceLoad    running;                  // sum over blocks
    double              measured;  // memory traffic in bytes/ns from counters; 0: none
    double              top,
        bottom;  // numerator and denominator of the correction, a weighted mean with prior 0
    uint64_t samples, preempted;
    uint32_t level;
} InterferenceMonitor;

void interference_init(InterferenceMonitor *w, const InterferenceOptions *o, const NodeMachine *m);

void interference_begin(InterferenceMonitor *w, InterferenceLoad l);
void interference_end(InterferenceMonitor *w, InterferenceLoad l);
void interference_sample(InterferenceMonitor *w, const InterferenceSample *s);

float    interference_pressure(const InterferenceMonitor *w);  // 0 to NODE_LEVELS - 1
uint32_t interference_level(InterferenceMonitor *w);           // rounded, with hysteresis
