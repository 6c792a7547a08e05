// Laps: how long every step of a program takes inside whole runs, by version and number of cores.
#pragma once

#include "compile/program.h"

typedef struct StepTimesOptions {
    uint32_t      n_counts, counts[PROFILE_COUNTS];  // numbers of cores, ascending
    uint32_t      runs;  // of each version on each number; the lower quartile counts
    const Tensor *inputs;
    bool          extrapolate;  // one core's CPU time is measured, the rest follows from tasks
    TimeNs        most_ns;      // after that each version has its last run; 0: no limit
    const _Atomic bool *stop;   // set by another thread: given up, an error; may be NULL
} StepTimesOptions;

// Heavy steps get a new profile with these times of their versions, in the arena; light_ns
// [steps][n_counts] receives those of the others. Steps keep their versions.
MUST_USE Err step_times_measure(Program *p, Team *team, const StepTimesOptions *o, Arena *a,
                                TimeNs **light_ns);

// Measure: how long each heavy step of a program takes, for those that nobody tuned.

// Steps without a profile get one of a single version, in the arena. A few runs each.
MUST_USE Err step_times_measure_missing(Program *p, Team *team, const uint32_t *counts,
                                        uint32_t n_counts, Arena *a);
