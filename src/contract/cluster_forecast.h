// ClusterForecast: what would happen from a view on under a policy, simulated from beliefs alone.
//
// The simulated cluster begins with the tasks, slices and beliefs of the view; no further job
// arrives. It is built from the view and the setup, so it knows no more than its caller. Rates
// follow the believed profiles, after the rates in the view.
#pragma once

#include "contract/cluster.h"

typedef struct ClusterForecastRun {
    const ClusterPolicy *policy;
    const void          *settings, *loaded;  // of the policy
    // [waiting, then running tasks of the view] work left without what is owed, which the policy
    // does not see: it sees the beliefs of the view.
    const TimeNs *work;
    uint64_t      most_decisions;
} ClusterForecastRun;

typedef struct ClusterOutlook {
    bool     drained;     // all jobs ended within most_decisions
    double   alive_s;     // sum of the tasks' times to their ends
    double   makespan_s;  // time to the last end
    uint64_t decisions;
} ClusterOutlook;

typedef struct ClusterForecast {
    Arena *arena;  // scratch
    ClusterOutlook (*simulate)(const struct ClusterForecast *self, const ClusterView *view,
                               const ClusterForecastRun *run);
} ClusterForecast;
