// RelmasTrain: weights for relmas from nothing but a seed, in generations.
//
// First generations imitate a tutor, those after learn by DDPG from what came of what the network
// said, the last ones polish its head by evolution on whole runs. A generation depends on nothing
// but the seed, its number and what was learned before, so that training stops and goes on between
// two of them without a trace, and neither the number of threads nor the machine shows.
#pragma once

#include "learn/ddpg.h"
#include "train/gauge.h"

typedef enum TrainStage { TRAIN_IMITATE, TRAIN_DDPG, TRAIN_POLISH, TRAIN_STAGES } TrainStage;

typedef struct TrainPlan {
    uint32_t generations[TRAIN_STAGES];
    uint32_t episodes;  // of a generation
    uint32_t updates;   // of the networks in it, when it imitates or learns by DDPG
    uint32_t pairs;     // of mirrored trials, when it polishes
    uint32_t check;     // generations between two gaugings
    uint32_t traces;    // of each cell in a gauging
} TrainPlan;

// The usual one, of so many in all; stages: a bit for each that takes part.
TrainPlan train_plan(uint32_t generations, uint32_t stages);

typedef struct RelmasTrain {
    const Course  *course;
    Runs          *runs;
    Gauge          gauge;
    RelmasSettings settings;
    TrainPlan      plan;
    uint64_t       seed;
    uint32_t       generation;  // that comes next
    Ddpg          *ddpg;
    FloatVec       best;       // actor; zeros, the rule alone, until one is better than that
    GaugeMark      best_mark;  // of it
    GaugeMark      rule_mark;  // of the rule without a network
    FloatVec       trial;      // the way that the polish goes
} RelmasTrain;

typedef struct TrainReport {  // of one generation
    TrainStage stage;
    double     sla;   // mean over its episodes
    double     loss;  // of the critic, or the distance to the tutor
    bool       checked, better;
    GaugeMark  mark;  // when checked
} TrainReport;

// `rivals`: whom the network is gauged beside; NULL after the last.
MUST_USE Err relmas_train_open(RelmasTrain *t, const Course *c, Runs *runs,
                               const ChipPolicy *const *rivals, const RelmasSettings *settings,
                               uint32_t hidden, TrainPlan plan, uint64_t seed, Arena *a);
uint32_t     relmas_train_total(const RelmasTrain *t);
TrainStage   relmas_train_stage(const RelmasTrain *t, uint32_t generation);

// The next generation.
MUST_USE Err relmas_train_step(RelmasTrain *t, Arena *scratch, TrainReport *out);

// All that a training needs to go on.
MUST_USE Err relmas_train_save(const RelmasTrain *t, const char *path, Arena *scratch);
MUST_USE Err relmas_train_resume(RelmasTrain *t, const char *path, Arena *scratch);
