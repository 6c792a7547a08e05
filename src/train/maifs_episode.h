// MaifsEpisode: one run of maifs as training data: Q-learning steps (state, joint action, reward),
// or samples of a teacher's values for imitation.
#pragma once

#include "learn/replay.h"
#include "train/cluster_curriculum.h"
#include "train/maifs_q.h"

typedef struct MaifsEpisodeOptions {
    const MaifsSettings *settings;
    const float         *w;
    const MaifsSettings *teacher;  // its rule is imitated; NULL: steps are recorded instead
    float                epsilon;  // probability that an agent takes a random offer
    uint32_t             keep;     // steps or samples, at most, evenly over the run
} MaifsEpisodeOptions;

typedef struct MaifsEpisode {
    MaifsQStep   *steps;
    MaifsQSample *samples;
    uint32_t      n_steps, n_samples;
} MaifsEpisode;

MUST_USE Err maifs_episode_run(const ClusterTrainRun *x, const MaifsEpisodeOptions *o, Arena *a,
                               MaifsEpisode *out);

// A step as floats, for a replay buffer: size, write, read in place.
size_t     maifs_step_size(const MaifsQStep *s);
void       maifs_step_write(const MaifsQStep *s, float *to);
MaifsQStep maifs_step_read(const float *from);
