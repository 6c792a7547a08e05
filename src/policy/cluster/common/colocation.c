#include "policy/cluster/common/colocation.h"

#include <string.h>

#include "base/err.h"

enum { SWEEPS = 3 };

static bool classed(const ClusterSetup *s, const ClusterJob *j) {
    return s->profiles != NULL && j->class < s->profiles->n;
}

bool pack_may(const ClusterSetup *s, const ClusterJob *a, const ClusterJob *b) {
    if (!classed(s, a) || !classed(s, b) || a->gpus == 0 || a->gpus != b->gpus) return false;
    if (a->gpu_milli != CLUSTER_WHOLE_GPU || b->gpu_milli != CLUSTER_WHOLE_GPU) return false;
    if (a->gpu_types != 0 && b->gpu_types != 0 && (a->gpu_types & b->gpu_types) == 0) return false;
    return profile_pair(s->profiles, a->class, b->class) > 0 &&
           profile_pair(s->profiles, b->class, a->class) > 0;
}

double pack_speed(const ClusterSetup *s, const ClusterJob *j, double cores_milli, double mib) {
    if (!classed(s, j) || j->gpus == 0 || s->gpus_only) return 1;
    return rate_resources(s->profiles, j, j->gpus, plan_builder_amount(j->gpus * cores_milli),
                          plan_builder_amount(j->gpus * mib));
}

// Amounts between two grid points of a profile gain nothing, so only grid points are tried.
static double at_most(const double *axis, uint32_t n, uint32_t i, double unit, double all) {
    double x = i < n ? axis[i] * unit : all;
    return x < all ? x : all;
}

// The best split of what two tasks have together with rates of at least `least`. Returns whether it
// improves on the current one.
static bool split_two(const ClusterSetup *s, const ClusterJob *const *jobs, const double *weight,
                      const double *least, uint32_t a, uint32_t b, PackSplit *x) {
    const ProfileGrid *g = &s->profiles->at[jobs[a]->class].speed;
    double             cores = x->cores_milli[a] + x->cores_milli[b], mib = x->mib[a] + x->mib[b];
    double             best = weight[a] * pack_speed(s, jobs[a], x->cores_milli[a], x->mib[a]) +
                  weight[b] * pack_speed(s, jobs[b], x->cores_milli[b], x->mib[b]);
    bool   better = false;
    double first = 0, part = 0;
    for (uint32_t r = 0; r <= g->rows && first < cores; r++) {
        first = at_most(g->row, g->rows, r, 1e3 * rate_cores_scale(s->profiles, jobs[a]), cores);
        part = 0;
        for (uint32_t c = 0; c <= g->columns && part < mib; c++) {
            part = at_most(g->column, g->columns, c, 1024 * rate_memory_scale(s->profiles, jobs[a]),
                           mib);
            double of_a = pack_speed(s, jobs[a], first, part);
            double of_b = pack_speed(s, jobs[b], cores - first, mib - part);
            double sum = weight[a] * of_a + weight[b] * of_b;
            if (!(sum > best * 1.001) || of_a < least[a] || of_b < least[b]) continue;
            best = sum;
            better = true;
            x->cores_milli[a] = first;
            x->mib[a] = part;
            x->cores_milli[b] = cores - first;
            x->mib[b] = mib - part;
        }
    }
    return better;
}

static double corun_rate(const ClusterSetup *s, const ClusterJob *const *jobs, uint32_t n,
                         uint32_t i) {
    uint32_t others[PACK_MOST], k = 0;
    for (uint32_t o = 0; o < n; o++)
        if (o != i) others[k++] = jobs[o]->class;
    return profile_share(s->profiles, jobs[i]->class, others, k);
}

void pack_split(const ClusterSetup *s, const ClusterJob *const *jobs, uint32_t n,
                double cores_milli, double mib, const double *weight, PackSplit *out) {
    double share[PACK_MOST], worth[PACK_MOST], least[PACK_MOST];
    CHECK(n > 0 && n <= PACK_MOST);
    for (uint32_t i = 0; i < n; i++) {
        share[i] = corun_rate(s, jobs, n, i);
        worth[i] = share[i] * (weight != NULL ? weight[i] : 1);
        out->cores_milli[i] = cores_milli / n;
        out->mib[i] = mib / n;
        least[i] = pack_speed(s, jobs[i], cores_milli / n, mib / n) / 2;
    }
    bool better = n > 1;
    for (uint32_t sweep = 0; better && sweep < SWEEPS; sweep++) {
        better = false;
        for (uint32_t a = 0; a < n; a++)
            for (uint32_t b = 0; b < n; b++)
                if (a != b && split_two(s, jobs, worth, least, a, b, out)) better = n > 2;
    }
    out->sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        out->rate[i] = share[i] * pack_speed(s, jobs[i], out->cores_milli[i], out->mib[i]);
        out->sum += out->rate[i];
    }
}

static double smaller(double a, double b) { return a < b ? a : b; }

