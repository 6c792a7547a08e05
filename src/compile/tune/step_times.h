// StepTimes: measured time of each step of a program inside whole runs, by version and core count.
#pragma once

#include "compile/program.h"

typedef struct StepTimesOptions {
    uint32_t      n_counts, counts[PROFILE_COUNTS];  // core counts, ascending
    uint32_t      runs;  // of each version on each core count; the lower quartile is taken
    const Tensor *inputs;
    bool          extrapolate;  // measures CPU time on one core, computes the others
    TimeNs
        most_ns;  // runs are stopped after this, all but finished rounds are dropped; 0: no limit
    WorkFlag *stop;  // set by another thread to give up with an error; may be NULL
} StepTimesOptions;

// Heavy steps get a new profile with these times of their versions, in the arena; light_ns
// [steps][n_counts] receives those of the others. Steps keep their versions.
MUST_USE Err step_times_measure(Program *p, Team *team, const StepTimesOptions *o, Arena *a,
                                TimeNs **light_ns);

// For programs that are not tuned:

// Gives heavy steps without a profile one, in the arena, from a few runs on their own.
MUST_USE Err step_times_measure_missing(Program *p, Team *team, const uint32_t *counts,
                                        uint32_t n_counts, Arena *a);
