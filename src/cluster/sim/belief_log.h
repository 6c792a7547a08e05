// BeliefLog: what policies believed of one job in a run, and what was measured of it.
#pragma once

#include "cluster/sim/cluster_run.h"

enum { BELIEF_LOG_ENTRIES = 256 };

typedef struct BeliefEntry {
    TimeNs at;
    const char *class;  // believed; "" without one
    TimeNs left;        // believed work left, or CLUSTER_UNKNOWN
    double left_sd;     // of its logarithm; 0: unknown
    double rate_sd;     // of the logarithm of its rate at other amounts; 0: unknown
    double rate;        // believed, or measured; 0: it waits
    double measured;    // 0: not yet
    bool   probe;       // its amounts were changed to measure its rate
} BeliefEntry;

typedef struct BeliefLog {
    uint32_t    job;  // index in the job list
    uint32_t    n;    // entries; later changes are counted only
    uint64_t    changes;
    BeliefEntry at[BELIEF_LOG_ENTRIES];
    Arena      *own;  // names are copied there; not the run's arena
} BeliefLog;

// Adds an entry when the class, the rate or the measurement differs from the last one. `self` is
// the BeliefLog; see ClusterRun.after.
void belief_log_note(void *self, const ClusterView *v, const ClusterAction *plan, uint32_t n);
