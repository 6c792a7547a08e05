// ChipEvaluator: the share of requests in time that a network reaches on validation runs of a
// package, beside rule-based policies.
#pragma once

#include "train/chip_curriculum.h"
#include "train/trainer.h"

enum { CHIP_SCORE_MEAN, CHIP_SCORE_WORST };  // values of a score
// MEAN: share of requests in time over all cells. WORST: least gain on the best baseline of a cell.

extern const TrainDefaults chip_train_defaults;

typedef struct ChipEvaluator {
    Evaluator                evaluator;
    const ChipCurriculum    *curriculum;
    const ChipPolicy        *policy;  // that is trained
    uint32_t                 traces;  // of a cell
    uint32_t                 n_cells;
    double                  *best;       // [n_cells] share in time of the best baseline
    double                   best_mean;  // of these
    const char              *baseline;   // the baseline with the highest mean
    double                   baseline_mean;
    const ChipPolicy *const *baselines;  // NULL after the last; with default settings
} ChipEvaluator;

// Fills in e->evaluator. curriculum, policy, traces and baselines are set.
void chip_evaluator_init(ChipEvaluator *e);
