// ClusterTrainBeliefs: the part of `cluster train` that trains the beliefs of the estimator, or
// fine-tunes them on a cluster's own history.
#pragma once

#include "base/arena.h"
#include "cli/train_command.h"

typedef struct ClusterTrainBeliefs {
    const TrainArgs *train;
    const char      *history;  // trace to fine-tune on; NULL: none
    const char      *start;    // weights that fine-tuning starts from; "": the shipped ones
} ClusterTrainBeliefs;

MUST_USE Err cluster_train_beliefs(const ClusterTrainBeliefs *x, Arena *a);
