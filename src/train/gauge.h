// Gauge: how well weights do on traces that training never sees, beside policies that follow rules.
#pragma once

#include "train/course.h"
#include "train/runs.h"

typedef struct Gauge {
    const Course         *course;
    Runs                 *runs;
    const RelmasSettings *settings;
    Actor                 actor;
    uint32_t              n_cells;
    double               *best;       // [n_cells] share in time of the best other policy
    double                best_mean;  // of them
    const char           *rival;      // the other policy with the highest mean
    double                rival_mean;
    uint32_t              traces;  // a cell
} Gauge;

typedef struct GaugeMark {
    double mean;   // share of requests in time, over all cells
    double worst;  // the least that is gained on the best other policy of a cell
    double score;  // what decides between weights
} GaugeMark;

// Runs the others once. `rivals`: NULL after the last.
MUST_USE Err gauge_open(Gauge *g, const ChipPolicy *const *rivals, Arena *a);
MUST_USE Err gauge_weights(const Gauge *g, const float *w, Arena *scratch, GaugeMark *out);
