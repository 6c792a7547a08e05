// Cost: what a layer takes on a unit: the best mapping of its dataflow that the buffers allow.
#pragma once

#include "chip/package.h"
#include "chip/cost/shape.h"
#include "contract/chip.h"

// Of the memory's time, in the choice of a mapping, on top of its cycles.
#define COST_TRAFFIC 0.05

// Which parts of the loops are side by side in the array, and which in the buffers at a time.
typedef struct Mapping {
    int64_t split_k, split_c, split_p, split_q;  // channels out and in, rows and columns of outputs
    int64_t tile_n, tile_k, tile_c, tile_p;      // images, channels out and in, rows
    int64_t element_k, element_c;                // channels that an element holds weights of
} Mapping;

typedef struct Cost {
    double  cycles;                       // of the unit's clock; INFINITY: it cannot compute it
    double  read_bytes, write_bytes;      // of memory
    double  bytes_cycle;                  // its demand b: both over cycles
    double  buffer_bytes, element_bytes;  // of the shared buffer; of the elements' own
    double  energy_pj, utilization;
    double  array_cycles, buffer_cycles, memory_cycles;  // each alone; cycles is no less
    Mapping mapping;
} Cost;

Cost cost_of(const Shape *s, const UnitSpec *u);

void cost_all(const Shape *s, uint32_t n, const UnitSpec *u,
              Cost *out);  // equal ones searched once

// A network's table for the kinds of a package, in nanoseconds.
MUST_USE Err cost_model(const char *network, const Package *p, Arena *a, ChipModel *out);
