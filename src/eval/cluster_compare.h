// Comparison of cluster policies: the same jobs in every cell of trace, servers and load.
#pragma once

#include "cluster/cluster_scenario.h"
#include "eval/compare.h"

typedef struct ClusterCompareParams {
    CompareParams       common;
    ClusterScenarioSpec scenario;  // trace, servers and load are set by the cell
    const char        **traces, **servers;
    const double       *loads;
    uint32_t            n_traces, n_servers, n_loads;
    double              error;  // of predicted durations; 0: durations are exact
} ClusterCompareParams;

MUST_USE Err cluster_compare(const ClusterCompareParams *p, const PolicyChoices *c, Arena *a,
                             Comparison *out);
uint64_t     cluster_compare_runs(const ClusterCompareParams *p, uint32_t n_policies);
