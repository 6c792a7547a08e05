// ChipRun: the inputs of one simulated run of tenants' requests on a package under a policy.
// ChipResult, ChipSummary: its outcome.
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "contract/chip.h"
#include "sim/record.h"

typedef enum ChipSharing {
    CHIP_EQUAL,    // all running layers slow down by max(1, sum of demands / bandwidth)
    CHIP_MAX_MIN,  // max-min fair shares
} ChipSharing;

// The processor on which policies run, and the cost of starting a layer.
typedef struct ChipController {
    double mac_ns;  // multiply-accumulates per nanosecond
    double op_ns;   // other operations per nanosecond
    double mac_pj, op_pj, byte_pj;
    TimeNs dispatch_ns;  // from a decision to a layer's start
} ChipController;

typedef struct ChipTrace {
    const ChipRequest *at;  // [n] by arrival
    uint32_t           n;
} ChipTrace;

typedef struct ChipRun {
    ChipSetup         setup;  // n_slots, rng and future are filled in by the simulator
    ChipController    controller;
    ChipSharing       sharing;
    double            idle_mw;  // static power of the package
    const ChipPolicy *policy;
    const void       *settings, *loaded;  // of the policy
    ChipTrace         trace;
    uint64_t          seed;  // of the policy's random numbers
    RecordSink        records;
    uint32_t          skip;  // requests of the warm-up, which results leave out
    // Called before every decide() (planning: false) and plan() (true) of the policy, for training
    // and explanations; NULL: not called.
    void (*watch)(void *self, const ChipView *view, const void *state, bool planning);
    void        *watcher;
    const Clock *clock;  // times the policy's calls; NULL: they are not timed
} ChipRun;

typedef struct ChipAnswer {
    TimeNs   finish;  // of a dropped request: when it was dropped
    Outcome  outcome;
    uint32_t tenant;
} ChipAnswer;

typedef struct ChipResult {
    ChipAnswer *answers;  // [n] by arrival
    uint32_t    n;
    uint64_t    layers, decisions, plans;
    double      layer_pj, policy_pj, idle_pj;
    double      bytes;         // of memory traffic
    double      busy_unit_ns;  // sum over units
    double      planning_ns;   // of the controller, in virtual time
    double      decide_ns;     // wall-clock time in the policy's decide(); 0 without a clock
    double      plan_ns;       // and in its plan()
    TimeNs      span;          // from the first arrival to the last answer
} ChipResult;

// Memory is taken from the arena. Aborts on an illegal action: that is a bug of the policy.
MUST_USE Err chip_simulate(const ChipRun *run, Arena *a, ChipResult *out);

typedef struct ChipSummary {  // of one tenant, or of all
    uint32_t n, met, late, dropped;
    double   sla;       // share of requests in time
    double   slowdown;  // latency over the best case alone, geometric mean over answered requests
    double   mean_ms, p99_ms;
    double   energy_mj, policy_energy_share;
    double   in_time_mj;     // energy of the whole run over its answers in time; NaN: none
    double   bandwidth_use;  // share of the memory's bandwidth
    double   unit_use;
} ChipSummary;

// tenant: CHIP_NONE: all.
MUST_USE Err chip_summary(const ChipRun *run, const ChipResult *r, uint32_t tenant, Arena *scratch,
                          ChipSummary *out);
