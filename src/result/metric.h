// Metric: a figure that policies are compared by: its names, format, direction and tiers.
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef enum Tier { TIER_NODE, TIER_CHIP, TIER_CLUSTER, TIERS } Tier;

typedef enum MetricId {
#define METRIC(id, ...) METRIC_##id,
#define DELTA(id, ...)  METRIC_##id,
#include "result/metric.def"
    METRICS
} MetricId;

typedef enum MetricBetter { METRIC_HIGHER, METRIC_LOWER, METRIC_NEITHER } MetricBetter;

typedef enum MetricFlags {
    METRIC_HEADLINE = 1,  // policies are ranked by it
    METRIC_CHART = 2,     // bars for every cell of a page
    METRIC_SEEDS = 4,     // JSON also lists it seed by seed
    METRIC_COUNT = 8,     // a whole number
    METRIC_TIMED = 16,    // JSON has it only if decisions were timed
    METRIC_NESTED = 32,   // no JSON member of its own: the tier's document has it elsewhere
    METRIC_AGAINST = 64,  // the page draws the headline metric against it, a point for each policy
} MetricFlags;

typedef enum MetricDelta {
    METRIC_VALUE,       // measured in every run, no delta
    METRIC_DIFFERENCE,  // less the other's, seed by seed
    METRIC_SHORTFALL,   // the difference with its sign turned
    METRIC_RATIO,       // over the other's, seed by seed
    METRIC_CHANGE,      // ratio of the means, less 1; has no interval
} MetricDelta;

typedef enum MetricVersus {
    METRIC_SUBJECT,   // the policy that the comparison is about
    METRIC_BASELINE,  // best policy of the cell that knows no more than is fair
    METRIC_BOUND,     // best policy of the cell that knows more
} MetricVersus;

typedef struct Metric {
    const char  *key, *ends, *half, *head;
    const char  *unit;  // NULL: none
    double       scale;
    int          decimals;
    MetricBetter better;
    unsigned     flags;
    const char  *about;
    const char  *from[TIERS];  // source text of the value; "NONE"
    MetricDelta  delta;
    MetricId     of;  // itself unless a delta
    MetricVersus versus;
} Metric;

extern const Metric metrics[METRICS];

bool     metric_has(Tier t, MetricId id);
MetricId metric_delta_of(MetricId id);         // its DIFFERENCE or RATIO; METRICS: none
MetricId metric_headline(Tier t, uint32_t i);  // METRICS after the last
