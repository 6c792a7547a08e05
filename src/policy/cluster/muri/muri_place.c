#include "policy/cluster/muri/muri_place.h"

#include <string.h>

#include "base/err.h"

void muri_place_carve(MuriPlacer *m, const ClusterSetup *s, Carve *from) {
    m->base = carve(from, ClusterSlice, s->n_servers);
    m->own = carve(from, ClusterSlice, s->n_servers);
}

bool muri_place_together(const ClusterView *v, uint32_t a, uint32_t b) {
    const ClusterTask *x = &v->tasks[a], *y = &v->tasks[b];
    if (x->n_slices == 0 || x->n_slices != y->n_slices || x->slices->mask == 0) return false;
    for (uint32_t i = 0; i < x->n_slices; i++)
        if (x->slices[i].server != y->slices[i].server || x->slices[i].mask != y->slices[i].mask)
            return false;
    return true;
}

uint32_t muri_place_corunners(const ClusterView *v, uint32_t slot, uint32_t corunners[PACK_MOST]) {
    const ClusterTask *t = &v->tasks[slot];
    uint32_t           n = 1;
    corunners[0] = slot;
    if (t->n_slices == 0 || t->slices->gpu_milli == t->job.gpu_milli) return n;
    const ServerState *x = &v->servers[t->slices->server];
    for (uint32_t i = 0; i < x->n_residents && n < PACK_MOST; i++)
        if (x->residents[i] != slot && muri_place_together(v, slot, x->residents[i]))
            corunners[n++] = x->residents[i];
    return n;
}

static double lesser(double a, double b) { return a < b ? a : b; }

// Cores and memory available to each GPU of the group once all its tasks are stopped.
static void available(const MuriPlacer *m, uint32_t n_base, const ClusterJob *const *jobs,
                      uint32_t n, double *cores, double *mib) {
    *cores = *mib = 0;
    for (uint32_t i = 0; i < n; i++) {
        *cores += (double)jobs[i]->cores_milli / jobs[i]->gpus;
        *mib += (double)jobs[i]->memory_mib / jobs[i]->gpus;
    }
    for (uint32_t i = 0; i < n_base; i++) {
        const ClusterSlice *s = &m->base[i];
        *cores = lesser(*cores, (double)m->builder->free.cores[s->server] / s->gpus);
        *mib = lesser(*mib, (double)m->builder->free.memory[s->server] / s->gpus);
    }
}

static void put(MuriPlacer *m, uint32_t slot, uint32_t n_base, uint32_t gpu_milli, double cores,
                double mib) {
    for (uint32_t i = 0; i < n_base; i++) {
        ClusterSlice *s = &m->own[i];
        *s = m->base[i];
        s->gpu_milli = gpu_milli;
        s->cores_milli = plan_builder_amount(s->gpus * cores);
        s->memory_mib = plan_builder_amount(s->gpus * mib);
    }
    (void)plan_builder_put(m->builder, slot, m->own, n_base);
}

// Stops all tasks of the group and splits what they and the servers have.
static void divide(MuriPlacer *m, const uint32_t *slots, uint32_t n, uint32_t n_base,
                   PackSplit *split) {
    const ClusterView *v = m->builder->view;
    const ClusterJob  *jobs[PACK_MOST];
    double             weight[PACK_MOST], cores, mib;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t has = 0;
        jobs[i] = &v->tasks[slots[i]].job;
        weight[i] = 1 / (1 + (double)cluster_left(v, &v->tasks[slots[i]]));
        (void)plan_builder_slices(m->builder, slots[i], &has);
        if (has > 0) plan_builder_stop(m->builder, slots[i]);
    }
    available(m, n_base, jobs, n, &cores, &mib);
    pack_split(v->setup, jobs, n, cores, mib, m->by_need ? weight : NULL, split);
}

static bool too_slow(const MuriPlacer *m, const PackSplit *split, uint32_t n) {
    for (uint32_t i = 0; n > 1 && i < n; i++)
        if (split->rate[i] < m->min_rate) return true;
    return false;
}

void muri_place_group(MuriPlacer *m, const uint32_t *slots, uint32_t n) {
    PackSplit           split;
    uint32_t            n_base = 0;
    const ClusterSlice *s = plan_builder_slices(m->builder, slots[0], &n_base);
    CHECK(n_base > 0 && n > 0 && n <= PACK_MOST);
    memcpy(m->base, s, n_base * sizeof *s);
    divide(m, slots, n, n_base, &split);
    if (too_slow(m, &split, n)) divide(m, slots, n = 1, n_base, &split);
    for (uint32_t i = 0, part = CLUSTER_WHOLE_GPU / n; i < n; i++)
        put(m, slots[i], n_base, i == 0 ? CLUSTER_WHOLE_GPU - (n - 1) * part : part,
            split.cores_milli[i], split.mib[i]);
}

bool muri_place_back(MuriPlacer *m, uint32_t slot) {
    const ClusterTask *t = &m->builder->view->tasks[slot];
    return t->n_slices > 0 && plan_builder_put(m->builder, slot, t->slices, t->n_slices);
}
