#include "sim/arrivals.h"

#include <math.h>

static Err check(double rate, const double *share, uint32_t n_tenants, double *sum) {
    *sum = 0;
    if (!(rate > 0) || !isfinite(rate))
        return err_set(ERR_ARG, "a rate of %g requests a second; give one above 0", rate);
    for (uint32_t i = 0; i < n_tenants; i++) {
        if (!(share[i] >= 0) || !isfinite(share[i]))
            return err_set(ERR_ARG, "tenant %u has a share of %g; give 0 or more", i, share[i]);
        *sum += share[i];
    }
    if (!(*sum > 0)) return err_set(ERR_ARG, "no tenant has a share of the requests");
    return ERR_OK;
}

static uint32_t draw(Rng *rng, const double *share, uint32_t n, double sum) {
    double   x = rng_unit64(rng) * sum;
    uint32_t last = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (share[i] <= 0) continue;
        last = i;
        if (x < share[i]) return i;
        x -= share[i];
    }
    return last;
}

Err arrivals_poisson(Arena *a, Rng rng, double rate, const double *share, uint32_t n_tenants,
                     uint32_t n, Arrivals *out) {
    double sum, ns = 0;
    TRY(check(rate, share, n_tenants, &sum));
    if ((double)n * 1e9 / rate > 1e17)
        return err_set(ERR_LIMIT, "%u requests at %g a second take too long; raise the rate", n,
                       rate);
    Arrival *at = arena_try_new(a, Arrival, n);
    if (at == NULL) return err_set(ERR_LIMIT, "no memory for %u arrivals", n);
    // Gaps and tenants are streams of their own: another mix meets the same rhythm.
    Rng gaps = rng_fork(rng, 1), who = rng_fork(rng, 2);
    for (uint32_t i = 0; i < n; i++) {
        ns += rng_exp(&gaps) * 1e9 / rate;
        at[i] = (Arrival){(TimeNs)ns, draw(&who, share, n_tenants, sum)};
    }
    *out = (Arrivals){at, n};
    return ERR_OK;
}
