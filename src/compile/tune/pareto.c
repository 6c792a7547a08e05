#include "compile/tune/pareto.h"

#include <math.h>
#include <stdbool.h>

TimeNs pareto_fastest(const LayerProfile *p, uint32_t k) {
    TimeNs best = INT64_MAX;
    for (uint32_t i = 0; i < p->n; i++) {
        TimeNs t = p->candidates[i].time_ns[k];
        if (t > 0 && t < best) best = t;
    }
    return best;
}

// Slowdown against the fastest, on the core count where it is largest; infinite if not measured.
static double slowdown(const LayerProfile *p, const TimeNs *least, uint32_t i) {
    double worst = p->n_counts == 0 ? INFINITY : 0;
    for (uint32_t k = 0; k < p->n_counts; k++) {
        TimeNs t = p->candidates[i].time_ns[k];
        worst = t > 0 ? fmax(worst, (double)t / (double)least[k]) : INFINITY;
    }
    return worst;
}

static bool no_slower(const LayerProfile *p, const Candidate *a, const Candidate *b) {
    for (uint32_t k = 0; k < p->n_counts; k++)
        if ((double)a->time_ns[k] > (double)b->time_ns[k] * (1 + PARETO_NOISE)) return false;
    return true;
}

static double total(const LayerProfile *p, const Candidate *c) {
    double sum = 0;
    for (uint32_t k = 0; k < p->n_counts; k++) sum += (double)c->time_ns[k];
    return sum;
}

// Times within the noise are equal, and the other criteria decide. Candidates equal in those are
// ordered by total time, then by index, so that dominance has no cycles.
static bool dominates(const LayerProfile *p, uint32_t i, uint32_t j) {
    const Candidate *a = &p->candidates[i], *b = &p->candidates[j];
    Traffic          x = a->traffic, y = b->traffic;
    if (a->tasks < b->tasks || x.l3_bytes > y.l3_bytes || x.beyond_l2_bytes > y.beyond_l2_bytes)
        return false;
    if (!no_slower(p, a, b)) return false;
    if (a->tasks > b->tasks || x.l3_bytes < y.l3_bytes || x.beyond_l2_bytes < y.beyond_l2_bytes)
        return true;
    double s = total(p, a), t = total(p, b);
    return s < t || (s == t && i < j);
}

static bool has_larger_footprint(const LayerProfile *p, uint32_t i, uint32_t j) {
    Traffic x = p->candidates[i].traffic, y = p->candidates[j].traffic;
    if (x.l3_bytes != y.l3_bytes) return x.l3_bytes > y.l3_bytes;
    if (x.beyond_l2_bytes != y.beyond_l2_bytes) return x.beyond_l2_bytes > y.beyond_l2_bytes;
    return i < j;
}

static void sort_by_footprint(const LayerProfile *p, uint32_t *at, uint32_t n) {
    for (uint32_t i = 1; i < n; i++) {
        uint32_t one = at[i], j = i;
        for (; j > 0 && has_larger_footprint(p, one, at[j - 1]); j--) at[j] = at[j - 1];
        at[j] = one;
    }
}

// Candidates within the slowdown limit, dominated or not.
static uint32_t within_slowdown(const LayerProfile *p, uint32_t *out) {
    TimeNs   least[PROFILE_COUNTS];
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->n_counts; k++) least[k] = pareto_fastest(p, k);
    for (uint32_t i = 0; i < p->n; i++)
        if (slowdown(p, least, i) <= PARETO_SLACK) out[n++] = i;
    return n;
}

uint32_t pareto_front(const LayerProfile *p, uint32_t *out) {
    TimeNs   least[PROFILE_COUNTS];
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->n_counts; k++) least[k] = pareto_fastest(p, k);
    for (uint32_t i = 0; i < p->n; i++) {
        bool beaten = slowdown(p, least, i) > PARETO_SLACK;
        for (uint32_t j = 0; j < p->n && !beaten; j++)
            beaten = i != j && dominates(p, j, i) && slowdown(p, least, j) <= PARETO_SLACK;
        if (!beaten) out[n++] = i;
    }
    sort_by_footprint(p, out, n);
    return n;
}

static double best_time(const LayerProfile *p, const Pressure *m, const uint32_t *set, uint32_t n,
                        uint32_t k, uint32_t level) {
    double        best = INFINITY;
    PressureShare share = pressure_share(level);
    for (uint32_t i = 0; i < n; i++)
        best = fmin(best, pressure_time(m, &p->candidates[set[i]], k, p->counts[k], share));
    return best;
}

