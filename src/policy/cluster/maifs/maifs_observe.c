// Observation at the beginning of a decision, the value of tasks after it, and features.
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "contract/rate.h"
#include "learn/activation.h"
#include "policy/cluster/maifs/maifs.h"

typedef struct Work {  // remaining time x GPUs, cores, memory
    double gpus, cores, memory;
} Work;

static void add_work(Work *w, const ClusterView *v, const uint32_t *tasks, uint32_t n, bool mean) {
    for (uint32_t i = 0; i < n; i++) {
        const ClusterTask *t = &v->tasks[tasks[i]];
        TimeNs             left = cluster_left(v, t);
        double             s = left > 0 ? (double)left / 1e9 : 0;
        if (mean && t->spread.mean_s > 0) s = t->spread.mean_s;
        w->gpus += s * (double)cluster_gpu_milli(&t->job);
        w->cores += s * t->job.cores_milli;
        w->memory += s * t->job.memory_mib;
    }
}

// Drain time of the scarcest resource, at default demands.
static double drain_of(const ClusterView *v, bool mean) {
    const ClusterSetup *s = v->setup;
    Work                w = {0};
    add_work(&w, v, v->waiting, v->n_waiting, mean);
    add_work(&w, v, v->running, v->n_running, mean);
    double gpus = w.gpus / ((double)s->gpus * CLUSTER_WHOLE_GPU);
    double cores = w.cores / (double)(s->cores_milli + 1);
    double memory = w.memory / (double)(s->memory_mib + 1);
    return fmax(gpus, fmax(cores, memory));
}

static void update_utilities(Maifs *m, const uint32_t *tasks, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const ClusterTask *t = &m->view->tasks[tasks[i]];
        TaskUtility       *w = &m->utilities[tasks[i]];
        bool               runs = t->state == CLUSTER_RUNNING;
        ClusterJob         as = runs ? cluster_job_as(&t->job, t->slices, t->n_slices) : t->job;
        if (w->job != t->job.id + 1 || w->believed != t->job.class || w->gpus != as.gpus ||
            w->servers != as.servers)
            task_utility_init(w, m->setup, &as, &m->params);
        w->scaling = (float)rate_scaling(m->setup, &t->job, as.gpus);
        task_utility_update(w, m->view, t, m->drain_s, &m->params);
        m->outcome[tasks[i]] = MAIFS_KEPT;
    }
}

static void observe_task(Maifs *m, uint32_t task) {
    uint32_t k = m->input.n_jobs++;
    maifs_features_job(m->view, &m->utilities[task], &m->view->tasks[task],
                       m->jobs + (size_t)k * MAIFS_JOB);
    m->row[task] = k;
    m->seen[k] = task;
}

enum { BUCKETS = 4096 };

static uint32_t bucket_of(float x) {
    return (uint32_t)repro_bits_of_float(x) >> 19;
}  // monotonic in x

// All of a short queue; of a long one the densest tasks and the longest, which may be critical.
static void observe_queue(Maifs *m) {
    const ClusterView *v = m->view;
    uint32_t           counts[BUCKETS] = {0}, low = 0, high = BUCKETS - 1, n = v->n_waiting;
    for (uint32_t i = 0; i < n; i++) counts[bucket_of(m->density[v->waiting[i]])]++;
    for (uint32_t sum = counts[high]; sum < MAIFS_OBSERVED * 3 / 4 && high > 0; sum += counts[high])
        high--;
    for (uint32_t sum = counts[0]; sum < MAIFS_OBSERVED / 4 && low < high; sum += counts[low])
        low++;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t t = v->waiting[i], b = bucket_of(m->density[t]);
        m->row[t] = CLUSTER_NONE;
        if ((b >= high || b < low) || n <= MAIFS_OBSERVED) observe_task(m, t);
    }
}

