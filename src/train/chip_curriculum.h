// ChipCurriculum: the packages, workloads and conditions from which relmas' training draws its
// runs.
//
// Seeds from CHIP_TRAIN_SEED on are for training, those from CHIP_CHECK_SEED on for validation.
#pragma once

#include "chip/chip_scenario.h"

typedef struct ChipCurriculumOptions {
    const char *const *chips, *const *mixes;
    uint32_t n_chips, n_mixes;
    double   period_us;  // T_s; 0: the package's own
} ChipCurriculumOptions;

typedef struct ChipCurriculum {
    ChipScenario *scenarios;  // [n] every workload on every package
    uint32_t      n;
} ChipCurriculum;

enum {
    CHIP_TRAIN_SEED = 1000000,
    CHIP_CHECK_SEED = 2000000,
    CHIP_CHECK_LOADS = 3,
    CHIP_CHECK_BANDWIDTHS = 3,
};

typedef struct ChipTrainRun {  // one trace under some conditions
    const ChipScenario *scenario;
    double              load, bandwidth;  // bandwidth: share of the package's own
    double              burst;
    bool                firm;
    uint32_t            requests;
    uint64_t            seed;
} ChipTrainRun;

MUST_USE Err chip_curriculum_open(const ChipCurriculumOptions *o, Arena *a, ChipCurriculum *out);

// The i-th training run of a seed; loads from 0.3 to 2.2 of the package's capacity.
ChipTrainRun chip_curriculum_draw(const ChipCurriculum *c, uint64_t seed, uint64_t i);

// The i-th of chip_curriculum_cells cells of the validation grid.
ChipTrainRun chip_curriculum_cell(const ChipCurriculum *c, uint32_t i, uint32_t trace);

static inline uint32_t chip_curriculum_cells(const ChipCurriculum *c) {
    return c->n * CHIP_CHECK_LOADS * CHIP_CHECK_BANDWIDTHS;
}

typedef struct ChipTrainPolicy {
    const ChipPolicy *policy;
    const void       *settings, *loaded;
} ChipTrainPolicy;

// Simulates a run under a policy; the result lives in the arena. *sla: share of requests in time,
// after the warm-up.
MUST_USE Err chip_curriculum_run(const ChipTrainRun *x, const ChipTrainPolicy *p, Arena *a,
                                 ChipResult *out, double *sla);
