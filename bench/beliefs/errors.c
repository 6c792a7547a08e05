#include "bench/beliefs/beliefs.h"

#include <math.h>
#include <stdlib.h>

void errors_open(Errors *e, uint32_t room, Arena *a) {
    *e = (Errors){arena_new(a, double, room), arena_new(a, double, room),
                  arena_new(a, double, room), 0, room};
}

void errors_add(Errors *e, double said, double sd, double truth) {
    if (e->n == e->room) return;
    e->said[e->n] = said;
    e->sd[e->n] = fmax(sd, 0.05);
    e->true_[e->n++] = truth;
}

typedef struct Ranked {
    double   value;
    uint32_t at;
} Ranked;

static int ascending(const void *a, const void *b) {
    double x = ((const Ranked *)a)->value, y = ((const Ranked *)b)->value;
    return (x > y) - (x < y);
}

static void ranks(const double *x, uint32_t n, Ranked *scratch, double *to) {
    for (uint32_t i = 0; i < n; i++) scratch[i] = (Ranked){x[i], i};
    qsort(scratch, n, sizeof *scratch, ascending);
    for (uint32_t i = 0, k; i < n; i = k) {
        for (k = i; k < n && scratch[k].value <= scratch[i].value;) k++;
        for (uint32_t j = i; j < k; j++) to[scratch[j].at] = (i + k - 1) / 2.0;
    }
}

static double correlation(const double *x, const double *y, uint32_t n) {
    double mx = 0, my = 0, xx = 0, yy = 0, xy = 0;
    for (uint32_t i = 0; i < n; i++) {
        mx += x[i] / n;
        my += y[i] / n;
    }
    for (uint32_t i = 0; i < n; i++) {
        xx += (x[i] - mx) * (x[i] - mx);
        yy += (y[i] - my) * (y[i] - my);
        xy += (x[i] - mx) * (y[i] - my);
    }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : 0;
}

ErrorSummary errors_summary(const Errors *e, Arena *a) {
    ErrorSummary s = {0, 0, 0, 0};
    Ranked      *scratch = arena_new(a, Ranked, e->n + 1);
    double      *x = arena_new(a, double, e->n + 1), *y = arena_new(a, double, e->n + 1);
    for (uint32_t i = 0; i < e->n; i++) {
        double d = e->true_[i] - e->said[i], z = d / e->sd[i];
        s.rmse += d * d / e->n;
        s.nll += (0.918938533 + log(e->sd[i]) + z * z / 2) / e->n;
        s.cover += (fabs(z) < 1.645) / (double)e->n;
    }
    s.rmse = sqrt(s.rmse);
    ranks(e->said, e->n, scratch, x);
    ranks(e->true_, e->n, scratch, y);
    s.spearman = correlation(x, y, e->n);
    return s;
}
