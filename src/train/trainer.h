// Trainer: trains a policy's network from a seed, in generations.
//
// The first generations imitate a teacher, the next ones learn by reinforcement, the last ones
// fine-tune the network's head by evolution strategies on whole runs. Every few generations the
// parameters are evaluated on runs that training never sees and the best are kept. A generation
// depends only on the seed, its number and the state before it: a training can stop and resume
// between any two, and neither the number of threads nor the machine changes the result.
#pragma once

#include "train/es.h"
#include "train/trainee.h"

typedef enum TrainStage { TRAIN_IMITATE, TRAIN_LEARN, TRAIN_FINETUNE, TRAIN_STAGES } TrainStage;

extern const char *const train_stage_names[TRAIN_STAGES];

typedef struct TrainPlan {
    uint32_t generations[TRAIN_STAGES];
    uint32_t episodes, updates;  // of a generation that imitates or learns
    EsParams es;
    uint32_t check;      // generations between two evaluations
    double   tolerance;  // loss of objective against the best at which training returns to the best
    bool     beat_rule;  // parameters are kept only once they beat the policy without a network
} TrainPlan;

typedef struct TrainDefaults {      // of a tier
    TrainPlan plan;                 // but for its generations
    uint32_t  parts[TRAIN_STAGES];  // how generations are divided
    bool      rest_first;           // the remainder goes to the first stage; else to the last
} TrainDefaults;

// So many generations in all; stages: a bit for each that takes part, at least one.
TrainPlan train_plan(const TrainDefaults *d, uint32_t generations, uint32_t stages);

typedef struct Trainer {
    Trainee   *trainee;
    Evaluator *evaluator;
    TrainPlan  plan;
    uint64_t   seed;
    uint32_t   threads;
    Team      *team;
    uint32_t   generation;  // that comes next
    FloatVec   best;        // parameters; zeros until some were kept
    Score      best_score;
    Score      rule_score;  // of the policy without a network
    FloatVec   direction;   // see train/es.h
} Trainer;

typedef struct TrainReport {  // of one generation
    TrainStage stage;
    double     loss;     // of imitation or learning
    double     fitness;  // mean, of fine-tuning
    bool       checked, better;
    Score      score;  // when checked
} TrainReport;

// trainee, evaluator, plan, seed and threads are set. Starts the team; trainer_close ends it.
MUST_USE Err trainer_open(Trainer *t, Arena *a);
void         trainer_close(Trainer *t);
uint32_t     trainer_total(const Trainer *t);  // generations
TrainStage   trainer_stage(const Trainer *t, uint32_t generation);

MUST_USE Err trainer_step(Trainer *t, Arena *scratch, TrainReport *out);  // the next generation

// Checkpoints: resume refuses those of another policy, seed, plan or set of runs.
MUST_USE Err trainer_save(const Trainer *t, const char *path, Arena *scratch);
MUST_USE Err trainer_resume(Trainer *t, const char *path, Arena *scratch);
