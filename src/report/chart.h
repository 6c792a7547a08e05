// Chart: numbers to be drawn, and the Chart.js configuration that draws them.
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
    CHART_DISTRIBUTION,  // of the samples y: which share of them is at most x
} ChartKind;

typedef struct ChartSeries {
    const char   *name;
    const double *x;     // [n] of lines and points
    const double *y;     // [n]; what is not a number leaves a gap
    const double *half;  // [n] y +- half is marked; NULL: nothing is
    uint32_t      n;
    bool          hidden;  // until somebody clicks on its name
} ChartSeries;

typedef struct Chart {
    ChartKind          kind;
    const char        *title;              // what is shown, a sentence
    const char        *x_label, *y_label;  // with their units
    const char *const *groups;             // [n of each series] of bars
    const ChartSeries *series;
    uint32_t           n_series;
    bool               log_x, log_y;
    double             most;    // that y can be, whatever intervals say; 0: anything
    const char *bold, *dashed;  // names of lines, or of a group, that stand out; NULL: none does
} Chart;

MUST_USE Err chart_json(const Chart *c, Arena *scratch, json_t **out);  // *out is the caller's
json_t      *chart_number(double v);                                    // null: not a finite number
