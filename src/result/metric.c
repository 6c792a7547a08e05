#include "result/metric.h"

#include <stddef.h>
#include <string.h>

#define NUMBER(decimals)  NULL, 1, decimals
#define PERCENT(decimals) "%", 0.01, decimals
#define POINTS(decimals)  "pts", 0.01, decimals
#define SECONDS(decimals) "s", 1, decimals
#define MS(decimals)      "ms", 1, decimals
#define US(decimals)      "us", 1, decimals
#define MJ(decimals)      "mJ", 1, decimals

enum {
    HEADLINE = METRIC_HEADLINE,
    CHART = METRIC_CHART,
    SEEDS = METRIC_SEEDS,
    COUNT = METRIC_COUNT,
    TIMED = METRIC_TIMED,
    NESTED = METRIC_NESTED,
    AGAINST = METRIC_AGAINST,
};

const Metric metrics[METRICS] = {
#define METRIC(id, key, ends, half, head, format, better, flags, about, node, chip, cluster)       \
    {key,          ends,        half,                                                              \
     head,         format,      METRIC_##better,                                                   \
     flags,        about,       {#node, #chip, #cluster},                                          \
     METRIC_VALUE, METRIC_##id, METRIC_SUBJECT},
#define DELTA(id, key, ends, half, head, format, flags, about, of, how, versus)                    \
    {key,   ends,  half,         head,         format,      METRIC_NEITHER,                        \
     flags, about, {"", "", ""}, METRIC_##how, METRIC_##of, METRIC_##versus},
#include "result/metric.def"
};

bool metric_has(Tier t, MetricId id) {
    return strcmp(metrics[metrics[id].of].from[t], "NONE") != 0;
}

MetricId metric_delta_of(MetricId id) {
    for (MetricId d = 0; d < METRICS; d++)
        if (metrics[d].of == id &&
            (metrics[d].delta == METRIC_DIFFERENCE || metrics[d].delta == METRIC_RATIO))
            return d;
    return METRICS;
}

MetricId metric_headline(Tier t, uint32_t i) {
    for (MetricId id = 0; id < METRICS; id++)
        if (metric_has(t, id) && (metrics[id].flags & METRIC_HEADLINE) != 0 && i-- == 0) return id;
    return METRICS;
}
