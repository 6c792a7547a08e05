// MaifsEpisode: one run of maifs as experience: what agents saw at each decision, what a teacher
// would have made of it, what was taken, and what came of that.
#pragma once

#include "learn/replay.h"
#include "train/cluster_curriculum.h"
#include "train/maifs_q.h"

typedef struct MaifsEpisodeOptions {
    const MaifsSettings *settings;
    const float         *w;
    const MaifsSettings *teacher;  // whose rule teaches; NULL: nobody
    float                epsilon;  // how often an agent takes any offer
    uint32_t             keep;     // steps or lessons, at most, evenly over the run
} MaifsEpisodeOptions;

typedef struct MaifsEpisode {
    MaifsQStep   *steps;
    MaifsQSample *samples;
    uint32_t      n_steps, n_samples;
} MaifsEpisode;

MUST_USE Err maifs_episode_run(const ClusterTrainRun *x, const MaifsEpisodeOptions *o, Arena *a,
                               MaifsEpisode *out);

// A step as floats, for a replay: how many, written, and seen again without a copy.
size_t     maifs_step_size(const MaifsQStep *s);
void       maifs_step_write(const MaifsQStep *s, float *to);
MaifsQStep maifs_step_read(const float *from);
