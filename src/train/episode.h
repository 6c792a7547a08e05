// Episode: one run of relmas as experience: what the network saw every period, what it said, and
// how many requests were in time after that.
#pragma once

#include "learn/ddpg.h"
#include "train/course.h"

typedef struct EpisodeOptions {
    Actor                 actor;
    const float          *w;
    const RelmasSettings *settings;
    float                 sigma;     // of the noise on what it says, task by task
    float                 sway;      // of what is added to all tasks alike for a while
    uint64_t              seed;      // of the noise
    float                 discount;  // of a period
    uint32_t              n_return;  // periods that a step sums up
    float                 crowding;  // reward lost for each time the bandwidth that is asked for
    const RelmasSettings *tutor;     // NULL: none; else its rule is the teacher
} EpisodeOptions;

typedef struct Episode {
    DdpgTransition *steps;  // [n] in the order of time
    uint32_t        n;
    double          sla;
} Episode;

MUST_USE Err episode_run(const CourseRun *x, const EpisodeOptions *o, Arena *a, Episode *out);
