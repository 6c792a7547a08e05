// Chart: series of numbers, and the Chart.js configuration that draws them.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

typedef enum ChartKind {
    CHART_LINE,          // y over x, in the order given
    CHART_BAR,           // y of group i
    CHART_SCATTER,       // points
    CHART_DISTRIBUTION,  // empirical distribution function of the samples y
} ChartKind;

typedef struct ChartSeries {
    const char   *name;
    const double *x;     // [n] of lines and points
    const double *y;     // [n]; NaN leaves a gap
    const double *half;  // [n] error bars of y +- half; NULL: none
    uint32_t      n;
    bool          hidden;  // until the reader clicks on its name
} ChartSeries;

typedef struct Chart {
    ChartKind          kind;
    const char        *title;              // a sentence
    const char        *x_label, *y_label;  // with their units
    const char *const *groups;             // [n of each series] of bars
    const ChartSeries *series;
    uint32_t           n_series;
    bool               log_x, log_y;
    double             most;           // upper limit of y; 0: none
    const char        *bold, *dashed;  // series or group to highlight; NULL: none
} Chart;

MUST_USE Err chart_json(const Chart *c, Arena *scratch, json_t **out);  // *out is the caller's
json_t      *chart_number(double v);                                    // null: not a finite number
