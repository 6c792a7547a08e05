// Stats: exact percentiles, and means that say how sure they are.
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"

// A sorted copy of x[n] for stats_percentile; what is not a number sorts last.
MUST_USE Err stats_sort(Arena *a, const double *x, size_t n, double **sorted);

// Nearest rank: the smallest value that at least p percent are not above, so it did occur. n > 0.
double stats_percentile(const double *sorted, size_t n, double p);

typedef struct Mean {
    double mean;  // not a number when n is 0
    double sd;    // of the sample, n - 1 in the divisor; 0 when n is 1
    double half;  // the 95 % confidence interval is mean +- half; infinite when n is 1
    size_t n;
} Mean;

Mean   stats_mean(const double *x, size_t n);
double stats_t_quantile(double p, double freedom);  // Student's t; 0 < p < 1, freedom > 0
