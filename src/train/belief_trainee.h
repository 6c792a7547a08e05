// BeliefTraining: supervised training of a BeliefNet on samples of imagined clusters, or
// fine-tuning on a cluster's own history, as trainee and evaluator of the one trainer.
#pragma once

#include "cluster/job.h"
#include "train/trainer.h"

enum { BELIEF_SCORE_LEFT, BELIEF_SCORE_SPEED };  // values of a score: negative log likelihoods

extern const TrainDefaults belief_train_defaults;

typedef struct BeliefTraining {
    uint64_t       seed;
    uint32_t       generations;  // after which the learning rate has fallen
    const JobList *like;         // the cluster's own jobs; NULL: imagined ones
    const float   *start;        // parameters to start from; NULL: random ones
} BeliefTraining;

// Both live in the arena. The evaluator's runs are samples that training never draws.
void belief_training_open(const BeliefTraining *x, Arena *a, Trainee **trainee, Evaluator **out);
