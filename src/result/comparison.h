// Comparison: the metrics of every policy in every cell, seed by seed, for all three tiers.
//
// A cell is one set of conditions (hardware, workload, load). All policies meet the same seeds in
// it, so that differences and ratios are taken seed by seed and what seeds have in common drops
// out.
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/stats.h"
#include "result/metric.h"

enum { COMPARISON_SEEDS = 1000, COMPARISON_FIELDS = 8, COMPARISON_EQUALS = 2 };

typedef enum CurveId {
#define X(id, ...) CURVE_##id,
#include "result/curve.def"
#undef X
    CURVES
} CurveId;

typedef struct Curve {
    const double *x, *y;  // [n]; x NULL: y are samples of a distribution
    uint32_t      n;
} Curve;

typedef struct ComparisonEntry {  // one policy in one cell
    const char   *policy;         // unique in the cell; of a variant "maifs attention=false"
    const char   *paper;          // that the policy follows; NULL: none
    const char   *part_of;        // policy of which it is a part or variant; NULL: none
    const char   *knows;          // of durations: blind, predicted, oracle; NULL: not applicable
    uint32_t      rank;           // more with more knowledge of durations or of the future
    const char   *missing;        // reason why it has no runs in the cell; NULL: it has
    const double *values;         // [seeds][METRICS]; NaN: not known
    const char   *worst_tenant;   // tenant with the lowest share in time; NULL: not known
    double        worst_sla;
    Curve         curves[CURVES];  // for pages; n 0: none
} ComparisonEntry;

typedef enum CellFieldKind { FIELD_TEXT, FIELD_INT, FIELD_REAL } CellFieldKind;

typedef struct CellField {  // one of the conditions
    const char   *key;      // JSON member and CSV column
    const char   *within;   // JSON object that holds the member; NULL: the cell's own
    CellFieldKind kind;
    const char   *text;
    double        number;
    const char   *axis;  // label of charts over it; NULL: it is no axis
} CellField;

typedef struct EqualLoad {  // a rate that is the same for all policies
    double   share, rate;   // share of the subject's highest; rate NaN: was not run
    MetricId latency, hit_rate;
} EqualLoad;

typedef struct ComparisonCell {
    const char            *title;  // of tables
    const char            *group;  // its conditions without those that are axes
    const char            *about;  // one sentence; NULL: none
    CellField              fields[COMPARISON_FIELDS];
    uint32_t               n_fields;
    EqualLoad              equal[COMPARISON_EQUALS];
    const ComparisonEntry *entries;  // the same policies in every cell, in one order
    uint32_t               n_entries;
} ComparisonCell;

typedef struct SweepPoint {  // the subject's network with another size, at another period
    uint32_t hidden;
    double   period_us;
    Mean     sla, share, decision_us;
} SweepPoint;

typedef struct Comparison {
    Tier                  tier;
    const char           *subject;       // policy that the others are compared with
    const char           *subject_role;  // what tables call it
    const char           *machine;       // NULL: cells differ in it
    const char           *about;         // how it was run; may be NULL
    uint32_t              fair_rank;     // highest rank of a fair baseline
    uint32_t              seeds, requests;
    uint64_t              first_seed;
    bool                  timed;  // decisions were
    const ComparisonCell *cells;  // the same fields in every cell
    uint32_t              n_cells;
    const SweepPoint     *sweep;  // by size, then by period
    uint32_t              n_sweep;
    const char           *sweep_about;
} Comparison;

// Over the seeds. A delta against a policy that is not in the cell is not a number.
Mean comparison_mean(const Comparison *c, const ComparisonCell *cell, const ComparisonEntry *e,
                     MetricId id);
// Seed by seed `e` less, or over, `than`.
Mean comparison_difference(const Comparison *c, const ComparisonEntry *e,
                           const ComparisonEntry *than, MetricId id);
Mean comparison_ratio(const Comparison *c, const ComparisonEntry *e, const ComparisonEntry *than,
                      MetricId id);

// All return NULL when there is none; entries that are missing do not count.
const ComparisonEntry *comparison_find(const ComparisonCell *cell, const char *policy);
const ComparisonEntry *comparison_subject(const Comparison *c, const ComparisonCell *cell);
// Best by the metric, without the subject and its parts: comparison_baseline of the ranks up to
// fair_rank, comparison_bound of those above.
const ComparisonEntry *comparison_baseline(const Comparison *c, const ComparisonCell *cell,
                                           MetricId id);
const ComparisonEntry *comparison_bound(const Comparison *c, const ComparisonCell *cell,
                                        MetricId id);
const ComparisonEntry *comparison_part(const Comparison *c, const ComparisonCell *cell);

typedef struct CellFilter {  // some of the cells
    const char *group;       // NULL: of all groups
    const char *key;         // of a field that has to be `value`; NULL: none has to
    double      value;
} CellFilter;

// Over several cells: a seed counts with its mean over the cells.
Mean comparison_over(const Comparison *c, const CellFilter *where, const char *policy, MetricId id);

double comparison_field(const ComparisonCell *cell, const char *key);  // NaN: no such number