static void scale_values(Maifs *m) {
    maifs_net_observe(&m->net, m->loaded->w, &m->input, m->cache, m->u);
    for (uint32_t k = 0; k < m->input.n_jobs; k++)
        m->utilities[m->seen[k]].value *=
            repro_exp(MAIFS_VALUE_RANGE * m->u[k] * m->utilities[m->seen[k]].certainty);
    for (uint32_t i = 0; i < m->setup->n_servers; i++)
        server_plan_total(&m->plans[i], m->utilities);
}

static void observe_all(Maifs *m) {
    const ClusterView *v = m->view;
    m->input = (MaifsInput){.servers = m->servers,
                            .jobs = m->jobs,
                            .queue = m->queue,
                            .n_servers = m->setup->n_servers,
                            .merge = true};
    for (uint32_t i = 0; i < m->setup->n_servers; i++)
        maifs_features_server(m->setup, &m->plans[i], m->utilities,
                              m->servers + (size_t)i * MAIFS_SERVER);
    for (uint32_t i = 0; i < v->n_running; i++) observe_task(m, v->running[i]);
    observe_queue(m);
    maifs_features_queue(v, m->utilities, m->queue);
    scale_values(m);
}

void maifs_set_density(Maifs *m, uint32_t task) {
    const TaskUtility *w = &m->utilities[task];
    float gpus = w->gpus > 0 ? (float)w->gpus * (float)w->milli / CLUSTER_WHOLE_GPU : 0.1f;
    m->density[task] = w->value * w->levels[w->n_levels - 1].rate / gpus;
}

// Rate of a slice without co-runners, and the factor that co-runners leave.
static float alone_of(const Maifs *m, const ServerPlan *plan, const Resident *g) {
    const TaskUtility *w = &m->utilities[g->task];
    return server_plan_type_rate(m->setup, w, plan->server) * w->levels[g->level].rate;
}

static float corun_of(const Maifs *m, const ServerPlan *plan, const Resident *g) {
    return g->rate_factor / (g->spread_factor *
                             server_plan_type_rate(m->setup, &m->utilities[g->task], plan->server));
}

static void find_slowest(Maifs *m, const ServerPlan *plan) {
    for (uint32_t g = 0; g < plan->n; g++) {
        const Resident *x = &plan->at[g];
        float          *slowest = &m->slowest[2 * (size_t)x->task];
        if (!x->sliced) continue;
        slowest[0] = fminf(slowest[0], alone_of(m, plan, x));
        slowest[1] = fminf(slowest[1], corun_of(m, plan, x));
    }
}

static void match_slowest(Maifs *m, ServerPlan *plan) {
    bool any = false;
    for (uint32_t g = 0; g < plan->n; g++) {
        Resident    *x = &plan->at[g];
        const float *slowest = &m->slowest[2 * (size_t)x->task];
        if (!x->sliced) continue;
        float by = slowest[0] * slowest[1] / (alone_of(m, plan, x) * corun_of(m, plan, x));
        if (!(by < 1)) continue;
        x->spread_factor *= by;
        x->rate_factor *= by;
        any = true;
    }
    if (any) server_plan_total(plan, m->utilities);
}

// A gang runs at the rate of its slowest slice times its worst co-runner factor.
static void match_slices(Maifs *m) {
    for (uint32_t i = 0; i < m->view->n_running; i++)
        for (uint32_t k = 0; k < 2; k++) m->slowest[2 * (size_t)m->view->running[i] + k] = INFINITY;
    for (uint32_t i = 0; i < m->setup->n_servers; i++) find_slowest(m, &m->plans[i]);
    for (uint32_t i = 0; i < m->setup->n_servers; i++) match_slowest(m, &m->plans[i]);
}

// Tasks within their tenants' guarantees, running ones first, go before all others.
static void raise_guaranteed(Maifs *m, const ClusterView *v) {
    const float high = 1e3f;
    tenant_quota_clear(&m->tenants, v->setup);
    for (uint32_t i = 0; v->setup->quotas && i < v->n_running + v->n_waiting; i++) {
        bool     runs = i < v->n_running;
        uint32_t slot = runs ? v->running[i] : v->waiting[i - v->n_running];
        if (!tenant_quota_guaranteed(&m->tenants, &v->tasks[slot].job)) continue;
        tenant_quota_take(&m->tenants, &v->tasks[slot].job);
        m->utilities[slot].value *= high;
    }
    tenant_quota_open(&m->tenants, v);
}

