#include "policy/cluster/common/gpu_split.h"

#include <math.h>

void gpu_split_carve(GpuSplit *x, const ClusterSetup *s, Carve *from) {
    x->items = carve(from, GpuSplitItem, s->n_slots);
    x->order = carve(from, uint32_t, s->n_slots);
    x->choice = carve_bytes(from, GPU_SPLIT_EXACT_JOBS * sizeof *x->choice);
}

// One to eight, then four to an octave.
static uint32_t next_number(uint32_t gpus) {
    uint32_t step = 1;
    while (gpus >= 8 * step) step *= 2;
    return gpus + step;
}

static void put(GpuSplit *x, GpuSplitItem *i, const ClusterView *v, uint32_t gpus) {
    double value = gpus > 0 ? x->value(x->self, v, i->slot, gpus) : 0;
    i->options[i->n++] = (GpuOption){gpus, value};
}

// The numbers of the series, and those it was submitted with and has.
static void put_range(GpuSplit *x, GpuSplitItem *i, const ClusterView *v) {
    const ClusterJob *j = &v->tasks[i->slot].job;
    uint32_t          known[] = {j->gpus, i->held, j->gpus_max};
    for (uint32_t g = j->gpus_min; g <= j->gpus_max && i->n < GPU_SPLIT_OPTIONS;) {
        put(x, i, v, g);
        uint32_t next = next_number(g);
        for (uint32_t k = 0; k < sizeof known / sizeof *known; k++)
            if (known[k] > g && known[k] < next) next = known[k];
        g = next;
    }
}

// Running tasks that may not be preempted keep at least their fewest GPUs.
uint32_t gpu_split_add(GpuSplit *x, const ClusterView *v, uint32_t slot) {
    const ClusterTask *t = &v->tasks[slot];
    GpuSplitItem      *i = &x->items[x->n];
    bool               runs = t->state == CLUSTER_RUNNING, rescales = t->job.gpus_max > 0;
    bool               stops = runs && x->stops && cluster_may_preempt(v->setup, t, v->now);
    if (runs && rescales) rescales = cluster_may_rescale(v->setup, t, v->now);
    if (runs && !rescales && !stops) return 0;
    *i = (GpuSplitItem){.slot = slot, .held = cluster_slices_gpus(t->slices, t->n_slices)};
    if (!runs || stops) put(x, i, v, 0);
    if (rescales)
        put_range(x, i, v);
    else
        put(x, i, v, runs ? i->held : t->job.gpus);
    x->n++;
    return i->held;
}

static void find_step(GpuSplitItem *i, uint64_t left) {
    const GpuOption *from = &i->options[i->at];
    i->density = 0;
    for (uint32_t k = i->at + 1; k < i->n; k++) {
        uint32_t more = i->options[k].gpus - from->gpus;
        double   density = (i->options[k].value - from->value) / more;
        if (more > left || !(density > i->density)) continue;
        i->density = density;
        i->next = k;
    }
}

static GpuSplitItem *best_step(GpuSplit *x, uint64_t left) {
    GpuSplitItem *best = NULL;
    for (uint32_t k = 0; k < x->n; k++) {
        GpuSplitItem *i = &x->items[k];
        if (i->density > 0 && i->options[i->next].gpus - i->options[i->at].gpus > left)
            find_step(i, left);
        if (i->density > (best != NULL ? best->density : 0)) best = i;
    }
    return best;
}

void gpu_split_steps(GpuSplit *x, uint64_t gpus) {
    uint64_t least = 0;
    for (uint32_t k = 0; k < x->n; k++) least += x->items[k].options[0].gpus;
    uint64_t left = gpus > least ? gpus - least : 0;
    for (uint32_t k = 0; k < x->n; k++) {
        x->items[k].at = 0;
        find_step(&x->items[k], left);
    }
    for (GpuSplitItem *i; left > 0 && (i = best_step(x, left)) != NULL; find_step(i, left)) {
        left -= i->options[i->next].gpus - i->options[i->at].gpus;
        i->at = i->next;
    }
}

// best[g]: the largest sum of the first items on at most g GPUs. Of equal sums the one in which the
// last item has the fewest.
static void extend(const GpuSplitItem *i, double *best, uint8_t *choice, uint32_t gpus) {
    for (uint32_t g = gpus + 1; g-- > 0;) {
        double most = -INFINITY;
        for (uint32_t k = 0; k < i->n && i->options[k].gpus <= g; k++) {
            double sum = best[g - i->options[k].gpus] + i->options[k].value;
            if (!(sum > most)) continue;
            most = sum;
            choice[g] = (uint8_t)k;
        }
        best[g] = most;
    }
}

