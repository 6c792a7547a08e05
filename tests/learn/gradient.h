// Gradient check: backward against finite differences of a loss.
#pragma once

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "learn/float_vec.h"

typedef double GradientLoss(void *ctx);

static inline void gradient_fill(Rng *rng, float *x, size_t n, float scale) {
    for (size_t i = 0; i < n; i++) x[i] = scale * (2 * rng_unit(rng) - 1);
}

static inline bool gradient_near(double wants, double has) {
    return fabs(wants - has) < 1e-3 + 1e-2 * fabs(wants);
}

// Whether dx matches the central difference, or a one-sided one, as the other side may have the
// kink of a relu.
static inline bool gradient_fits(GradientLoss *loss, void *ctx, float *x, float dx, float step,
                                 double *wants) {
    float  was = *x;
    double here = loss(ctx), at = (double)was, has = (double)dx;
    *x = was + step;
    double up = loss(ctx), over = (double)*x;
    *x = was - step;
    double down = loss(ctx), under = (double)*x;
    *x = was;
    *wants = (up - down) / (over - under);
    return gradient_near(*wants, has) || gradient_near((up - here) / (over - at), has) ||
           gradient_near((here - down) / (at - under), has);
}

// Compares dx [n] with differences of the loss around x, at up to `most` random positions.
static inline void gradient_check(const char *what, GradientLoss *loss, void *ctx, float *x,
                                  const float *dx, size_t n, size_t most, Rng *rng) {
    for (size_t k = 0; k < (n < most ? n : most); k++) {
        size_t i = n <= most ? k : (size_t)rng_below(rng, n);
        double wants = 0;
        if (!gradient_fits(loss, ctx, &x[i], dx[i], 4e-3f, &wants) &&
            !gradient_fits(loss, ctx, &x[i], dx[i], 1e-3f, &wants) &&
            !gradient_fits(loss, ctx, &x[i], dx[i], 2e-4f, &wants))
            fail_msg("%s[%zu]: backward says %g, differences say %g", what, i, (double)dx[i],
                     wants);
    }
}
