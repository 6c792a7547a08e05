// ChipRun: one run of tenants' requests on a package under a policy, in virtual time: what goes in
// and what comes out.
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "contract/chip.h"
#include "sim/record.h"

typedef enum ChipSharing {
    CHIP_EQUAL,    // all layers that run slow down alike, by max(1, sum b / B)
    CHIP_MAX_MIN,  // each gets what it asks for or an equal share, what is left over goes round
} ChipSharing;

// The small processor on which policies run, and what starting a layer takes.
typedef struct ChipController {
    double mac_ns;  // multiply-accumulates a nanosecond
    double op_ns;   // other operations a nanosecond
    double mac_pj, op_pj, byte_pj;
    TimeNs dispatch_ns;  // from a decision to a layer's start
} ChipController;

typedef struct ChipTrace {  // who asks when, and by when the answer is due
    const ChipRequest *at;  // [n] by arrival
    uint32_t           n;
} ChipTrace;

typedef struct ChipRun {
    ChipSetup         setup;  // n_slots, rng and future are filled in by the engine
    ChipController    controller;
    ChipSharing       sharing;
    double            idle_mw;  // of the whole package, while the run lasts
    const ChipPolicy *policy;
    const void       *settings, *loaded;  // of the policy
    ChipTrace         trace;
    uint64_t          seed;  // of the policy's own chance
    RecordSink        records;
    uint32_t          skip;  // the first so many requests are not counted: the queues fill
    // Told before every call of the policy's decide (thinking: false) and think (true). For
    // training and explanations; NULL: nobody is.
    void (*watch)(void *self, const ChipView *view, const void *state, bool thinking);
    void        *watcher;
    const Clock *clock;  // by which the policy's calls are timed; NULL: they are not
} ChipRun;

typedef struct ChipAnswer {
    TimeNs   finish;  // of a dropped request: when that was said
    Outcome  outcome;
    uint32_t tenant;
} ChipAnswer;

typedef struct ChipResult {
    ChipAnswer *answers;  // [trace.n] in order of arrival
    uint32_t    n;
    uint64_t    layers, decisions, plans;
    double      layer_pj, policy_pj, idle_pj;
    double      bytes;         // moved from and to memory
    double      busy_unit_ns;  // units at work, summed
    double      planning_ns;   // controller at work
    double      decide_ns;     // real time spent in the policy's decide; 0 without a clock
    double      plan_ns;       // and in its think
    TimeNs      span;          // from the first arrival to the last answer
} ChipResult;

// Everything the run takes is from the arena. An illegal plan is the policy's fault and aborts.
MUST_USE Err chip_simulate(const ChipRun *run, Arena *a, ChipResult *out);

typedef struct ChipSummary {  // tenant: one of them, or CHIP_NONE for all
    uint32_t n, met, late, dropped;
    double   sla;       // share of requests in time
    double   slowdown;  // latency over the best case alone, of answered ones: geometric mean
    double   mean_ms, p99_ms;
    double   energy_mj, policy_energy_share;
    double   bandwidth_use;  // share of what the memory could have moved
    double   unit_use;
} ChipSummary;

MUST_USE Err chip_summary(const ChipRun *run, const ChipResult *r, uint32_t tenant, Arena *scratch,
                          ChipSummary *out);
