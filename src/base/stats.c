#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

static int by_value(const void *pa, const void *pb) {
    double a = *(const double *)pa, b = *(const double *)pb;
    if (isnan(a) || isnan(b)) return isnan(a) - isnan(b);
    return (a > b) - (a < b);
}

Err stats_sort(Arena *a, const double *x, size_t n, double **sorted) {
    double *copy = arena_try_new(a, double, n);
    if (copy == NULL) return err_set(ERR_LIMIT, "no memory to sort %zu numbers", n);
    if (n > 0) {
        memcpy(copy, x, n * sizeof *x);
        qsort(copy, n, sizeof *copy, by_value);
    }
    *sorted = copy;
    return ERR_OK;
}

double stats_percentile(const double *sorted, size_t n, double p) {
    CHECK(n > 0);
    double rank =
        ceil(p * (double)n / 100 - 1e-9);  // 99.9 % of 1000 is 999, whatever 99.9 is in binary
    if (!(rank >= 1)) return sorted[0];
    return sorted[rank < (double)n ? (size_t)rank - 1 : n - 1];
}

// Continued fraction of the incomplete beta function by Lentz's method.
static double beta_fraction(double x, double a, double b) {
    double c = 1, d = 1 / (1 - (a + b) * x / (a + 1)), f = d;
    for (int i = 1; i < 10000; i++) {
        double m = i;
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / (1 + even * d);
        c = 1 + even / c;
        f *= c * d;
        d = 1 / (1 + odd * d);
        c = 1 + odd / c;
        f *= c * d;
        if (fabs(c * d - 1) < 1e-15) break;
    }
    return f;
}

// Regularised incomplete beta function; y is 1 - x, passed separately to keep its precision.
static double beta_part(double x, double y, double a, double b) {
    if (x <= 0) return 0;
    if (y <= 0) return 1;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(y));
    if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(x, a, b) / a;
    return 1 - front * beta_fraction(y, b, a) / b;
}

static double t_upper_tail(double t, double freedom) {  // P(T > t) for t >= 0
    double s = freedom + t * t;
    return beta_part(freedom / s, t * t / s, freedom / 2, 0.5) / 2;
}

double stats_t_quantile(double p, double freedom) {
    CHECK(p > 0 && p < 1 && freedom > 0);
    if (p == 0.5) return 0;
    double tail = p > 0.5 ? 1 - p : p, low = 0, high = 1;
    while (high < 1e300 && t_upper_tail(high, freedom) > tail) high *= 2;
    for (int i = 0; i < 200 && high - low > 1e-15 * high; i++) {
        double middle = low + (high - low) / 2;
        *(t_upper_tail(middle, freedom) > tail ? &low : &high) = middle;
    }
    return p > 0.5 ? high : -high;
}

Mean stats_mean(const double *x, size_t n) {
    double mean = 0, squares = 0;  // Welford's method avoids cancellation
    for (size_t i = 0; i < n; i++) {
        double before = x[i] - mean;
        mean += before / (double)(i + 1);
        squares += before * (x[i] - mean);
    }
    if (n < 2) return (Mean){n == 0 ? NAN : mean, n == 0 ? NAN : 0, INFINITY, n};
    double sd = sqrt(squares / (double)(n - 1));
    double half = stats_t_quantile(0.975, (double)(n - 1)) * sd / sqrt((double)n);
    return (Mean){mean, sd, half, n};
}