void maifs_observe(Maifs *m, const ClusterView *v) {
    m->view = v;
    m->n_evicted = m->n_starts = m->n_chosen = m->n_explored = 0;
    memset(m->granted, 0, sizeof m->granted);
    m->drain_s = drain_of(v, m->params.spread);
    update_utilities(m, v->running, v->n_running);
    update_utilities(m, v->waiting, v->n_waiting);
    raise_guaranteed(m, v);
    for (uint32_t i = 0; i < m->setup->n_servers; i++)
        server_plan_init(&m->plans[i], v, i, m->utilities);
    match_slices(m);
    maifs_match_measured(m);
    maifs_probe(m);
    for (uint32_t i = 0; i < v->n_waiting; i++) maifs_set_density(m, v->waiting[i]);
    if (m->loaded->w == NULL) return;
    observe_all(m);
    for (uint32_t i = 0; i < v->n_waiting; i++) maifs_set_density(m, v->waiting[i]);
}

void maifs_teacher_values(const Maifs *m, float *u) {
    UtilityParams params = m->params;
    params.critical_boost = (float)m->cfg->critical_boost;
    for (uint32_t k = 0; k < m->input.n_jobs; k++) {
        const TaskUtility *w = &m->utilities[m->seen[k]];
        float x = repro_log(w->left_s / task_utility_effective_left(w, m->drain_s, &params)) /
                  MAIFS_VALUE_RANGE;
        u[k] = x > 1 ? 1 : x;
    }
}

typedef struct FeatureRow {  // filled from the left
    float   *at;
    uint32_t n, most;
} FeatureRow;

static void put(FeatureRow *r, double x) {
    CHECK(r->n < r->most);
    r->at[r->n++] = (float)x;
}

static void pad(FeatureRow *r) {
    while (r->n < r->most) r->at[r->n++] = 0;
}

static double log1(double x) { return repro_log((float)(1 + x)); }
static double hours(double seconds) { return log1(seconds / 60) / 8; }  // 1 is two days
static double ratio(double x, double of) { return of > 0 ? x / of : 0; }

typedef struct ResidentSums {
    double   work, longest, soonest, rate, unmet_rate, cores, memory;
    uint32_t shared, wide, n;
} ResidentSums;

static ResidentSums sum_residents(const ServerPlan *server, const TaskUtility *utilities) {
    ResidentSums c = {.soonest = 1e9};
    for (uint32_t i = 0; i < server->n; i++) {
        const Resident    *g = &server->at[i];
        const TaskUtility *w = &utilities[g->task];
        double             left = w->left_s;
        c.work += left * g->gpus;
        c.longest = fmax(c.longest, left);
        c.soonest = fmin(c.soonest, left);
        c.rate += resident_rate(g, w);
        c.unmet_rate += w->levels[w->n_levels - 1].rate - w->levels[g->level].rate;
        c.cores += g->cores_milli;
        c.memory += g->memory_mib;
        c.shared += g->rate_factor < 1;
        c.wide += g->sliced;
        c.n++;
    }
    return c;
}

void maifs_features_server(const ClusterSetup *s, const ServerPlan *server,
                           const TaskUtility *utilities, float *out) {
    FeatureRow   r = {.at = out, .most = MAIFS_SERVER};
    ResidentSums c = sum_residents(server, utilities);
    uint32_t     used = (uint32_t)__builtin_popcountll(server->used);
    put(&r, 1);
    put(&r, ratio(server->gpus - used, server->gpus));
    put(&r, 1 - ratio(c.cores, server->cores_milli));
    put(&r, 1 - ratio(c.memory, server->memory_mib));
    put(&r, hours(ratio(c.work, server->gpus)));
    put(&r, hours(c.longest));
    put(&r, c.n > 0 ? hours(c.soonest) : 0);
    put(&r, ratio(c.rate, c.n));
    put(&r, ratio(c.unmet_rate, c.n));
    put(&r, ratio(c.shared, c.n));
    put(&r, ratio(c.wide, c.n));
    put(&r, ratio(c.n, 16));
    put(&r, ratio(server->gpus, s->most_gpus));
    pad(&r);
}

