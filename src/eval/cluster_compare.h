// ClusterMatch: policies of a cluster meet the same jobs in every cell of trace, servers and load.
#pragma once

#include "base/term.h"
#include "eval/cluster_choice.h"
#include "cluster/cluster_scenario.h"
#include "report/league.h"

typedef struct ClusterCompareParams {
    ClusterScenarioSpec scene;  // of all cells; trace, servers and load are set by the cell
    const char        **traces, **servers;
    const double       *loads;
    uint32_t            n_traces, n_servers, n_loads;
    double              error;  // of predictions; 0: durations are exact
    uint32_t            seeds, threads;
    uint64_t            first_seed;
    bool                measure;  // real time of decisions, which no seed repeats
    bool                curves;   // for pages
} ClusterCompareParams;

// Runs, one step of progress each.
uint32_t cluster_compare_steps(const ClusterCompareParams *r, uint32_t n_policies);

// But for what is measured, the result does not depend on the number of threads. Policies that
// refuse a cell are left out there; one that was named and refuses all of them is an error. Fills
// cells, seeds, first_seed, measured and about.
MUST_USE Err cluster_compare_run(const ClusterCompareParams *r, const ClusterChoices *c,
                                 Progress *p, Arena *a, League *out);
