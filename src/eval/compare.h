// Compare: runs every chosen policy in every cell with every seed, on threads, into a Comparison.
//
// What a tier adds is a CompareTier: how a cell is opened, what one run is, and how a cell is
// described. The result does not depend on the number of threads, but for what is timed.
#pragma once

#include "base/term.h"
#include "eval/policy_choice.h"
#include "result/comparison.h"

enum { COMPARE_RUNS_MAX = 10000000 };

typedef struct CompareParams {  // of all tiers
    const char *subject;        // see Comparison
    uint32_t    seeds, threads;
    uint64_t    first_seed;
    bool        timed;     // decisions are timed, which no seed repeats
    bool        curves;    // keep what pages draw
    Progress   *progress;  // NULL: none is shown
} CompareParams;

typedef struct CompareCell {
    void        *scenario;  // the tier's
    const char  *name;      // for errors
    const void **loaded;    // [policies] what they loaded for this cell
    const char **missing;   // [policies] reason why one cannot run here; NULL: it can
} CompareCell;

typedef struct CompareRun {
    uint32_t cell, policy, seed, part;
} CompareRun;

typedef struct CompareState {  // what the threads share
    const struct CompareTier *tier;
    const CompareParams      *params;
    const void               *tier_params;
    const PolicyChoices      *choices;
    CompareCell              *cells;  // [n_cells]
    uint32_t                  n_cells;
    double                   *values;  // [cell][policy][seed][METRICS]
    void                     *kept;    // the tier's own, [n_cells] or less
} CompareState;

typedef struct CompareTier {
    Tier     tier;
    uint32_t parts;          // runs for one policy and seed
    bool     one_at_a_time;  // cells share the machine: one is closed before the next is opened
    Err (*open)(CompareState *s, uint32_t cell, Arena *a);
    Err (*run)(const CompareState *s, CompareRun at, Arena *a);
    Err (*describe)(const CompareState *s, uint32_t cell, Arena *a, ComparisonCell *out);
    // The rest of an entry; policy, paper, part_of, missing and values are filled in.
    void (*entry)(const CompareState *s, uint32_t cell, uint32_t policy, Arena *a,
                  ComparisonEntry *out);
    void (*close)(const CompareState *s, uint32_t cell);  // NULL: nothing to close
} CompareTier;

uint64_t compare_runs(const CompareTier *t, const CompareParams *p, uint32_t n_cells,
                      uint32_t n_policies);

// A policy that cannot run in a cell is missing there; one that was named and cannot run anywhere
// is an error. Fills what all tiers have of `out`; scenarios are closed.
MUST_USE Err compare_run(const CompareTier *t, const CompareParams *p, const void *tier_params,
                         const PolicyChoices *c, uint32_t n_cells, void *kept, Arena *a,
                         Comparison *out);

double *compare_values(const CompareState *s, uint32_t cell, uint32_t policy, uint32_t seed);
