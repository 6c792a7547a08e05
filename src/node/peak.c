#include "node/peak.h"

#include <math.h>
#include <string.h>

#include "base/err.h"

// Factor above the bracket of the extra trial that checks whether the upper end failed by chance.
#define BEYOND 1.12

void peak_begin(Peak *p, const PeakRule *rule) {
    CHECK(rule->start > 0 && rule->least > 0 && rule->most >= rule->least);
    CHECK(rule->trials > 0 && rule->trials <= PEAK_TRIALS && rule->tolerance > 0);
    *p = (Peak){.rule = *rule};
}

static double within(const Peak *p, double rate) {
    return fmin(fmax(rate, p->rule.least), p->rule.most);
}

bool peak_next(const Peak *p, double *rate) {
    const PeakRule *r = &p->rule;
    if (p->n == r->trials) return false;
    if (p->n == 0)
        *rate = within(p, r->start);
    else if (p->high == 0)
        *rate = within(p, p->low * 2);
    else if (p->low == 0)
        *rate = within(p, p->high / 2);
    else if (p->high > p->low * (1 + r->tolerance))
        *rate = sqrt(p->low * p->high);
    else if (!p->checked)
        *rate = within(p, p->high * BEYOND);
    else
        return false;
    // At the limits of the search there is nothing left to try.
    return p->n == 0 || !(*rate == p->low || *rate == p->high);
}

void peak_tell(Peak *p, double rate, double hit_rate) {
    CHECK(p->n < PEAK_TRIALS);
    bool narrow = p->low > 0 && p->high > 0 && p->high <= p->low * (1 + p->rule.tolerance);
    p->trials[p->n++] = (PeakTrial){rate, hit_rate};
    bool met = hit_rate >= p->rule.target;
    if (narrow) {
        p->checked = true;
        if (met) {
            p->low = rate;
            p->high = 0;
        }
    } else if (met) {
        p->low = rate;
    } else {
        p->high = rate;
    }
}

static uint32_t sorted(const Peak *p, PeakTrial *out) {
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t k = i;
        for (; k > 0 && out[k - 1].rate > p->trials[i].rate; k--) out[k] = out[k - 1];
        out[k] = p->trials[i];
    }
    return p->n;
}

// Isotonic regression (pool adjacent violators): the falling curve with the least squared error.
static void make_fall(PeakTrial *t, uint32_t n) {
    double   sums[PEAK_TRIALS];
    uint32_t sizes[PEAK_TRIALS], pools = 0;
    for (uint32_t i = 0; i < n; i++) {
        sums[pools] = t[i].hit_rate;
        sizes[pools++] = 1;
        while (pools > 1 &&
               sums[pools - 2] * sizes[pools - 1] < sums[pools - 1] * sizes[pools - 2]) {
            pools--;
            sums[pools - 1] += sums[pools];
            sizes[pools - 1] += sizes[pools];
        }
    }
    for (uint32_t k = 0, i = 0; k < pools; k++)
        for (uint32_t j = 0; j < sizes[k]; j++) t[i++].hit_rate = sums[k] / sizes[k];
}

double peak_rate(const Peak *p) {
    PeakTrial t[PEAK_TRIALS];
    uint32_t  n = sorted(p, t), over = 0;
    make_fall(t, n);
    while (over < n && t[over].hit_rate >= p->rule.target) over++;
    if (over == 0) return 0;
    PeakTrial a = t[over - 1];
    if (over == n) return a.rate;
    double part = (a.hit_rate - p->rule.target) / (a.hit_rate - t[over].hit_rate);
    return a.rate * pow(t[over].rate / a.rate, part);
}

Err peak_find(PeakRun run, const PeakRule *rule, uint64_t seed, double *rate) {
    Peak   p;
    double next = 0, hit = 0;
    peak_begin(&p, rule);
    while (peak_next(&p, &next)) {
        TRY(run.run(run.self, next, seed, &hit));
        peak_tell(&p, next, hit);
    }
    *rate = peak_rate(&p);
    return ERR_OK;
}
