// Pressure: a model of a version's time while co-runners use the shared cache and memory bandwidth.
//
// Interference level 0 is an idle machine, level 9 a saturated one. Each level takes a ninth of the
// L3, every second level halves the share of memory bandwidth; level 9 leaves 1/23 of it, about the
// share of one core of a 64-core server with four memory channels.
#pragma once

#include <stdint.h>

#include "compile/layer_profile.h"
#include "kernel/probe.h"

enum { PRESSURE_LEVELS = 10 };

typedef struct Pressure {  // shared resources of the machine; rates in GB/s
    size_t l3_bytes;       // usable for data, less than the nominal size
    double l3_one, l3_all;
    double dram_one, dram_all;
} Pressure;

typedef struct PressureShare {  // share left to this version, 0 to 1
    double l3, dram;
} PressureShare;

PressureShare pressure_share(uint32_t level);

Pressure pressure_of(const Cpu *cpu, const Probe *probe);

// Nanoseconds on `cores` = counts[k] cores: at least the time without interference. Bytes moved
// beyond L2 come from the L3 as far as the share of it holds the version's footprint, else from
// memory.
double pressure_time(const Pressure *m, const Candidate *c, uint32_t k, uint32_t cores,
                     PressureShare share);
