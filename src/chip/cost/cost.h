// Cost: time, traffic and energy of a layer on a unit, by the best mapping that the unit's dataflow
// and buffers allow.
#pragma once

#include "chip/package.h"
#include "chip/cost/shape.h"
#include "contract/chip.h"

// Weight of the memory time beside the cycles in the choice of a mapping.
#define COST_TRAFFIC 0.05

// Spatial splits of the loops over the array, and the tile that the buffers hold at a time.
typedef struct Mapping {
    int64_t split_k, split_c, split_p, split_q;  // channels out and in, rows and columns of outputs
    int64_t tile_n, tile_k, tile_c, tile_p;      // images, channels out and in, rows
    int64_t element_k, element_c;                // channels that an element holds weights of
} Mapping;

typedef struct Cost {
    double  cycles;                       // of the unit's clock; INFINITY: impossible
    double  read_bytes, write_bytes;      // of memory
    double  bytes_cycle;                  // bandwidth demand b: traffic over cycles
    double  buffer_bytes, element_bytes;  // of the shared buffer; of the elements' own
    double  energy_pj, utilization;
    double  array_cycles, buffer_cycles, memory_cycles;  // each alone; a lower bound of cycles
    Mapping mapping;
} Cost;

Cost cost_of(const Shape *s, const UnitSpec *u);

// Of n layers; equal ones are searched once.
void cost_all(const Shape *s, uint32_t n, const UnitSpec *u, Cost *out);

typedef struct LayerCostTable LayerCostTable;

// The costs of a network for the kinds of a package, in nanoseconds: from a table, unless NULL.
MUST_USE Err cost_model_of(const char *network, const Package *p, const LayerCostTable *t, Arena *a,
                           ChipModel *out);
MUST_USE Err cost_model(const char *network, const Package *p, Arena *a, ChipModel *out);