void maifs_features_job(const ClusterView *v, const TaskUtility *w, const ClusterTask *t,
                        float *out) {
    FeatureRow          r = {.at = out, .most = MAIFS_JOB};
    const UtilityLevel *low = &w->levels[0], *top = &w->levels[w->n_levels - 1];
    bool                runs = t->state == CLUSTER_RUNNING;
    double              left = w->left_s, gpus = w->gpus * w->milli / 1000.0;
    put(&r, 1);
    put(&r, hours(left));
    put(&r, hours(left / fmax(top->rate, 0.1)));
    put(&r, hours(left * gpus));
    put(&r, log1(gpus) / 3);
    put(&r, w->wide);
    put(&r, w->gpus == 0);
    put(&r, runs);
    put(&r, hours((double)(v->now - t->job.submit) / 1e9));
    put(&r, hours((double)cluster_held(v, t) / 1e9));
    put(&r, hours(w->restart_s * 60) / 2);
    put(&r, fmin(t->preemptions, 8) / 8);
    put(&r, top->rate - 1);
    put(&r, low->rate);
    put(&r, low->cores_milli / 1e4);
    put(&r, top->cores_milli / 1e4);
    put(&r, low->memory_mib / 1e5);
    put(&r, top->memory_mib / 2e5);
    if (w->class != CLUSTER_NONE) {
        const ClusterProfile *p = &v->setup->profiles->at[w->class];
        put(&r, p->gpu_util);
        put(&r, p->gpu_memory_util);
        put(&r, p->gpu_gb / 16);
    }
    pad(&r);
}

void maifs_features_queue(const ClusterView *v, const TaskUtility *utilities, float *out) {
    FeatureRow r = {.at = out, .most = MAIFS_QUEUE};
    double     work = 0, longest = 0;
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        const TaskUtility *w = &utilities[v->waiting[i]];
        work += (double)w->left_s * w->gpus * w->milli / 1000.0;
        longest = fmax(longest, w->left_s);
    }
    put(&r, 1);
    put(&r, hours(work / (double)v->setup->gpus));
    put(&r, log1(v->n_waiting) / 8);
    put(&r, hours(longest));
}

void maifs_features_offer(const ServerPlan *server, const TaskUtility *w, const Offer *o,
                          float *out) {
    FeatureRow r = {.at = out, .most = MAIFS_OFFER};
    double     own = fmax(o->own, 1e-30), left = server->gpus;
    double     rate = w->levels[w->n_levels - 1].rate;
    left -= __builtin_popcountll(server->used | (o->corunners > 0 ? 0 : o->mask));
    put(&r, 1);
    put(&r, fmax(-2, fmin(2, o->gain / own)));
    put(&r, fmin(2, o->lost / own));
    put(&r, o->victims / 4.0);
    put(&r, o->corunners);
    put(&r, o->victims > 0);
    put(&r, o->level / (double)UTILITY_LEVELS);
    put(&r, o->rate);
    put(&r, ratio(o->rate, rate));
    put(&r, ratio(left, server->gpus));
    put(&r, left <= 0);
    put(&r, ratio(o->give, w->gpus));
    put(&r, w->levels[o->level].cores_milli * (double)task_utility_units(w, o->give) /
                (server->cores_milli + 1.0));
    put(&r, w->levels[o->level].memory_mib * (double)task_utility_units(w, o->give) /
                (server->memory_mib + 1.0));
    pad(&r);
}
