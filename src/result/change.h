// Change: what the subject of a comparison gains over one policy, or over the best baseline of
// every cell, in one metric over all cells.
#pragma once

#include "result/comparison.h"

typedef struct Change {
    uint32_t cells;                // in which both have runs
    uint32_t ahead, even, behind;  // cells, by the 95 % interval of the delta
    double   ours, theirs;         // means over the cells
    // The metric's own delta: a difference, or a ratio less 1.
    double                mean;     // of the cells
    Mean                  by_seed;  // of a difference: each seed's mean over the cells
    Mean                  best, worst;
    const ComparisonCell *best_at, *worst_at;
    // Largest relative gain, ours over theirs less 1; NaN: none.
    double                gain, gain_ours, gain_theirs;
    const ComparisonCell *gain_at;
} Change;

// policy NULL: the best baseline of each cell. False: no cell has both.
bool change_against(const Comparison *c, const char *policy, MetricId id, Change *out);
