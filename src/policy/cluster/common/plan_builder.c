#include "policy/cluster/common/plan_builder.h"

#include <string.h>

#include "base/err.h"

void plan_builder_carve(PlanBuilder *d, const ClusterSetup *s, Carve *from) {
    d->free.track_parts = true;
    placement_carve(&d->free, s, from);
    d->room = 2 * d->free.room;
    d->tasks = carve(from, PlanTask, s->n_slots);
    d->touched = carve(from, uint32_t, s->n_slots);
    d->slices = carve(from, ClusterSlice, d->room);
}

void plan_builder_close(PlanBuilder *d, const ClusterSlice *s, uint32_t n, bool closed) {
    FreeResources *f = &d->free;
    if (!d->view->setup->fractions) return;
    for (uint32_t i = 0; i < n; i++)
        for (uint64_t m = s[i].mask; m != 0; m &= m - 1)
            f->closed[f->first[s[i].server] + (uint32_t)__builtin_ctzll(m)] = closed;
}

// The remainder of a whole-GPU job's shared GPU is reserved for other whole-GPU jobs.
static void close_shared(PlanBuilder *d) {
    const ClusterView *v = d->view;
    if (!v->setup->fractions) return;
    memset(d->free.closed, 0, v->setup->gpus);
    for (uint32_t i = 0; i < v->n_running; i++) {
        const ClusterTask *t = &v->tasks[v->running[i]];
        bool               part = t->job.gpus > 0 && t->job.gpu_milli == CLUSTER_WHOLE_GPU &&
                    t->slices[0].gpu_milli < CLUSTER_WHOLE_GPU;
        if (part) plan_builder_close(d, t->slices, t->n_slices, true);
    }
}

void plan_builder_begin(PlanBuilder *d, const ClusterView *v) {
    d->view = v;
    d->plan++;
    d->n_touched = d->n_slices = d->n_misfits = 0;
    placement_open(&d->free, v);
    close_shared(d);
}

const ClusterSlice *plan_builder_slices(const PlanBuilder *d, uint32_t slot, uint32_t *n) {
    const PlanTask    *x = &d->tasks[slot];
    const ClusterTask *t = &d->view->tasks[slot];
    bool               ours = x->plan == d->plan;
    *n = ours ? x->n : t->n_slices;
    return *n == 0 ? NULL : ours ? x->slices : t->slices;
}

static PlanTask *touch(PlanBuilder *d, uint32_t slot) {
    PlanTask          *x = &d->tasks[slot];
    const ClusterTask *t = &d->view->tasks[slot];
    if (x->plan == d->plan) return x;
    *x = (PlanTask){.plan = d->plan, .n = t->n_slices, .slices = d->slices + d->n_slices};
    CHECK(d->n_slices + t->n_slices <= d->room);
    if (t->n_slices > 0) memcpy(x->slices, t->slices, t->n_slices * sizeof *x->slices);
    d->n_slices += t->n_slices;
    d->touched[d->n_touched++] = slot;
    return x;
}

void plan_builder_stop(PlanBuilder *d, uint32_t slot) {
    PlanTask *x = touch(d, slot);
    CHECK(x->n > 0);
    for (uint32_t i = 0; i < x->n; i++) placement_give(&d->free, &x->slices[i]);
    ClusterJob as = cluster_job_as(&d->view->tasks[slot].job, x->slices, x->n);
    x->had = x->n;
    x->n = d->n_misfits = 0;
    tenant_quota_give(&d->free.tenants, &as);
}

static void put_back(PlanBuilder *d, PlanTask *x, const ClusterJob *j) {
    uint32_t   i = 0;
    ClusterJob as = cluster_job_as(j, x->slices, x->had);
    if (!tenant_quota_fits(&d->free.tenants, &as)) return;
    while (i < x->had && placement_take(&d->free, &x->slices[i])) i++;
    if (i == x->had) x->n = x->had;
    if (x->n > 0) tenant_quota_take(&d->free.tenants, &as);
    while (x->n == 0 && i > 0) placement_give(&d->free, &x->slices[--i]);
}

void plan_builder_restore(PlanBuilder *d, uint32_t slot) {
    PlanTask *x = &d->tasks[slot];
    put_back(d, x, &d->view->tasks[slot].job);
    CHECK(x->n == x->had);
}

// If misfit h does not fit, a job like j with no smaller demand does not either. Gangs compare with
// gangs of their width and with one GPU; GPU fractions within a class, as co-runners matter.
static bool comparable(const ClusterJob *h, const ClusterJob *j) {
    bool whole = h->gpu_milli == CLUSTER_WHOLE_GPU;
    if (h->gpu_types != 0 && h->gpu_types != j->gpu_types) return false;
    if (h->servers != NULL && h->servers != j->servers) return false;
    if (h->gpus != j->gpus && (h->gpus != 1 || j->gpus == 0)) return false;
    if (whole != (j->gpu_milli == CLUSTER_WHOLE_GPU)) return false;
    return whole || h->class == j->class;
}

