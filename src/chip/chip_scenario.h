// ChipScenario: a package and the tenants of a workload on it, ready for runs.
#pragma once

#include "chip/package.h"
#include "chip/sim/chip_run.h"
#include "chip/workload.h"

#define CHIP_SCENARIO_PACKAGE "4+4"
#define CHIP_SCENARIO_SLACK   4.0
enum {
    CHIP_SCENARIO_REQUESTS = 1000,
    // A best case counts as this much at least: nobody waits for an answer in microseconds, and no
    // scheduler that thinks every half millisecond could give one.
    CHIP_SCENARIO_LEAST_NS = 500000,
};

typedef enum ChipDeadlines {
    CHIP_DEADLINES_MOCA,
    CHIP_DEADLINES_PLANARIA,
    CHIP_DEADLINES_MLPERF
} ChipDeadlines;

typedef struct ChipScenarioOptions {
    const char   *package;    // a shipped one by name, or a YAML file by its path
    const char   *workload;   // light, heavy, mixed, or networks parted by commas
    double        bandwidth;  // bytes a cycle; 0: the package's own
    double        period_us;  // T_s; 0: the package's own
    double        slack;      // deadline = slack x level x best case alone; 0: CHIP_SCENARIO_SLACK
    double        target;     // hit rate every tenant should have; 0: none
    ChipDeadlines deadlines;
    ChipSharing   sharing;
    bool          firm;
} ChipScenarioOptions;

typedef struct ChipScenario {
    Package             package;
    Workload            workload;
    ChipModel          *models;   // [workload.n]
    ChipTenant         *tenants;  // [workload.n]
    double             *share;    // [workload.n] of the requests: all the same
    ChipSetup           setup;
    ChipController      controller;
    ChipSharing         sharing;
    ChipScenarioOptions options;
    // Requests a second of this workload that the package could answer if every unit and the
    // memory (at the package's own bandwidth) were used without a gap: load 1.
    double capacity;
} ChipScenario;

MUST_USE Err chip_scenario_open(const ChipScenarioOptions *o, Arena *a, ChipScenario *out);

// What a tenant's deadlines are multiples of, by level: see ChipScenarioOptions.
double chip_scenario_base_ns(const ChipScenario *s, uint32_t tenant);

typedef struct ChipTraffic {
    double   load;   // 1: what the package could just answer, see ChipScenario.capacity
    double   burst;  // 0: Poisson; else how much more comes in bursts, see arrivals_bursty
    uint32_t requests;
    uint64_t seed;
} ChipTraffic;

MUST_USE Err chip_scenario_trace(const ChipScenario *s, const ChipTraffic *t, Arena *a,
                                 ChipTrace *out);
// A run of the trace without policy; any number of threads may share the stage.
ChipRun chip_scenario_run(const ChipScenario *s, ChipTrace trace);
