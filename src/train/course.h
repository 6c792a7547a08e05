// Course: the packages, workloads and conditions from which training draws its runs.
#pragma once

#include "chip/chip_scenario.h"
#include "policy/chip/relmas/relmas.h"

typedef struct CourseOptions {
    const char *const *chips, *const *mixes;
    uint32_t n_chips, n_mixes;
    double   period_us;  // T_s; 0: the package's own
} CourseOptions;

typedef struct Course {
    ChipScenario *stages;  // [n] every workload on every package
    uint32_t      n;
} Course;

// Seeds: training draws from COURSE_TRAIN on, the choice between weights from COURSE_CHECK on.
enum { COURSE_TRAIN = 1000000, COURSE_CHECK = 2000000 };

typedef struct CourseRun {  // one trace under some conditions
    const ChipScenario *stage;
    double              load, bandwidth;  // bandwidth: share of the package's own
    double              burst;
    bool                firm;
    uint32_t            requests;
    uint64_t            seed;
} CourseRun;

MUST_USE Err course_open(const CourseOptions *o, Arena *a, Course *out);

// The i-th run of training, anything from calm to hopeless.
CourseRun course_draw(const Course *c, uint64_t seed, uint64_t i);

enum { COURSE_LOADS = 3, COURSE_BANDWIDTHS = 3 };
// The i-th cell of the grid on which weights are compared; see course_cells for how many.
CourseRun course_cell(const Course *c, uint32_t i, uint32_t trace);

// A policy on it; the result is the arena's.
MUST_USE Err course_run(const CourseRun *x, const ChipPolicy *p, const void *settings,
                        const void *loaded, Arena *a, ChipRun *run, ChipResult *out);
double       course_sla(const ChipRun *run, const ChipResult *r);

static inline uint32_t course_cells(const Course *c) {
    return c->n * COURSE_LOADS * COURSE_BANDWIDTHS;
}
