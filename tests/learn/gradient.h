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

// Compares dx [n] with differences of the loss around x, at up to `most` places drawn by rng. A
// difference over 2 step of floats is itself only so exact.
static inline void gradient_check(const char *what, GradientLoss *loss, void *ctx, float *x,
                                  const float *dx, size_t n, size_t most, Rng *rng) {
    const float step = 4e-3f;
    for (size_t k = 0; k < (n < most ? n : most); k++) {
        size_t i = n <= most ? k : (size_t)rng_below(rng, n);
        float  was = x[i];
        x[i] = was + step;
        double up = loss(ctx), over = (double)x[i];
        x[i] = was - step;
        double down = loss(ctx), under = (double)x[i];
        x[i] = was;
        double wants = (up - down) / (over - under), has = (double)dx[i];
        if (fabs(wants - has) > 2e-3 + 1e-2 * fabs(wants))
            fail_msg("%s[%zu]: backward says %g, differences say %g", what, i, has, wants);
    }
}
