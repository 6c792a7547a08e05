#include "sim/arrivals.h"

#include <math.h>

static Err check(double rate, const double *share, uint32_t n_tenants, double *sum) {
    *sum = 0;
    if (!(rate > 0) || !isfinite(rate))
        return err_set(ERR_ARG, "rate of %g requests per second; it must be above 0", rate);
    for (uint32_t i = 0; i < n_tenants; i++) {
        if (!(share[i] >= 0) || !isfinite(share[i]))
            return err_set(ERR_ARG, "tenant %u has a share of %g; it must be 0 or more", i,
                           share[i]);
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

// State of the on-off process.
typedef struct OnOff {
    Rng    rng;
    double on_ns, off_ns;  // means
    double left;           // time until the burst ends
} OnOff;

// Converts `ns` of on time to elapsed time, with the off times in between.
static double elapsed_ns(OnOff *s, double ns) {
    double elapsed = 0;
    while (ns > s->left) {
        ns -= s->left;
        elapsed += s->left + rng_exp(&s->rng) * s->off_ns;
        s->left = rng_exp(&s->rng) * s->on_ns;
    }
    s->left -= ns;
    return elapsed + ns;
}

static Err fill(Arena *a, Rng rng, double rate, Bursts b, const double *share, uint32_t n_tenants,
                uint32_t n, Arrivals *out) {
    double sum, ns = 0, dense = rate * b.factor;
    TRY(check(rate, share, n_tenants, &sum));
    if ((double)n * 1e9 / rate > 1e17)
        return err_set(ERR_LIMIT, "%u requests at %g per second take too long; raise the rate", n,
                       rate);
    Arrival *at = arena_try_new(a, Arrival, n);
    if (at == NULL) return err_set(ERR_LIMIT, "no memory for %u arrivals", n);
    // Separate random streams for gaps and tenants: another mix has the same arrival times.
    Rng   gaps = rng_fork(rng, 1), tenants = rng_fork(rng, 2);
    OnOff s = {.rng = rng_fork(rng, 3), .on_ns = b.length * 1e9 / dense};
    s.off_ns = s.on_ns * (b.factor - 1);
    if (b.factor > 1) s.left = rng_exp(&s.rng) * s.on_ns;
    for (uint32_t i = 0; i < n; i++) {
        double gap = rng_exp(&gaps) * 1e9 / dense;
        ns += b.factor > 1 ? elapsed_ns(&s, gap) : gap;
        at[i] = (Arrival){(TimeNs)ns, draw(&tenants, share, n_tenants, sum)};
    }
    *out = (Arrivals){at, n};
    return ERR_OK;
}

Err arrivals_poisson(Arena *a, Rng rng, double rate, const double *share, uint32_t n_tenants,
                     uint32_t n, Arrivals *out) {
    return fill(a, rng, rate, (Bursts){1, 1}, share, n_tenants, n, out);
}

Err arrivals_bursty(Arena *a, Rng rng, double rate, Bursts bursts, const double *share,
                    uint32_t n_tenants, uint32_t n, Arrivals *out) {
    if (!(bursts.factor > 1 && bursts.factor <= 1e6))
        return err_set(ERR_ARG, "burst factor of %g; it must be above 1", bursts.factor);
    if (!(bursts.length >= 1 && bursts.length <= 1e9))
        return err_set(ERR_ARG, "bursts of %g requests; the mean must be 1 or more", bursts.length);
    return fill(a, rng, rate, bursts, share, n_tenants, n, out);
}
