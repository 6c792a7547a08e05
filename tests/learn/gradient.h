// Gradient: what backward says against what a small change does to a loss.
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
#include "learn/block.h"

typedef double GradientLoss(void *ctx);

static inline void gradient_fill(Rng *rng, float *x, size_t n, float scale) {
    for (size_t i = 0; i < n; i++) x[i] = scale * (2 * rng_unit(rng) - 1);
}

static inline double gradient_difference(GradientLoss *loss, void *ctx, float *x, float step) {
    float was = *x;
    *x = was + step;
    double up = loss(ctx), over = (double)*x;
    *x = was - step;
    double down = loss(ctx), under = (double)*x;
    *x = was;
    return (up - down) / (over - under);
}

// Compares dx [n] with differences of the loss around x, at up to `most` places drawn by rng. Where
// a step goes over an edge of a relu, a smaller one may not.
static inline void gradient_check(const char *what, GradientLoss *loss, void *ctx, float *x,
                                  const float *dx, size_t n, size_t most, Rng *rng) {
    static const float steps[] = {4e-3f, 1e-3f, 3e-4f};
    for (size_t k = 0; k < (n < most ? n : most); k++) {
        size_t i = n <= most ? k : (size_t)rng_below(rng, n);
        double wants = 0, has = (double)dx[i];
        bool   fits = false;
        for (uint32_t s = 0; s < 3 && !fits; s++) {
            wants = gradient_difference(loss, ctx, &x[i], steps[s]);
            fits = fabs(wants - has) < 1e-3 + 1e-2 * fabs(wants);
        }
        if (!fits) fail_msg("%s[%zu]: backward says %g, differences say %g", what, i, has, wants);
    }
}