static void split_exactly(GpuSplit *x, uint32_t gpus) {
    double best[GPU_SPLIT_EXACT_GPUS + 1] = {0};
    for (uint32_t k = 0; k < x->n; k++) extend(&x->items[k], best, x->choice[k], gpus);
    for (uint32_t k = x->n, left = gpus; k-- > 0;) {
        x->items[k].at = x->choice[k][left];
        left -= x->items[k].options[x->items[k].at].gpus;
    }
}

void gpu_split_run(GpuSplit *x, uint64_t gpus) {
    uint64_t least = 0;
    for (uint32_t k = 0; k < x->n; k++) least += x->items[k].options[0].gpus;
    if (least <= gpus && x->n <= GPU_SPLIT_EXACT_JOBS && gpus <= GPU_SPLIT_EXACT_GPUS)
        split_exactly(x, (uint32_t)gpus);
    else
        gpu_split_steps(x, gpus);
}

static uint32_t target(const GpuSplitItem *i) { return i->options[i->at].gpus; }

// Keeps the first GPUs and their part of cores and memory.
static void shrink(PlanBuilder *d, const GpuSplitItem *i) {
    ClusterSlice        keep[CLUSTER_GPUS];
    uint32_t            n = 0, had = 0, left = target(i);
    const ClusterSlice *s = plan_builder_slices(d, i->slot, &had);
    for (uint32_t k = 0; k < had && left > 0 && n < CLUSTER_GPUS; k++) {
        ClusterSlice x = s[k];
        while (x.gpus > left) {
            x.mask &= ~(UINT64_C(1) << (63 - (uint32_t)__builtin_clzll(x.mask)));
            x.gpus--;
        }
        x.cores_milli = (uint32_t)((uint64_t)x.cores_milli * x.gpus / s[k].gpus);
        x.memory_mib = (uint32_t)((uint64_t)x.memory_mib * x.gpus / s[k].gpus);
        left -= x.gpus;
        keep[n++] = x;
    }
    plan_builder_stop(d, i->slot);
    if (left > 0 || !plan_builder_put(d, i->slot, keep, n)) plan_builder_restore(d, i->slot);
}

// With the target, or the largest number below it that fits and is worth more than `least`.
static bool place(const GpuSplit *x, PlanBuilder *d, const GpuSplitItem *i, uint32_t above,
                  double least) {
    for (uint32_t k = i->at + 1; k-- > 0 && i->options[k].gpus > above;) {
        ClusterJob j = cluster_job_on(&d->view->tasks[i->slot].job, i->options[k].gpus);
        if (x->demand != NULL) j = x->demand(x->self, d->view->setup, &j);
        if (i->options[k].value > least && plan_builder_place_as(d, i->slot, &j)) return true;
    }
    return false;
}

static double value_held(const GpuSplitItem *i) {
    for (uint32_t k = 0; k < i->n; k++)
        if (i->options[k].gpus == i->held) return i->options[k].value;
    return 0;
}

static void grow(const GpuSplit *x, PlanBuilder *d, const GpuSplitItem *i) {
    plan_builder_stop(d, i->slot);
    if (!place(x, d, i, i->held, value_held(i))) plan_builder_restore(d, i->slot);
}

// By descending target; equal ones in the order of addition.
static void sort(GpuSplit *x) {
    uint32_t most = 0, n = 0;
    for (uint32_t k = 0; k < x->n; k++)
        if (target(&x->items[k]) > most) most = target(&x->items[k]);
    while (most > 0) {
        uint32_t next = 0;
        for (uint32_t k = 0; k < x->n; k++) {
            uint32_t t = target(&x->items[k]);
            if (t == most) x->order[n++] = k;
            if (t < most && t > next) next = t;
        }
        most = next;
    }
    for (uint32_t k = 0; k < x->n; k++)
        if (target(&x->items[k]) == 0) x->order[n++] = k;
}

void gpu_split_apply(GpuSplit *x, PlanBuilder *d) {
    sort(x);
    for (uint32_t k = 0; k < x->n; k++) {
        const GpuSplitItem *i = &x->items[k];
        if (target(i) > 0 && target(i) < i->held) shrink(d, i);
        if (target(i) == 0 && i->held > 0) plan_builder_stop(d, i->slot);
    }
    for (uint32_t k = 0; k < x->n; k++) {
        const GpuSplitItem *i = &x->items[x->order[k]];
        if (target(i) > 0 && i->held == 0) (void)place(x, d, i, 0, 0);
    }
    for (uint32_t k = 0; k < x->n; k++) {
        const GpuSplitItem *i = &x->items[x->order[k]];
        if (i->held > 0 && target(i) > i->held) grow(x, d, i);
    }
}
