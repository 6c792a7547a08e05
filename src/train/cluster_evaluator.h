// ClusterEvaluator: job completion time and makespan of a network on validation runs of a cluster,
// beside baseline policies and beside the same policy without a network.
#pragma once

#include "train/cluster_curriculum.h"
#include "train/trainer.h"

// Values of a score: logarithms of the mean ratio to the policy without a network; less is better.
// WORST: completion time over the best baseline's, in the worst cell.
enum { CLUSTER_SCORE_JCT, CLUSTER_SCORE_MAKESPAN, CLUSTER_SCORE_WORST };

extern const TrainDefaults cluster_train_defaults;

typedef struct ClusterBaseline {
    const char          *name;
    const ClusterPolicy *policy;
    const void          *settings;
    uint32_t             cells;          // that it can run in
    double               jct, makespan;  // geometric means over these, as ratios
} ClusterBaseline;

typedef struct ClusterEvaluator {
    Evaluator                evaluator;
    const ClusterCurriculum *curriculum;
    const ClusterPolicy     *policy;                        // that is trained
    ClusterBaseline         *baselines;                     // [n_baselines]
    uint32_t                 n_baselines, n_cells, traces;  // traces: of a cell
    double                   makespan_weight;               // in the objective; completion time: 1
    ClusterTrainResult      *rule;                          // [n_cells][traces]
    double *best;  // [n_cells] logarithm of the best baseline's completion time over the rule's
} ClusterEvaluator;

// Fills in e->evaluator. curriculum, policy, baselines, traces and makespan_weight are set.
void cluster_evaluator_init(ClusterEvaluator *e, Arena *a);
