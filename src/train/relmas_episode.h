// RelmasEpisode: one run of relmas as DDPG transitions: what the network observed every period,
// what it answered, and how many requests were in time after that.
// RelmasTeacher: the heuristic with weights that suit a run better, as a teacher: the network
// output that makes the dispatcher follow these weights.
#pragma once

#include "learn/ddpg.h"
#include "policy/chip/relmas/relmas.h"
#include "train/chip_curriculum.h"

typedef struct RelmasEpisodeOptions {
    Actor                 actor;
    const float          *params;
    const RelmasSettings *settings;
    float                 sigma;     // of the noise on each output
    float                 bias;      // of the noise added to all tasks alike for a while; 0: none
    uint64_t              seed;      // of the noise
    float                 discount;  // of a period
    uint32_t              n_return;  // periods that a transition spans
    float                 crowding;  // reward lost for each bandwidth requested beyond the first
    const RelmasSettings *teacher;   // NULL: none
} RelmasEpisodeOptions;

typedef struct RelmasEpisode {
    DdpgTransition *steps;  // [n] by time
    uint32_t        n;
} RelmasEpisode;

MUST_USE Err relmas_episode_run(const ChipTrainRun *x, const RelmasEpisodeOptions *o, Arena *a,
                                RelmasEpisode *out);

// The teacher that gets most requests of a run in time; of equal ones the first.
MUST_USE Err relmas_teacher_choose(const ChipTrainRun *x, const RelmasSettings *usual, Arena *a,
                                   RelmasSettings *out);
