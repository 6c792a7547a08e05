// Generation: one round of training: runs in parallel, then learning from them.
#pragma once

#include "train/relmas_train.h"

enum { GENERATION_RUNS = 12 };  // that a trial of the polish is tried on

DdpgOptions  generation_options(Actor actor, Critic critic);
MUST_USE Err generation_run(RelmasTrain *t, Arena *scratch, TrainReport *out);

// By evolution: mirrored changes of the network's head, each on the same runs.
MUST_USE Err generation_polish(RelmasTrain *t, Arena *scratch, TrainReport *out);
