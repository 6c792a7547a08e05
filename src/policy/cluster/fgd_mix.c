#include "policy/cluster/fgd_mix.h"

#include <string.h>

static FgdShape shape_of(const ClusterSetup *s, const ClusterJob *j) {
    FgdShape x = {.gpus = j->gpus,
                  .gpu_milli = j->gpu_milli,
                  .gpu_types = j->gpu_types,
                  .cores_milli = j->cores_milli,
                  .memory_mib = j->memory_mib};
    if (j->gpus <= s->most_gpus) return x;
    x.gpus = s->most_gpus;
    x.cores_milli = (uint32_t)((uint64_t)j->cores_milli * x.gpus / j->gpus);
    x.memory_mib = (uint32_t)((uint64_t)j->memory_mib * x.gpus / j->gpus);
    return x;
}

static bool same(const FgdShape *a, const FgdShape *b) {
    return a->gpus == b->gpus && a->gpu_milli == b->gpu_milli && a->gpu_types == b->gpu_types &&
           a->cores_milli == b->cores_milli && a->memory_mib == b->memory_mib;
}

// Where there are too many, a new shape takes the place and the count of the rarest.
void fgd_mix_see(FgdMix *m, const ClusterSetup *s, const ClusterJob *j) {
    FgdShape x = shape_of(s, j);
    uint32_t i = 0, rarest = 0;
    if (x.gpus == 0) return;
    m->seen++;
    for (; i < m->n && !same(&m->shapes[i], &x); i++)
        if (m->shapes[i].count < m->shapes[rarest].count) rarest = i;
    if (i == m->n && m->n == FGD_SHAPES) i = rarest;
    x.count = (i < m->n ? m->shapes[i].count : 0) + 1;
    if (i == m->n) m->n++;
    m->shapes[i] = x;
}

static void sort(FgdShape *x, uint32_t n) {
    for (uint32_t i = 1; i < n; i++) {
        FgdShape one = x[i];
        uint32_t at = i;
        for (; at > 0 && one.count > x[at - 1].count; at--) x[at] = x[at - 1];
        x[at] = one;
    }
}

bool fgd_mix_settle(FgdMix *m, uint32_t most) {
    double all = 0;
    if (m->seen == m->settled_at || m->seen < m->settled_at + m->settled_at / 20) return false;
    m->settled_at = m->seen;
    memcpy(m->used, m->shapes, m->n * sizeof *m->used);
    sort(m->used, m->n);
    m->n_used = m->n < most ? m->n : most;
    for (uint32_t i = 0; i < m->n_used; i++) all += (double)m->used[i].count;
    for (uint32_t i = 0; i < m->n_used; i++) m->weight[i] = (double)m->used[i].count / all;
    return true;
}

static double unfit(const FgdShape *x, const FgdRoom *r, uint32_t free) {
    uint32_t fit = 0, small = 0;
    bool     suits = x->gpu_types == 0 || (x->gpu_types >> r->type & 1) != 0;
    if (!suits || x->cores_milli > r->cores_milli || x->memory_mib > r->memory_mib) return free;
    for (uint32_t g = 0; g < r->n; g++) {
        fit += r->parts[g] >= x->gpu_milli;
        small += r->parts[g] < x->gpu_milli ? r->parts[g] : 0;
    }
    return fit >= x->gpus ? small : free;
}

double fgd_mix_waste(const FgdMix *m, const FgdRoom *r) {
    double   sum = 0;
    uint32_t free = 0;
    for (uint32_t g = 0; g < r->n; g++) free += r->parts[g];
    if (free == 0) return 0;
    for (uint32_t i = 0; i < m->n_used; i++) sum += m->weight[i] * unfit(&m->used[i], r, free);
    return sum;
}
