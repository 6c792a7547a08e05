// Stage: a package and the tenants of a workload on it, ready for runs.
#pragma once

#include "chip/package.h"
#include "chip/run.h"
#include "chip/workload.h"

#define STAGE_PACKAGE "4+4"
#define STAGE_SLACK   4.0
enum {
    STAGE_REQUESTS = 1000,
    // A best case counts as this much at least: nobody waits for an answer in microseconds, and no
    // scheduler that thinks every half millisecond could give one.
    STAGE_LEAST_NS = 500000,
};

typedef enum StageDeadlines { STAGE_MOCA, STAGE_PLANARIA, STAGE_MLPERF } StageDeadlines;

typedef struct StageOptions {
    const char    *package;    // a shipped one by name, or a YAML file by its path
    const char    *workload;   // light, heavy, mixed, or networks parted by commas
    double         bandwidth;  // bytes a cycle; 0: the package's own
    double         period_us;  // T_s; 0: the package's own
    double         slack;      // deadline = slack x level x best case alone; 0: STAGE_SLACK
    double         target;     // hit rate every tenant should have; 0: none
    StageDeadlines deadlines;
    ChipSharing    sharing;
    bool           firm;
} StageOptions;

typedef struct Stage {
    Package        package;
    Workload       workload;
    ChipModel     *models;   // [workload.n]
    ChipTenant    *tenants;  // [workload.n]
    double        *share;    // [workload.n] of the requests: all the same
    ChipSetup      setup;
    ChipController controller;
    ChipSharing    sharing;
    StageOptions   options;
    // Requests a second of this workload that the package could answer if every unit and the
    // memory (at the package's own bandwidth) were used without a gap: load 1.
    double capacity;
} Stage;

MUST_USE Err stage_open(const StageOptions *o, Arena *a, Stage *out);

// What a tenant's deadlines are multiples of, by level: see StageOptions.
double stage_base_ns(const Stage *s, uint32_t tenant);

typedef struct StageTraffic {
    double   load;   // 1: what the package could just answer, see Stage.capacity
    double   burst;  // 0: Poisson; else how much more comes in bursts, see arrivals_bursty
    uint32_t requests;
    uint64_t seed;
} StageTraffic;

MUST_USE Err stage_trace(const Stage *s, const StageTraffic *t, Arena *a, ChipTrace *out);
// A run of the trace without policy; any number of threads may share the stage.
ChipRun stage_run(const Stage *s, ChipTrace trace);