// Cores and memory per GPU available to both: the minimum over the holder's servers.
static void available(const PlanBuilder *d, uint32_t holder, const ClusterJob *joiner,
                      double *cores, double *mib) {
    uint32_t            n = 0;
    const ClusterSlice *s = plan_builder_slices(d, holder, &n);
    double              all = joiner->gpus > 0 ? joiner->gpus : 1;
    for (uint32_t i = 0; i < n; i++) {
        double here = s[i].gpus > 0 ? s[i].gpus : 1;
        double c = smaller(d->free.cores[s[i].server] / here, joiner->cores_milli / all);
        double m = smaller(d->free.memory[s[i].server] / here, joiner->memory_mib / all);
        c += s[i].cores_milli / here;
        m += s[i].memory_mib / here;
        *cores = i == 0 ? c : smaller(*cores, c);
        *mib = i == 0 ? m : smaller(*mib, m);
    }
}

static bool servers_fit(const PlanBuilder *d, const ClusterJob *joiner, const ClusterSlice *s,
                        uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!cluster_server_fits(d->view->setup, joiner, s[i].server)) return false;
    return true;
}

bool pack_try(const PlanBuilder *d, uint32_t holder, uint32_t joiner, PackSplit *out) {
    const ClusterJob *jobs[2] = {&d->view->tasks[holder].job, &d->view->tasks[joiner].job};
    uint32_t          n = 0;
    double            cores = 0, mib = 0;
    if (!pack_may(d->view->setup, jobs[0], jobs[1])) return false;
    const ClusterSlice *s = plan_builder_slices(d, holder, &n);
    if (n == 0 || s->gpu_milli < CLUSTER_WHOLE_GPU || !servers_fit(d, jobs[1], s, n)) return false;
    available(d, holder, jobs[1], &cores, &mib);
    pack_split(d->view->setup, jobs, 2, cores, mib, NULL, out);
    return true;
}

bool pack_join(PlanBuilder *d, uint32_t holder, uint32_t joiner, const PackSplit *x) {
    const uint32_t half = CLUSTER_WHOLE_GPU / 2;
    uint32_t       n = 0;
    FreeResources *f = &d->free;
    (void)plan_builder_slices(d, holder, &n);
    if (f->n_slices + n > f->room) return false;
    if (!plan_builder_resize(d, holder, half, x->cores_milli[0], x->mib[0])) return false;
    const ClusterSlice *s = plan_builder_slices(d, holder, &n);
    ClusterSlice       *to = f->slices + f->n_slices;
    for (uint32_t i = 0; i < n; i++) {
        to[i] = s[i];
        to[i].cores_milli = plan_builder_amount(s[i].gpus * x->cores_milli[1]);
        to[i].memory_mib = plan_builder_amount(s[i].gpus * x->mib[1]);
    }
    plan_builder_close(d, s, n, true);
    if (plan_builder_put(d, joiner, to, n)) return true;
    pack_restore(d, holder);
    return false;
}

bool pack_alone(const PlanBuilder *d, uint32_t slot) {
    uint32_t             n = 0;
    const ClusterSlice  *s = plan_builder_slices(d, slot, &n);
    const FreeResources *f = &d->free;
    if (n == 0 || s->gpu_milli == d->view->tasks[slot].job.gpu_milli) return false;
    for (uint32_t i = 0; i < n; i++)
        for (uint64_t m = s[i].mask; m != 0; m &= m - 1) {
            uint32_t g = f->first[s[i].server] + (uint32_t)__builtin_ctzll(m);
            if (f->parts[g] + s[i].gpu_milli < CLUSTER_WHOLE_GPU) return false;
        }
    return true;
}

void pack_restore(PlanBuilder *d, uint32_t slot) {
    const ClusterJob *j = &d->view->tasks[slot].job;
    double            all = j->gpus > 0 ? j->gpus : 1, cores = 0, mib = 0;
    ClusterJob unlimited = {.gpus = j->gpus, .cores_milli = UINT32_MAX, .memory_mib = UINT32_MAX};
    available(d, slot, &unlimited, &cores, &mib);
    (void)plan_builder_resize(d, slot, j->gpu_milli, smaller(cores, j->cores_milli / all),
                              smaller(mib, j->memory_mib / all));
}

uint32_t pack_corunner(const ClusterView *v, uint32_t slot) {
    const ClusterTask  *t = &v->tasks[slot];
    const ClusterSlice *s = t->slices;
    if (t->n_slices == 0 || s->gpus == 0 || s->gpu_milli == CLUSTER_WHOLE_GPU) return CLUSTER_NONE;
    const ServerState *x = &v->servers[s->server];
    for (uint32_t i = 0; i < x->n_residents; i++) {
        const ClusterTask *o = &v->tasks[x->residents[i]];
        if (x->residents[i] == slot) continue;
        for (uint32_t k = 0; k < o->n_slices; k++)
            if (o->slices[k].server == s->server && (o->slices[k].mask & s->mask) != 0)
                return x->residents[i];
    }
    return CLUSTER_NONE;
}

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
    if (!tenant_quota_fits(&l->builder->free.tenants, j)) return CLUSTER_NONE;
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
    if (!cluster_is_restricted(j)) l->misfits[j->class] |= width(j);
    return CLUSTER_NONE;
}
