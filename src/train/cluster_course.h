// ClusterCourse: the traces, clusters and loads from which the training of cluster policies draws.
//
// Seeds are those of training (cluster/cluster_scenario.h): runs to learn by are drawn from the
// first nine tenths of a million of them, runs to choose between weights come after.
#pragma once

#include "cluster/sim/cluster_run.h"
#include "cluster/cluster_scenario.h"

typedef struct ClusterCourseOptions {
    const char *const *traces, *const *servers;  // see ClusterScenarioSpec
    uint32_t    n_traces, n_servers;
    uint32_t    jobs;      // of a run
    const char *profiles;  // see ClusterScenarioSpec
} ClusterCourseOptions;

typedef struct ClusterCourse {
    ClusterScenario *scenes;  // [n] every trace on every cluster
    uint32_t         n, jobs;
} ClusterCourse;

typedef struct ClusterCourseRun {
    const ClusterScenario *scene;
    double                 load;
    uint32_t               jobs;
    uint64_t               seed;
} ClusterCourseRun;

typedef struct ClusterCourseEnd {  // what came of it
    double jct_s, makespan_s;      // mean completion time
} ClusterCourseEnd;

typedef struct ClusterPlayer {  // who decides
    const ClusterPolicy *policy;
    const void          *settings, *loaded;  // NULL: it loads what its settings name
} ClusterPlayer;

enum { CLUSTER_COURSE_LOADS = 3, CLUSTER_COURSE_CHECK = CLUSTER_SCENARIO_TRAIN + 900000 };

MUST_USE Err cluster_course_open(const ClusterCourseOptions *o, Arena *a, ClusterCourse *out);

// The i-th run to learn by, anything from calm to crowded.
ClusterCourseRun cluster_course_draw(const ClusterCourse *c, uint64_t seed, uint64_t i);

// The i-th cell of the grid on which weights are compared.
ClusterCourseRun cluster_course_cell(const ClusterCourse *c, uint32_t i, uint32_t trace);

static inline uint32_t cluster_course_cells(const ClusterCourse *c) {
    return c->n * CLUSTER_COURSE_LOADS;
}

// All that it takes is the arena's.
MUST_USE Err cluster_course_run(const ClusterCourseRun *x, const ClusterPlayer *player, Arena *a,
                                ClusterCourseEnd *out);

// The same, with the run and its result for those who look closer; watch and watcher as in run.h.
MUST_USE Err cluster_course_watch(const ClusterCourseRun *x, ClusterRun *run, Arena *a,
                                  ClusterResult *result, ClusterCourseEnd *out);
