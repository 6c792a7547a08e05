#include "policy/cluster/common/colocation.h"

#include <string.h>

enum { TRIES = 4 };

void colocation_carve(ColocationIndex *l, const ClusterSetup *s, Carve *from) {
    l->n_classes = s->profiles != NULL ? s->profiles->n : 0;
    l->holders = carve(from, uint32_t, s->n_slots);
    l->joint = carve(from, double, (size_t)l->n_classes * l->n_classes);
}

static bool can_share(const ColocationIndex *l, uint32_t slot) {
    const ClusterJob   *j = &l->builder->view->tasks[slot].job;
    uint32_t            n = 0;
    const ClusterSlice *s = plan_builder_slices(l->builder, slot, &n);
    return n > 0 && j->gpus > 0 && j->class < l->n_classes && j->gpu_milli == CLUSTER_WHOLE_GPU &&
           s->gpu_milli == CLUSTER_WHOLE_GPU;
}

void colocation_open(ColocationIndex *l, PlanBuilder *d) {
    const ClusterView *v = d->view;
    l->builder = d;
    l->n = 0;
    memset(l->misfits, 0, sizeof l->misfits);
    if (l->n_classes == 0 || v->setup->in_rounds) return;
    for (uint32_t i = 0; i < v->n_running; i++)
        if (can_share(l, v->running[i])) l->holders[l->n++] = v->running[i];
}

static uint64_t width(const ClusterJob *j) { return UINT64_C(1) << (j->gpus < 63 ? j->gpus : 63); }

void colocation_add(ColocationIndex *l, uint32_t slot) {
    if (l->n_classes == 0 || l->builder->view->setup->in_rounds || !can_share(l, slot)) return;
    uint64_t w = width(&l->builder->view->tasks[slot].job);
    for (uint32_t c = 0; c < l->n_classes; c++) l->misfits[c] &= ~w;
    l->holders[l->n++] = slot;
}

double colocation_joint(ColocationIndex *l, uint32_t a, uint32_t b) {
    const ClusterSetup *s = l->builder->view->setup;
    double             *x = &l->joint[(size_t)a * l->n_classes + b];
    if (*x > 0 || *x < 0) return *x > 0 ? *x : 0;
    double            gpus = (double)s->gpus;
    ClusterJob        one = {.gpus = 1,
                             .gpu_milli = CLUSTER_WHOLE_GPU,
                             .cores_milli = (uint32_t)((double)s->cores_milli / gpus),
                             .memory_mib = (uint32_t)((double)s->memory_mib / gpus),
                             .class = a};
    ClusterJob        two = one;
    const ClusterJob *both[2] = {&one, &two};
    PackSplit         split = {.sum = -1};
    two.class = b;
    if (pack_may(s, &one, &two))
        pack_split(s, both, 2, one.cores_milli, one.memory_mib, NULL, &split);
    *x = split.sum;
    return *x > 0 ? *x : 0;
}

typedef struct ColocationOffer {
    uint32_t at;  // in holders
    double   worth;
} ColocationOffer;

// Keeps the TRIES best, best first; of equals the earlier.
static void keep_best(ColocationOffer *best, uint32_t at, double worth) {
    uint32_t k = TRIES;
    if (worth <= best[TRIES - 1].worth) return;
    while (k > 0 && worth > best[k - 1].worth) k--;
    memmove(best + k + 1, best + k, (TRIES - 1 - k) * sizeof *best);
    best[k] = (ColocationOffer){at, worth};
}

// Pair rates alone, an upper bound before cores and memory are split.
static bool may_suffice(const ColocationIndex *l, const ColocationParams *p, uint32_t holder,
                        uint32_t joiner) {
    const ClusterProfiles *all = l->builder->view->setup->profiles;
    double a = profile_pair(all, holder, joiner), b = profile_pair(all, joiner, holder);
    return a > 0 && b > 0 && a + b >= p->min_sum && a >= p->min_rate && b >= p->min_rate;
}

static bool suffices(const ColocationParams *p, const PackSplit *x) {
    return x->sum >= p->min_sum && x->rate[0] >= p->min_rate && x->rate[1] >= p->min_rate;
}

uint32_t colocation_join(ColocationIndex *l, uint32_t joiner, const ColocationParams *p) {
    const ClusterView *v = l->builder->view;
    const ClusterJob  *j = &v->tasks[joiner].job;
    ColocationOffer    best[TRIES + 1] = {{0}};
    if (l->n == 0 || j->class >= l->n_classes || j->gpu_milli < CLUSTER_WHOLE_GPU || j->gpus == 0)
        return CLUSTER_NONE;
    if ((l->misfits[j->class] & width(j)) != 0) return CLUSTER_NONE;
    for (uint32_t i = 0; i < l->n; i++) {
        const ClusterJob *holder = &v->tasks[l->holders[i]].job;
        if (holder->gpus != j->gpus || (p->may != NULL && !p->may(p->self, holder, j))) continue;
        if (may_suffice(l, p, holder->class, j->class))
            keep_best(best, i, colocation_joint(l, holder->class, j->class));
    }
    for (uint32_t k = 0; k < TRIES && best[k].worth > 0; k++) {
        uint32_t  holder = l->holders[best[k].at];
        PackSplit split;
        if (!pack_try(l->builder, holder, joiner, &split) || !suffices(p, &split)) continue;
        if (!pack_join(l->builder, holder, joiner, &split)) continue;
        l->holders[best[k].at] = l->holders[--l->n];
        return holder;
    }
    if (j->gpu_types == 0) l->misfits[j->class] |= width(j);
    return CLUSTER_NONE;
}