double pareto_loss(const LayerProfile *p, const Pressure *m, const uint32_t *all, uint32_t n_all,
                   const uint32_t *set, uint32_t n_set) {
    double worst = 0;
    for (uint32_t k = 0; k < p->n_counts; k++)
        for (uint32_t level = 0; level < PRESSURE_LEVELS; level++)
            worst = fmax(
                worst,
                best_time(p, m, set, n_set, k, level) / best_time(p, m, all, n_all, k, level) - 1);
    return worst;
}

static bool is_kept(const LayerProfile *p, uint32_t one) {
    for (uint32_t i = 0; i < p->n_kept; i++)
        if (p->kept[i] == one) return true;
    return false;
}

static void keep(LayerProfile *p, uint32_t one) {
    if (!is_kept(p, one)) p->kept[p->n_kept++] = one;
}

static uint32_t fastest_alone(const LayerProfile *p, const uint32_t *front, uint32_t n) {
    TimeNs   least[PROFILE_COUNTS];
    uint32_t best = 0;
    for (uint32_t k = 0; k < p->n_counts; k++) least[k] = pareto_fastest(p, k);
    for (uint32_t i = 1; i < n; i++)
        if (slowdown(p, least, front[i]) < slowdown(p, least, front[best])) best = i;
    return front[best];
}

// Keeps the candidate of the front that reduces the loss most; returns the loss left.
static double keep_next(LayerProfile *p, const Pressure *m, const uint32_t *front, uint32_t n) {
    double   least = INFINITY;
    uint32_t best = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (is_kept(p, front[i])) continue;
        p->kept[p->n_kept] = front[i];
        double loss = pareto_loss(p, m, front, n, p->kept, p->n_kept + 1);
        if (loss < least) least = loss, best = front[i];
    }
    keep(p, best);
    return least;
}

static bool differ(double a, double b) {
    return a > PARETO_DIFFER * b + 1 || b > PARETO_DIFFER * a + 1;
}

static bool differs_from_kept(const LayerProfile *p, uint32_t one, bool by_tasks) {
    const Candidate *a = &p->candidates[one];
    for (uint32_t i = 0; i < p->n_kept; i++) {
        const Candidate *b = &p->candidates[p->kept[i]];
        bool             far = by_tasks && differ(a->tasks, b->tasks);
        far = far || differ((double)a->traffic.l3_bytes, (double)b->traffic.l3_bytes);
        far = far || differ((double)a->traffic.beyond_l2_bytes, (double)b->traffic.beyond_l2_bytes);
        if (!far) return false;
    }
    return true;
}

static bool keep_different(LayerProfile *p, const uint32_t *front, uint32_t n, bool by_tasks) {
    uint32_t best = n;
    for (uint32_t i = 0; i < n; i++) {
        if (!differs_from_kept(p, front[i], by_tasks)) continue;
        if (best == n || total(p, &p->candidates[front[i]]) < total(p, &p->candidates[front[best]]))
            best = i;
    }
    if (best < n) keep(p, front[best]);
    return best < n;
}

double pareto_keep(LayerProfile *p, const Pressure *m, uint32_t *front) {
    uint32_t n = pareto_front(p, front);
    p->n_kept = 0;
    if (n == 0) return 0;
    keep(p, fastest_alone(p, front, n));
    if (differs_from_kept(p, front[0], true)) keep(p, front[0]);
    if (differs_from_kept(p, front[n - 1], true)) keep(p, front[n - 1]);
    double loss = pareto_loss(p, m, front, n, p->kept, p->n_kept);
    while (p->n_kept < PROFILE_KEPT && loss > PARETO_LOSS) loss = keep_next(p, m, front, n);
    while (p->n_kept < PARETO_WANTED && keep_different(p, front, n, false)) continue;
    while (p->n_kept < PARETO_WANTED && keep_different(p, front, n, true)) continue;
    double   left = pareto_loss(p, m, front, n, p->kept, p->n_kept);
    uint32_t usable = within_slowdown(p, front);
    while (p->n_kept < PARETO_WANTED && keep_different(p, front, usable, true)) continue;
    return left;
}

void pareto_keep_some(LayerProfile *p, const uint32_t *some, uint32_t n) {
    p->n_kept = 0;
    while (p->n_kept < PARETO_WANTED && keep_different(p, some, n, true)) continue;
}
