// ChipMatch: policies meet the same traces in every cell of package, workload, load and bandwidth.
#pragma once

#include "base/progress.h"
#include "chip/stage.h"
#include "cli/chip_choice.h"
#include "report/match.h"

typedef struct ChipMatchRules {
    StageOptions  stage;  // of all cells; package, workload and bandwidth are set by the cell
    const char  **chips, **mixes;
    const double *loads, *bandwidths;  // a bandwidth of 0 is the package's own
    uint32_t      n_chips, n_mixes, n_loads, n_bandwidths;
    double        burst;
    uint32_t      requests, traces, threads;
    uint64_t      first_seed;
    bool          measure;  // real time of decisions, which no seed repeats
} ChipMatchRules;

// Runs, one step of progress each.
uint32_t chip_match_steps(const ChipMatchRules *r, uint32_t n_policies);

// The result does not depend on the number of threads. Fills cells, traces, requests and
// first_seed.
MUST_USE Err chip_match_run(const ChipMatchRules *r, const ChipChoices *c, Progress *p, Arena *a,
                            Match *out);
