#include "bench/ort/measurement.h"

#include <math.h>

#include "base/tensor.h"
#include "base/stats.h"

enum { BURST_NS = 50000000, RUNS_MAX = 1 << 20 };

typedef struct Times {
    double  *ms;  // [RUNS_MAX]
    uint32_t n;
    double   spent_ms;
} Times;

static Err compare(const Tensor *x, const Tensor *y, Measurement *d) {
    if (x->dtype != y->dtype || !tensor_same_shape(x, y))
        return err_set(ERR_INVALID, "the outputs differ in type or shape");
    double most = 0, off = 0, xx = 0, yy = 0, xy = 0;
    for (int64_t i = 0; i < tensor_count(x); i++) {
        double a = tensor_get_f64(x, i), b = tensor_get_f64(y, i);
        if (isnan(a) || isnan(b)) return err_set(ERR_INVALID, "an output is not a number");
        most = fmax(most, fabs(b));
        off = fmax(off, fabs(a - b));
        xx += a * a;
        yy += b * b;
        xy += a * b;
    }
    if (off > 0) d->off = fmax(d->off, off / most);
    if (xx > 0 || yy > 0) d->cosine = fmin(d->cosine, xy / sqrt(xx * yy));
    return ERR_OK;
}

static Err agree(const Answer *ours, const Answer *ort, const MeasurementParams *params,
                 Measurement *d) {
    d->cosine = 1;
    d->quantised = ours->quantised;
    for (uint32_t i = 0; i < ours->n; i++) TRY(compare(&ours->outputs[i], &ort->outputs[i], d));
    d->agrees = d->quantised ? d->cosine >= MEASUREMENT_COSINE : d->off <= params->tolerance;
    return ERR_OK;
}

static bool enough(const Times *t, const MeasurementParams *params) {
    bool full = t->n == RUNS_MAX;
    return full || (t->n >= MEASUREMENT_LEAST_RUNS && t->spent_ms >= params->seconds * 1e3);
}

static Err burst(Worker *w, Times *t, Arena *a) {
    double   each_ns = t->n > 0 ? t->spent_ms / t->n * 1e6 : BURST_NS;
    uint32_t n =
        (uint32_t)fmin(fmax(BURST_NS / each_ns, 1), fmin(RUNS_MAX - t->n, WORKER_BURST_MAX));
    size_t  mark = a->used;
    TimeNs *took = arena_new(a, TimeNs, n);
    Err     e = worker_burst(w, n, took);
    for (uint32_t i = 0; e == ERR_OK && i < n; i++) {
        t->ms[t->n++] = (double)took[i] / 1e6;
        t->spent_ms += (double)took[i] / 1e6;
    }
    arena_rewind(a, mark);
    return e;
}

static Err summarise(const Times *t, Arena *a, Side *out) {
    double *sorted = NULL;
    TRY(stats_sort(a, t->ms, t->n, &sorted));
    *out = (Side){sorted[0], stats_percentile(sorted, t->n, 50), t->n};
    return ERR_OK;
}

static Err take_turns(Measurement *d, Worker *ours, Worker *ort, const MeasurementParams *params,
                      Arena *a) {
    Times x = {.ms = arena_new(a, double, RUNS_MAX)}, y = {.ms = arena_new(a, double, RUNS_MAX)};
    while (!enough(&x, params) || !enough(&y, params)) {
        if (!enough(&x, params)) TRY(burst(ours, &x, a));
        if (!enough(&y, params)) TRY(burst(ort, &y, a));
    }
    TRY(summarise(&x, a, &d->ours));
    return summarise(&y, a, &d->ort);
}

static Err fight(Measurement *d, const char *path, const EngineOptions *cfg,
                 const MeasurementParams *params, Arena *a) {
    Worker ours = {0}, ort = {0};
    Answer x, y;
    Err    e = worker_start(&ours, &engine_ours, path, cfg, a, &x);
    if (e == ERR_OK) e = worker_start(&ort, &engine_ort, path, cfg, a, &y);
    if (e == ERR_OK) e = agree(&x, &y, params, d);
    if (e == ERR_OK) e = take_turns(d, &ours, &ort, params, a);
    worker_end(&ours);
    worker_end(&ort);
    return e;
}

void measurement_run(Measurement *d, const char *path, const EngineOptions *cfg,
                     const MeasurementParams *params, Arena *a) {
    size_t mark = a->used;
    d->threads = cfg->threads;
    Err e = fight(d, path, cfg, params, a);
    arena_rewind(a, mark);
    if (e != ERR_OK) d->failure = arena_str(a, err_why());
}
