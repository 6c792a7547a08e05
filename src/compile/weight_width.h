// WeightWidth: how wide products keep weights that the file has as floats, and a report of what a
// compilation made of them.
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

typedef enum WeightWidth {
#define X(id, name, form) WEIGHTS_##id,
#include "compile/weight_width.def"
#undef X
    WEIGHT_WIDTHS
} WeightWidth;

const char  *weight_width_name(WeightWidth w);
MUST_USE Err weight_width_parse(const char *text, WeightWidth *out);  // ERR_ARG: no such width

typedef struct LayerWeights {  // of a layer with constant weights
    struct LayerWeights *next;
    const char          *name, *op;
    const char          *kept;                      // why they stay as they are; NULL: narrowed
    uint64_t             file_bytes, packed_bytes;  // packed: of narrowed ones
    double               max_error, rms_error;      // of narrowed ones: see NarrowError
} LayerWeights;

typedef struct WeightReport {  // zeroed but for the arena
    Arena        *arena;       // owns the rows and their names
    LayerWeights *first, *last;
    uint32_t      narrowed, kept;
} WeightReport;

// Adds a row; NULL without a report.
LayerWeights *weight_report_add(WeightReport *r, const LayerWeights *row);