// A job with no smaller demand than a known misfit does not fit. A gang wider than a server is
// placed server by server, so for those only an equal demand counts.
static bool is_misfit(const PlanBuilder *d, const ClusterJob *j) {
    uint64_t all = j->gpus > 0 ? j->gpus : 1;
    for (uint32_t i = 0; i < d->n_misfits; i++) {
        const ClusterJob *h = &d->misfits[i];
        uint64_t          part = h->gpus > 0 ? h->gpus : 1;
        bool              wide = h->gpus > 1 && (h->gpu_types != 0 || h->servers != NULL ||
                                    h->gpus > d->view->setup->most_gpus);
        bool              same = h->cores_milli == j->cores_milli && h->memory_mib == j->memory_mib;
        bool              fed = h->cores_milli * all <= j->cores_milli * part &&
                   h->memory_mib * all <= j->memory_mib * part;
        if (comparable(h, j) && (wide ? same : fed) && h->gpu_milli <= j->gpu_milli) return true;
    }
    return false;
}

static void remember_misfit(PlanBuilder *d, const ClusterJob *j) {
    if (d->n_misfits < PLAN_BUILDER_SHAPES) d->misfits[d->n_misfits++] = *j;
}

bool plan_builder_place(PlanBuilder *d, uint32_t slot) {
    return plan_builder_place_as(d, slot, &d->view->tasks[slot].job);
}

bool plan_builder_place_as(PlanBuilder *d, uint32_t slot, const ClusterJob *j) {
    uint32_t      first = d->free.n_slices;
    ClusterAction a;
    if (!tenant_quota_fits(&d->free.tenants, j) || is_misfit(d, j)) return false;
    if (!placement_place_as(&d->free, slot, j, &a)) {
        remember_misfit(d, j);
        return false;
    }
    PlanTask *x = touch(d, slot);
    CHECK(x->n == 0);
    x->slices = d->free.slices + first;
    x->n = a.n_slices;
    return true;
}

bool plan_builder_put(PlanBuilder *d, uint32_t slot, const ClusterSlice *s, uint32_t n) {
    PlanTask      *x = touch(d, slot);
    FreeResources *f = &d->free;
    uint32_t       i = 0;
    ClusterJob     as = cluster_job_as(&d->view->tasks[slot].job, s, n);
    CHECK(x->n == 0 && n > 0);
    if (f->n_slices + n > f->room || !tenant_quota_fits(&f->tenants, &as)) return false;
    while (i < n && placement_take(f, &s[i])) i++;
    if (i < n) {
        while (i > 0) placement_give(f, &s[--i]);
        return false;
    }
    tenant_quota_take(&f->tenants, &as);
    x->slices = f->slices + f->n_slices;
    x->n = n;
    memmove(x->slices, s, n * sizeof *s);  // the caller may have written them there
    f->n_slices += n;
    return true;
}

static ClusterSlice resized(const ClusterSlice *s, uint32_t gpu_milli, double cores, double mib) {
    ClusterSlice x = *s;
    double       here = s->gpus > 0 ? s->gpus : 1;
    x.gpu_milli = gpu_milli;
    x.cores_milli = plan_builder_amount(here * cores);
    x.memory_mib = plan_builder_amount(here * mib);
    return x;
}

bool plan_builder_resize(PlanBuilder *d, uint32_t slot, uint32_t gpu_milli, double cores_milli,
                         double mib) {
    PlanTask      *x = touch(d, slot);
    FreeResources *f = &d->free;
    uint32_t       i = 0;
    CHECK(x->n > 0);
    for (uint32_t k = 0; k < x->n; k++) placement_give(f, &x->slices[k]);
    for (; i < x->n; i++) {
        ClusterSlice s = resized(&x->slices[i], gpu_milli, cores_milli, mib);
        if (!placement_take(f, &s)) break;
    }
    bool fits = i == x->n;
    for (uint32_t k = 0; !fits && k < i; k++) {
        ClusterSlice s = resized(&x->slices[k], gpu_milli, cores_milli, mib);
        placement_give(f, &s);
    }
    for (uint32_t k = 0; k < x->n; k++) {
        if (fits) x->slices[k] = resized(&x->slices[k], gpu_milli, cores_milli, mib);
        if (!fits) CHECK(placement_take(f, &x->slices[k]));
    }
    if (fits) d->n_misfits = 0;
    return fits;
}

// Quick check before a full search: the task just stopped may have made enough room.
static bool may_fit(const PlanBuilder *d, const ClusterJob *j, const ClusterTask *stopped) {
    const FreeResources *f = &d->free;
    bool limited = j->servers != NULL && j->gpus > cluster_largest(d->view->setup, j);
    if (limited || j->gpus > d->view->setup->most_gpus) return f->n_free >= j->gpus;
    if (j->gpu_milli < CLUSTER_WHOLE_GPU) return true;
    for (uint32_t i = 0; i < stopped->n_slices; i++)
        if (f->gpus[stopped->slices[i].server] >= j->gpus) return true;
    return false;
}

