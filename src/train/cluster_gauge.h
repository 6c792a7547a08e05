// ClusterGauge: how well weights do on runs that training never sees, beside policies that follow
// rules and beside the same policy without a network.
#pragma once

#include "train/cluster_course.h"
#include "train/pupil.h"
#include "train/runs.h"

typedef struct ClusterRival {
    const char   *name;
    ClusterPlayer player;
    uint32_t      cells;          // that it can run in
    double        jct, makespan;  // geometric means over those, against the rule's
} ClusterRival;

typedef struct ClusterGauge {
    const ClusterCourse *course;
    Runs                *runs;
    ClusterRival        *rivals;  // [n_rivals]
    uint32_t             n_rivals, n_cells, traces;
    double               weight;  // of the makespan, beside the completion time's 1
    ClusterCourseEnd    *rule;    // [n_cells * traces]
    double              *best;  // [n_cells] log of the best rival's completion time over the rule's
} ClusterGauge;

typedef struct ClusterMark {  // logarithms of what it takes over what the rule takes: less is
                              // better
    double jct, makespan;
    double worst;  // completion time over the best rival's, in the worst cell
    double score;  // what decides between weights: more is better
} ClusterMark;

// Runs the rivals and the rule once. The score of the rule is *rule.
MUST_USE Err cluster_gauge_open(ClusterGauge *g, const Pupil *p, Arena *a, ClusterMark *rule);
MUST_USE Err cluster_gauge_weights(const ClusterGauge *g, const Pupil *p, const float *w,
                                   Arena *scratch, ClusterMark *out);
