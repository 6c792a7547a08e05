// Comparison of chip policies: the same request traces in every cell of package, workload, load and
// bandwidth.
#pragma once

#include "chip/chip_scenario.h"
#include "eval/compare.h"

typedef struct ChipCompareParams {
    CompareParams       common;
    ChipScenarioOptions scenario;  // package, workload and bandwidth are set by the cell
    const char        **chips, **mixes;
    const double       *loads, *bandwidths;  // a bandwidth of 0 is the package's own
    uint32_t            n_chips, n_mixes, n_loads, n_bandwidths;
    double              burst;
    uint32_t            requests;
} ChipCompareParams;

MUST_USE Err chip_compare(const ChipCompareParams *p, const PolicyChoices *c, Arena *a,
                          Comparison *out);
uint64_t     chip_compare_runs(const ChipCompareParams *p, uint32_t n_policies);

// The subject, or the first policy if it does not take part, in the first cell with the first seed,
// as a trace for Perfetto.
MUST_USE Err chip_compare_trace(const ChipCompareParams *p, const PolicyChoices *c,
                                const char *path, Arena *a);

// Sweep: what a policy's own network costs, by its size and by how often it plans, on the
// first package and the last workload at the first load and the package's own bandwidth.
const PolicyChoice *
chip_sweep_policy(const PolicyChoices *c);  // first with a network of variable size; or NULL
uint64_t chip_sweep_runs(const ChipCompareParams *p);
// Fills the sweep of `out`.
MUST_USE Err chip_sweep(const ChipCompareParams *p, const PolicyChoice *c, Arena *a,
                        Comparison *out);