bool plan_builder_may_stop(const PlanBuilder *d, uint32_t slot) {
    const ClusterTask *t = &d->view->tasks[slot];
    return t->state != CLUSTER_RUNNING || cluster_may_preempt(d->view->setup, t, d->view->now);
}

bool plan_builder_preempt(PlanBuilder *d, uint32_t slot, const ClusterJob *j,
                          const uint32_t *victims, uint32_t n) {
    const ClusterTask *tasks = d->view->tasks;
    bool               placed = false;
    uint32_t           i = 0;
    for (; i < n && !placed; i++) {
        uint32_t has = 0;
        (void)plan_builder_slices(d, victims[i], &has);
        if (has == 0 || tasks[victims[i]].n_slices == 0) continue;
        if (!plan_builder_may_stop(d, victims[i])) continue;
        plan_builder_stop(d, victims[i]);
        d->tasks[victims[i]].victim = true;
        placed = may_fit(d, j, &tasks[victims[i]]) && plan_builder_place_as(d, slot, j);
    }
    while (i-- > 0) {
        PlanTask *x = &d->tasks[victims[i]];
        if (x->plan != d->plan || !x->victim) continue;
        x->victim = false;
        put_back(d, x, &tasks[victims[i]].job);
    }
    return placed;
}

typedef enum PlanChange { STAYS, STOPS, MOVES } PlanChange;

static PlanChange change_of(const PlanTask *x, const ClusterTask *t) {
    if (x->n == 0) return STOPS;
    if (t->state != CLUSTER_RUNNING || x->n != t->n_slices) return MOVES;
    for (uint32_t i = 0; i < x->n; i++)
        if (x->slices[i].server != t->slices[i].server || x->slices[i].mask != t->slices[i].mask)
            return MOVES;
    return STAYS;
}

bool plan_builder_moves(const PlanBuilder *d, uint32_t slot) {
    const PlanTask    *x = &d->tasks[slot];
    const ClusterTask *t = &d->view->tasks[slot];
    if (x->plan != d->plan || (x->n == 0 && t->n_slices == 0)) return false;
    return change_of(x, t) != STAYS;
}

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

// Bit 0: an amount shrinks; bit 1: an amount grows.
static uint32_t resizes(const PlanTask *x, const ClusterTask *t) {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        const ClusterSlice *a = &t->slices[i], *b = &x->slices[i];
        bits |= b->gpu_milli < a->gpu_milli || b->cores_milli < a->cores_milli ||
                b->memory_mib < a->memory_mib;
        bits |= 2U * (b->gpu_milli > a->gpu_milli || b->cores_milli > a->cores_milli ||
                      b->memory_mib > a->memory_mib);
    }
    return bits;
}

// The smaller of old and new amounts, for the first of two RESIZE actions.
static const ClusterSlice *shrunk(PlanBuilder *d, const PlanTask *x, const ClusterTask *t) {
    ClusterSlice *s = d->slices + d->n_slices;
    CHECK(d->n_slices + x->n <= d->room);
    d->n_slices += x->n;
    for (uint32_t i = 0; i < x->n; i++) {
        s[i] = x->slices[i];
        s[i].gpu_milli = smaller(s[i].gpu_milli, t->slices[i].gpu_milli);
        s[i].cores_milli = smaller(s[i].cores_milli, t->slices[i].cores_milli);
        s[i].memory_mib = smaller(s[i].memory_mib, t->slices[i].memory_mib);
    }
    return s;
}

// Actions that only free resources.
static uint32_t write_releases(PlanBuilder *d, ClusterAction *out) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->n_touched; i++) {
        uint32_t           slot = d->touched[i];
        const PlanTask    *x = &d->tasks[slot];
        const ClusterTask *t = &d->view->tasks[slot];
        PlanChange         f = change_of(x, t);
        if (f != STAYS && t->state == CLUSTER_RUNNING)
            out[n++] = (ClusterAction){.verb = CLUSTER_PREEMPT, .task = slot};
        if (f != STAYS || (resizes(x, t) & 1) == 0) continue;
        out[n++] = (ClusterAction){.verb = CLUSTER_RESIZE,
                                   .task = slot,
                                   .slices = resizes(x, t) == 1 ? x->slices : shrunk(d, x, t),
                                   .n_slices = x->n};
    }
    return n;
}

uint32_t plan_builder_write(PlanBuilder *d, ClusterAction *out) {
    uint32_t n = write_releases(d, out);
    for (uint32_t i = 0; i < 2 * d->n_touched; i++) {
        bool               starts = i < d->n_touched;
        uint32_t           slot = d->touched[starts ? i : i - d->n_touched];
        const PlanTask    *x = &d->tasks[slot];
        const ClusterTask *t = &d->view->tasks[slot];
        PlanChange         f = change_of(x, t);
        if (f != (starts ? MOVES : STAYS)) continue;
        if (!starts && (resizes(x, t) & 2) == 0) continue;
        out[n++] = (ClusterAction){.verb = starts ? CLUSTER_START : CLUSTER_RESIZE,
                                   .task = slot,
                                   .slices = x->slices,
                                   .n_slices = x->n};
    }
    return n;
}
