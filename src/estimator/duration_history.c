#include "estimator/duration_history.h"

#include <math.h>

static const double longest_s = 1e8;

typedef struct DurationCurve {
    double deaths[DURATION_BINS], censored[DURATION_BINS];
} DurationCurve;

static double width(void) { return log(longest_s) / DURATION_BINS; }

// Place of a duration on the axis of bins; its whole part is the bin.
static double place(double s) {
    double x = s > 1 ? log(s) / width() : 0;
    return fmin(x, DURATION_BINS - 1e-6);
}

Err duration_history_init(DurationHistory *h, const DurationParams *p, Arena *a) {
    *h = (DurationHistory){.params = *p,
                           .ended = arena_try_new(a, DurationRecord, DURATION_RECORDS),
                           .decay = arena_try_new(a, double, DURATION_RECORDS)};
    if (h->ended == NULL || h->decay == NULL)
        return err_set(ERR_LIMIT, "no memory for the history of durations");
    for (uint32_t i = 0; i < DURATION_RECORDS; i++) h->decay[i] = exp(-(double)i / p->memory_jobs);
    return ERR_OK;
}

DurationRecord duration_record(const JobTraits *t, double work_s) {
    return (DurationRecord){*t, work_s, (uint32_t)place(work_s)};
}

void duration_history_end(DurationHistory *h, const JobTraits *t, double work_s) {
    h->ended[h->total++ % DURATION_RECORDS] = duration_record(t, work_s);
}

const DurationRecord *duration_history_at(const DurationHistory *h, uint64_t age) {
    if (age >= h->total || age >= DURATION_RECORDS) return NULL;
    return &h->ended[(h->total - 1 - age) % DURATION_RECORDS];
}

static double alike(const DurationParams *p, const JobTraits *a, const JobTraits *b) {
    double w = 1;
    if (a->tenant != b->tenant) w *= p->other_tenant;
    if (a->name != b->name) w *= p->other_name;
    if (a->gpus != b->gpus) w *= p->other_gpus;
    return w;
}

static void add_prior(const DurationParams *p, DurationCurve *c) {
    double middle = log(p->prior_median_s), sum = 0, mass[DURATION_BINS];
    for (uint32_t b = 0; b < DURATION_BINS; b++) {
        double z = ((b + 0.5) * width() - middle) / p->prior_sigma;
        sum += mass[b] = exp(-z * z / 2);
    }
    for (uint32_t b = 0; b < DURATION_BINS; b++) c->deaths[b] += p->prior_weight * mass[b] / sum;
}

static void add_records(const DurationHistory *h, const JobTraits *t, DurationCurve *c) {
    const DurationParams *p = &h->params;
    const DurationRecord *r;
    double                of_tenant = 0;
    for (uint64_t age = 0; (r = duration_history_at(h, age)) != NULL; age++) {
        double w = alike(p, t, &r->traits) * h->decay[age];
        if (r->traits.tenant == t->tenant) w *= 1 + p->recent * exp(-of_tenant++ / p->recent_jobs);
        c->deaths[r->bin] += w;
    }
}

static void add_running(const DurationParams *p, const DurationQuery *q, DurationCurve *c) {
    for (uint32_t i = 0; i < q->n_running; i++)
        if (i != q->self)
            c->censored[q->running[i].bin] += alike(p, &q->traits, &q->running[i].traits);
}

// Probability that the job ends in each bin, given that it has not by done_s.
static void to_mass(const DurationCurve *c, double done, double *mass) {
    uint32_t from = (uint32_t)done;
    double   at_risk = 0, alive = 1, sum = 0;
    for (uint32_t b = 0; b < DURATION_BINS; b++) {
        at_risk += c->deaths[b] + c->censored[b];
        mass[b] = 0;
    }
    for (uint32_t b = 0; b < DURATION_BINS; b++) {
        double risk = at_risk - c->censored[b] / 2;
        double hazard = risk > 1e-12 ? fmin(c->deaths[b] / risk, 1) : 1;
        if (b == from) hazard *= 1 - (done - from);
        if (b >= from) {
            sum += mass[b] = alive * hazard;
            alive *= 1 - hazard;
        }
        at_risk -= c->deaths[b] + c->censored[b];
    }
    if (!(sum > 1e-12)) mass[from] = 1;
}

// A user's estimate is log-normal around all the work; the best bin keeps its mass.
static void weigh_told(const DurationQuery *q, double *mass) {
    double least = INFINITY, z[DURATION_BINS];
    for (uint32_t b = 0; b < DURATION_BINS; b++) {
        z[b] = ((b + 0.5) * width() - log(fmax(q->told_s, 1))) / q->told_sd;
        if (mass[b] > 0) least = fmin(least, z[b] * z[b]);
    }
    for (uint32_t b = 0; b < DURATION_BINS; b++)
        if (mass[b] > 0) mass[b] *= exp((least - z[b] * z[b]) / 2);
}

static void normalise(double *mass) {
    double sum = 0;
    for (uint32_t b = 0; b < DURATION_BINS; b++) sum += mass[b];
    for (uint32_t b = 0; b < DURATION_BINS; b++) mass[b] /= sum;
}

static double left_in(uint32_t bin, double done, double done_s, double part) {
    double lo = fmax(bin, done), hi = bin + 1.0;
    return fmax(exp((lo + part * (hi - lo)) * width()) - done_s, 1);
}

static double quantile(const double *mass, double done, double done_s, double q) {
    double sum = 0;
    for (uint32_t b = 0; b < DURATION_BINS; b++) {
        if (mass[b] > 0 && sum + mass[b] >= q) return left_in(b, done, done_s, (q - sum) / mass[b]);
        sum += mass[b];
    }
    return left_in(DURATION_BINS - 1, done, done_s, 1);
}

// Largest ratio of the probability to end within a horizon to the expected work spent in it.
double duration_index(uint32_t n, const double *mass, const double *middle_s, const double *end_s) {
    double ended = 0, spent = 0, best = 0;
    for (uint32_t b = 0; b < n; b++) {
        if (!(mass[b] > 0)) continue;
        ended += mass[b];
        spent += mass[b] * middle_s[b];
        best = fmax(best, ended / (spent + (1 - ended) * end_s[b]));
    }
    return best;
}

DurationEstimate duration_history_left(const DurationHistory *h, const DurationQuery *q) {
    DurationCurve c = {{0}, {0}};
    double        mass[DURATION_BINS], middle[DURATION_BINS] = {0}, end[DURATION_BINS] = {0};
    double        mean = 0, square = 0, sum = 0, done = place(q->done_s);
    add_prior(&h->params, &c);
    add_records(h, &q->traits, &c);
    add_running(&h->params, q, &c);
    to_mass(&c, done, mass);
    if (q->told_sd > 0) weigh_told(q, mass);
    normalise(mass);
    for (uint32_t b = 0; b < DURATION_BINS; b++) {
        if (!(mass[b] > 0)) continue;
        middle[b] = left_in(b, done, q->done_s, 0.5);
        end[b] = left_in(b, done, q->done_s, 1);
        double x = log(middle[b]);
        sum += mass[b] * middle[b];
        mean += mass[b] * x;
        square += mass[b] * x * x;
    }
    return (DurationEstimate){.left_s = exp(mean),
                              .mean_s = sum,
                              .index = duration_index(DURATION_BINS, mass, middle, end),
                              .log_sd = sqrt(fmax(square - mean * mean, 0)),
                              .low_s = quantile(mass, done, q->done_s, 0.05),
                              .high_s = quantile(mass, done, q->done_s, 0.95)};
}
