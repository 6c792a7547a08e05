// ChipMatch: policies meet the same traces in every cell of package, workload, load and bandwidth.
#pragma once

#include "base/term.h"
#include "chip/chip_scenario.h"
#include "eval/chip_choice.h"
#include "report/match.h"

typedef struct ChipCompareParams {
    ChipScenarioOptions stage;  // of all cells; package, workload and bandwidth are set by the cell
    const char        **chips, **mixes;
    const double       *loads, *bandwidths;  // a bandwidth of 0 is the package's own
    uint32_t            n_chips, n_mixes, n_loads, n_bandwidths;
    double              burst;
    uint32_t            requests, traces, threads;
    uint64_t            first_seed;
    bool                measure;  // real time of decisions, which no seed repeats
} ChipCompareParams;

// Runs, one step of progress each.
uint32_t chip_compare_steps(const ChipCompareParams *r, uint32_t n_policies);

// The result does not depend on the number of threads. Fills cells, traces, requests and
// first_seed.
MUST_USE Err chip_compare_run(const ChipCompareParams *r, const ChipChoices *c, Progress *p,
                              Arena *a, Match *out);
