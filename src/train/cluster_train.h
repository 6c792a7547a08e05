// ClusterTrain: weights for a learned policy of a cluster from nothing but a seed, in generations.
//
// First generations imitate, those after learn from what came of what the policy did, the last ones
// polish by evolution on whole runs. A generation depends on nothing but the seed, its number and
// what was learned before: threads, stops and machines do not show.
#pragma once

#include "train/cluster_gauge.h"

typedef enum ClusterStage {
    CLUSTER_IMITATE,
    CLUSTER_LEARN,
    CLUSTER_POLISH,
    CLUSTER_STAGES
} ClusterStage;

typedef struct ClusterPlan {
    uint32_t generations[CLUSTER_STAGES];
    uint32_t episodes, updates;  // of a generation that imitates or learns
    uint32_t pairs, runs;        // of mirrored trials when it polishes, and of runs for each
    uint32_t check;              // generations between two gaugings
    float    sigma, step;        // see train/evolve.h
} ClusterPlan;

// The usual one, of so many in all; stages: a bit for each that takes part.
ClusterPlan cluster_plan(uint32_t generations, uint32_t stages);

typedef struct ClusterTrain {
    Pupil       *pupil;
    ClusterGauge gauge;
    ClusterPlan  plan;
    uint64_t     seed;
    uint32_t     generation;  // that comes next
    FloatVec     best;        // of the networks so far
    ClusterMark  best_mark, rule_mark;
    FloatVec     way;  // of the polish
} ClusterTrain;

typedef struct ClusterReport {  // of one generation
    ClusterStage stage;
    double       loss;  // or what the trials of a polish were worth
    bool         checked, better;
    ClusterMark  mark;  // when checked
} ClusterReport;

// The gauge of *t is set but for what cluster_gauge_open does.
MUST_USE Err cluster_train_open(ClusterTrain *t, Arena *a);
uint32_t     cluster_train_total(const ClusterTrain *t);
ClusterStage cluster_train_stage(const ClusterTrain *t, uint32_t generation);

MUST_USE Err cluster_train_step(ClusterTrain *t, Arena *scratch, ClusterReport *out);

// All that a training needs to go on.
MUST_USE Err cluster_train_save(const ClusterTrain *t, const char *path, Arena *scratch);
MUST_USE Err cluster_train_resume(ClusterTrain *t, const char *path, Arena *scratch);
