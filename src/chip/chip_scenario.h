// ChipScenario: a package and the tenants of a workload on it, with costs computed, ready to run.
#pragma once

#include "chip/package.h"
#include "chip/sim/chip_run.h"
#include "chip/workload.h"

#define CHIP_SCENARIO_PACKAGE "4+4"
#define CHIP_SCENARIO_SLACK   4.0
enum {
    CHIP_SCENARIO_REQUESTS = 1000,
    // Least best case that deadlines are computed from: a policy that plans every half millisecond
    // cannot meet deadlines of microseconds.
    CHIP_SCENARIO_LEAST_NS = 500000,
};

// Capacity, in capacity.c: an upper bound of the requests per second that a package can answer.
typedef struct CapacityCase {
    const ChipModel *models;  // [n]
    const double    *share;   // [n] of the requests
    uint32_t         n;
    const ChipKind  *kinds;  // [n_kinds]
    uint32_t         n_kinds;
    double           bytes_ns;     // of the memory
    double           dispatch_ns;  // overhead of each layer on its unit
} CapacityCase;

// The optimum of a linear program: layers are divided among kinds, even in fractions, so that the
// load of the busiest resource, a kind of unit or the memory, is least. No schedule answers more.
// Fails if a layer runs on no unit.
MUST_USE Err capacity_find(const CapacityCase *c, double *out);

typedef enum ChipDeadlines {
    CHIP_DEADLINES_MOCA,
    CHIP_DEADLINES_PLANARIA,
    CHIP_DEADLINES_MLPERF
} ChipDeadlines;

typedef struct ChipScenarioOptions {
    const char   *package;    // name of a shipped one, or path of a YAML file
    const char   *workload;   // light, heavy, mixed, or networks separated by commas
    double        bandwidth;  // bytes per cycle; 0: the package's own
    double        period_us;  // T_s; 0: the package's own
    double        slack;      // deadline = slack x level x best case alone; 0: CHIP_SCENARIO_SLACK
    double        target;     // hit rate of every tenant; 0: none
    ChipDeadlines deadlines;
    ChipSharing   sharing;
    bool          firm;
    const char   *table;  // path of a LayerCostTable, in place of the cost model; NULL: none
    bool          table_fill;
    const RequestTrace *trace;  // its tenants replace the workload's; NULL: none
} ChipScenarioOptions;

typedef struct ChipScenario {
    Package             package;
    Workload            workload;
    ChipModel          *models;   // [workload.n]
    ChipTenant         *tenants;  // [workload.n]
    double             *share;    // [workload.n] of the requests: all equal, or as in the trace
    ChipSetup           setup;
    ChipController      controller;
    ChipSharing         sharing;
    ChipScenarioOptions options;
    // Upper bound of requests per second, at the package's own bandwidth: load 1. See
    // capacity_find.
    double capacity;
} ChipScenario;

MUST_USE Err chip_scenario_open(const ChipScenarioOptions *o, Arena *a, ChipScenario *out);

// The time that a tenant's deadlines are multiples of, see ChipScenarioOptions.
double chip_scenario_base_ns(const ChipScenario *s, uint32_t tenant);

typedef struct ChipTraffic {
    double   load;   // offered load, over ChipScenario.capacity
    double   burst;  // 0: Poisson; else the rate in bursts over the mean rate, see arrivals_bursty
    uint32_t requests;
    uint64_t seed;
} ChipTraffic;

// Requests drawn at random, or those of the options' trace.
MUST_USE Err chip_scenario_trace(const ChipScenario *s, const ChipTraffic *t, Arena *a,
                                 ChipTrace *out);
// The load that the options' trace offers: its mean rate over the capacity; 0 if all come at once.
double chip_scenario_trace_load(const ChipScenario *s);
// A run of the trace, without a policy. Threads may share the scenario.
ChipRun chip_scenario_run(const ChipScenario *s, ChipTrace trace);
