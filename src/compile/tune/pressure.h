// Pressure: how long a version takes when neighbours use the shared cache and the memory as well.
//
// Level 0 is a quiet machine, level 9 a crowded one. Each level leaves us a ninth less of the L3,
// and every second level halves our share of the memory's bandwidth; level 9 leaves a 23rd of it,
// about what one core of a 64-core server with four memory channels has for itself.
#pragma once

#include <stdint.h>

#include "compile/layer_profile.h"
#include "kernel/probe.h"

enum { PRESSURE_LEVELS = 10 };

typedef struct Pressure {  // what there is to share; GB/s
    size_t l3_bytes;       // that can be kept hot, less than the label says
    double l3_one, l3_all;
    double dram_one, dram_all;
} Pressure;

typedef struct PressureShare {  // that is left to us, 0 to 1
    double l3, dram;
} PressureShare;

PressureShare pressure_share(uint32_t level);

Pressure pressure_of(const Cpu *cpu, const Probe *probe);

// Nanoseconds on counts[k] = cores. The time alone is what it takes at least; bytes moved beyond L2
// come from the L3 as far as the share of it holds what the version keeps there, else from memory.
double pressure_time(const Pressure *m, const Candidate *c, uint32_t k, uint32_t cores,
                     PressureShare ours);
