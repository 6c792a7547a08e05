// ClusterCurriculum: the traces, clusters and loads from which the training of cluster policies
// draws its runs.
//
// Seeds are those of training (cluster/cluster_scenario.h): the first 900,000 of them for training,
// those from CLUSTER_CHECK_SEED on for validation.
#pragma once

#include "cluster/cluster_scenario.h"
#include "cluster/sim/cluster_run.h"

typedef struct ClusterCurriculumOptions {
    const char *const *traces, *const *servers;  // see ClusterScenarioSpec
    uint32_t           n_traces, n_servers;
    uint32_t           jobs;         // of a run
    const char        *profiles;     // see ClusterScenarioSpec
    const Information *information;  // [n_information] runs have one of them; 0: perfect
    uint32_t           n_information;
} ClusterCurriculumOptions;

typedef struct ClusterCurriculum {
    ClusterScenario *scenarios;  // [n] every trace on every cluster with all information
    uint32_t         n, jobs;
} ClusterCurriculum;

typedef struct ClusterTrainRun {
    const ClusterScenario *scenario;
    double                 load;
    uint32_t               jobs;
    uint64_t               seed;
} ClusterTrainRun;

typedef struct ClusterTrainResult {
    double jct_s, makespan_s;  // jct_s: mean job completion time
} ClusterTrainResult;

enum { CLUSTER_CHECK_LOADS = 3, CLUSTER_CHECK_SEED = CLUSTER_SCENARIO_TRAIN + 900000 };

MUST_USE Err cluster_curriculum_open(const ClusterCurriculumOptions *o, Arena *a,
                                     ClusterCurriculum *out);

// The i-th training run of a seed; loads from 0.8 to 3.
ClusterTrainRun cluster_curriculum_draw(const ClusterCurriculum *c, uint64_t seed, uint64_t i);

// The i-th of cluster_curriculum_cells cells of the validation grid.
ClusterTrainRun cluster_curriculum_cell(const ClusterCurriculum *c, uint32_t i, uint32_t trace);

static inline uint32_t cluster_curriculum_cells(const ClusterCurriculum *c) {
    return c->n * CLUSTER_CHECK_LOADS;
}

// Simulates a run. policy, settings, loaded (NULL: what the settings name) and watch of *run are
// set, the rest is filled in; it and the result live in the arena.
MUST_USE Err cluster_curriculum_run(const ClusterTrainRun *x, ClusterRun *run, Arena *a,
                                    ClusterResult *result, ClusterTrainResult *out);
