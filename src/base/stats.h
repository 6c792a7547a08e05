// Stats: exact percentiles, and means with confidence intervals.
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"

// A sorted copy of x[n] for stats_percentile; NaN sorts last.
MUST_USE Err stats_sort(Arena *a, const double *x, size_t n, double **sorted);

// Nearest-rank percentile: the smallest value with at least p percent of the values <= it. n > 0.
double stats_percentile(const double *sorted, size_t n, double p);

typedef struct Mean {
    double mean;  // NaN if n is 0
    double sd;    // sample standard deviation (n - 1); 0 if n is 1
    double half;  // the 95 % confidence interval is mean +- half; infinite if n is 1
    size_t n;
} Mean;

Mean   stats_mean(const double *x, size_t n);
double stats_t_quantile(double p, double freedom);  // Student's t; 0 < p < 1, freedom > 0
