// LayerCostTable: costs of layers from a CSV file, measured or found by another tool, in place of
// the cost model's.
#pragma once

#include "base/string_map.h"
#include "chip/cost/cost.h"

enum { LAYER_COST_TABLE_BYTES = 1 << 26 };  // of a file

typedef struct LayerCostRow {
    const char *network, *layer, *unit;
    size_t      line;
    double      cycles;  // INFINITY: the unit cannot compute the layer
    double      bytes, energy_pj;
} LayerCostRow;

typedef struct LayerCostTable {
    const char   *name;  // of the file, for errors
    LayerCostRow *at;    // [n]
    uint32_t      n;
    StringMap     rows;  // by network, unit and layer
    bool          fill;  // layers without a row cost what the model says; false: that is an error
} LayerCostTable;

// Columns network, layer, unit, cycles, bytes, energy_pj in any order; others are ignored.
MUST_USE Err layer_cost_table_read(const char *path, Arena *a, LayerCostTable *out);
MUST_USE Err layer_cost_table_parse(const char *name, const char *text, size_t len, Arena *a,
                                    LayerCostTable *out);

// Rejects rows of networks and units that are neither named here nor shipped.
MUST_USE Err layer_cost_table_check(const LayerCostTable *t, const char *const *networks,
                                    uint32_t n_networks, const char *const *units,
                                    uint32_t n_units);
// The costs of a network's layers on a unit, by their names, or by #0, #1, ... in network order.
// Rows of the network and the unit with another layer are rejected.
MUST_USE Err layer_cost_table_apply(const LayerCostTable *t, const char *network, const Shape *s,
                                    uint32_t n, const UnitSpec *u, Arena *scratch, Cost *out);
