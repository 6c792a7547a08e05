#include "policy/cluster/common/pack.h"

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

static bool types_fit(const PlanBuilder *d, const ClusterJob *joiner, const ClusterSlice *s,
                      uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!cluster_type_fits(d->view->setup, joiner, s[i].server)) return false;
    return true;
}

bool pack_try(const PlanBuilder *d, uint32_t holder, uint32_t joiner, PackSplit *out) {
    const ClusterJob *jobs[2] = {&d->view->tasks[holder].job, &d->view->tasks[joiner].job};
    uint32_t          n = 0;
    double            cores = 0, mib = 0;
    if (!pack_may(d->view->setup, jobs[0], jobs[1])) return false;
    const ClusterSlice *s = plan_builder_slices(d, holder, &n);
    if (n == 0 || s->gpu_milli < CLUSTER_WHOLE_GPU || !types_fit(d, jobs[1], s, n)) return false;
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
