// Elastic tasks: how many GPUs each is offered, keeps or grows to.
//
// GPUs that are free or held by elastic tasks are divided among these and all that wait for a large
// utility (GpuSplit). A task that changes while it runs loses what its restart costs.
#include <math.h>
#include <string.h>

#include "contract/rate.h"
#include "policy/cluster/maifs/maifs.h"

// Rate relative to the submitted number, less the restart of a running task over its time left.
static double rate_on(const Maifs *m, uint32_t task, uint32_t gpus) {
    const ClusterTask *t = &m->view->tasks[task];
    const TaskUtility *w = &m->utilities[task];
    double             rate = rate_scaling(m->setup, &t->job, gpus);
    if (t->state != CLUSTER_RUNNING || gpus == w->gpus) return rate;
    double restart_s = (double)w->restart_s * m->cfg->restart_weight;
    return (double)w->left_s / (restart_s + (double)w->left_s / rate);
}

// Weight of short jobs, as tuned for optimus.
static const double urgency = 0.7;

// Only jobs wider than a server may be on several.
static bool allowed(const Maifs *m, const ClusterJob *j, uint32_t gpus) {
    uint32_t most = m->setup->most_gpus;
    return gpus == j->gpus || gpus <= most || j->gpus > most;
}

static double value(const void *self, const ClusterView *v, uint32_t task, uint32_t gpus) {
    const Maifs       *m = self;
    const TaskUtility *w = &m->utilities[task];
    if (!allowed(m, &v->tasks[task].job, gpus)) return 0;
    const ClusterJob *j = &v->tasks[task].job;
    double            weight = j->tenant != CLUSTER_NONE ? m->setup->tenants[j->tenant].weight : 1;
    return weight * rate_on(m, task, gpus) * pow((double)w->left_s, -urgency);
}

// Offers, residents and values of the task are on so many GPUs from now on.
static void set_gpus(Maifs *m, uint32_t task, uint32_t gpus) {
    const ClusterJob *j = &m->view->tasks[task].job;
    TaskUtility      *w = &m->utilities[task], old = *w;
    ClusterJob        as = cluster_job_on(j, gpus);
    if (gpus == w->gpus) return;
    task_utility_init(w, m->setup, &as, &m->params);
    w->left_s = old.left_s;
    w->certainty = old.certainty;
    w->scaling = (float)rate_scaling(m->setup, j, gpus);
    w->value = old.value * w->scaling / old.scaling;
    maifs_set_density(m, task);
}

// It runs on whole GPUs.
static bool may_change(const Maifs *m, uint32_t task) {
    const ClusterTask *t = &m->view->tasks[task];
    for (uint32_t i = 0; i < t->n_slices; i++)
        if (t->slices[i].gpu_milli != CLUSTER_WHOLE_GPU || m->plans[t->slices[i].server].full)
            return false;
    return t->job.gpus_max > 0;
}

enum { PIECES = 32 };

typedef struct Pieces {  // GPUs of a task on several servers
    uint32_t n, server[PIECES];
    uint64_t mask[PIECES];
} Pieces;

static void leave(Maifs *m, uint32_t task) {
    const ClusterTask *t = &m->view->tasks[task];
    ClusterJob         as = maifs_job(m, task);
    tenant_quota_give(&m->tenants, &as);
    for (uint32_t i = 0; i < t->n_slices; i++) {
        ServerPlan *plan = &m->plans[t->slices[i].server];
        server_plan_remove(plan, task);
        server_plan_allocate(plan, m->setup, m->utilities);
        plan->stale = true;
    }
    m->evicted[m->n_evicted++] = task;
}

// The task is preempted and starts again in this plan.
static void change(Maifs *m, uint32_t task, uint32_t gpus, const Pieces *p) {
    const TaskUtility *w = &m->utilities[task];
    leave(m, task);
    set_gpus(m, task, gpus);
    for (uint32_t i = 0; i < p->n; i++) {
        ServerPlan *plan = &m->plans[p->server[i]];
        uint32_t    here = (uint32_t)__builtin_popcountll(p->mask[i]);
        Resident    g = {.mask = p->mask[i],
                         .task = task,
                         .cores_milli = here * w->levels[0].cores_milli,
                         .memory_mib = here * w->levels[0].memory_mib,
                         .gpus = (uint8_t)here,
                         .cap = UTILITY_LEVELS,
                         .incoming = true,
                         .sliced = p->n > 1,
                         .spread_factor = server_plan_spread(m->setup, w, p->n)};
        server_plan_add(plan, &g);
        server_plan_allocate(plan, m->setup, m->utilities);
        plan->stale = true;
        m->starts[m->n_starts++] = (MaifsStart){task, plan->server};
    }
    ClusterJob as = maifs_job(m, task);
    tenant_quota_take(&m->tenants, &as);
    m->outcome[task] = MAIFS_MIGRATED;
}

// The task's lowest level fits with so many GPUs, beside the others at theirs.
static bool feeds(const Maifs *m, const ServerPlan *plan, uint32_t task, uint32_t gpus) {
    ClusterJob  as = cluster_job_on(&m->view->tasks[task].job, gpus);
    VictimSet   self = {{0}};
    TaskUtility w;
    Headroom    f;
    task_utility_init(&w, m->setup, &as, &m->params);
    for (uint32_t i = 0; i < plan->n; i++)
        if (plan->at[i].task == task) victim_set_put(&self, i, true);
    server_plan_headroom(plan, &self, m->utilities, &f);
    return f.cores_milli >= (int64_t)gpus * w.levels[0].cores_milli &&
           f.memory_mib >= (int64_t)gpus * w.levels[0].memory_mib;
}

static uint32_t target(const GpuSplitItem *i) { return i->options[i->at].gpus; }

// What a task that waits is offered: what it was given, or else as few as it may have.
static uint32_t least_of(const Maifs *m, const GpuSplitItem *i) {
    const ClusterJob *j = &m->view->tasks[i->slot].job;
    if (target(i) > 0) return target(i);
    return allowed(m, j, j->gpus_min) ? j->gpus_min : j->gpus;
}

// GPUs of a server that are free or the task's own.
static uint64_t open_to(const Maifs *m, const ServerPlan *plan, uint32_t task) {
    const Resident *g = server_plan_find(plan, task);
    uint64_t        free = gpu_mask_all(plan->gpus) & ~plan->used;
    bool            room = !plan->full && plan->n + 1 < SERVER_PLAN_RESIDENTS;
    bool            fits = cluster_server_fits(m->setup, &m->view->tasks[task].job, plan->server);
    return room && fits ? free | (g != NULL ? g->mask : 0) : 0;
}

static bool has_piece(const Pieces *p, uint32_t server) {
    for (uint32_t i = 0; i < p->n; i++)
        if (p->server[i] == server) return true;
    return false;
}

// The server with the most open GPUs up to `gpus`, its own first; CLUSTER_NONE: there is none.
static uint32_t best_server(const Maifs *m, uint32_t task, uint32_t gpus, const Pieces *p) {
    uint32_t best = CLUSTER_NONE, most = 0;
    for (uint32_t i = 0; i < m->setup->n_servers; i++) {
        uint32_t here = (uint32_t)__builtin_popcountll(open_to(m, &m->plans[i], task));
        bool     own = server_plan_find(&m->plans[i], task) != NULL;
        if (here > gpus) here = gpus;
        if (here == 0 || has_piece(p, i) || 2 * here + own <= most) continue;
        most = 2 * here + own;
        best = i;
    }
    return best;
}

// On as few servers as their open GPUs allow.
static bool lay_out(const Maifs *m, uint32_t task, uint32_t gpus, Pieces *p) {
    for (p->n = 0; gpus > 0 && p->n < PIECES; p->n++) {
        uint32_t server = best_server(m, task, gpus, p);
        if (server == CLUSTER_NONE) return false;
        const ServerPlan *plan = &m->plans[server];
        const Resident   *g = server_plan_find(plan, task);
        uint64_t          open = open_to(m, plan, task), own = g != NULL ? g->mask : 0;
        uint32_t          here = (uint32_t)__builtin_popcountll(open);
        uint32_t          kept = (uint32_t)__builtin_popcountll(own);
        if (here > gpus) here = gpus;
        if (kept > here) kept = here;
        if (!feeds(m, plan, task, here)) return false;
        p->server[p->n] = server;
        p->mask[p->n] = gpu_mask_lowest(own, kept) | gpu_mask_lowest(open & ~own, here - kept);
        gpus -= here;
    }
    return gpus == 0;
}

// Whole servers, as far as a job on several has them, and not more servers than necessary.
static bool compact(const Maifs *m, uint32_t gpus, const Pieces *p) {
    return p->n == 1 || p->n <= (gpus + m->setup->most_gpus - 1) / m->setup->most_gpus;
}

static void shrink(Maifs *m, const GpuSplitItem *i) {
    Pieces p;
    if (lay_out(m, i->slot, target(i), &p)) change(m, i->slot, target(i), &p);
}

// What the division gave to a running task is not taken by offers.
static void keep(Maifs *m, uint32_t task) {
    const ClusterTask *t = &m->view->tasks[task];
    for (uint32_t i = 0; i < t->n_slices; i++) {
        ServerPlan *plan = &m->plans[t->slices[i].server];
        for (uint32_t k = 0; k < plan->n; k++)
            if (plan->at[k].task == task) plan->at[k].firm = true;
    }
}

void maifs_divide(Maifs *m) {
    const ClusterView *v = m->view;
    uint64_t           gpus = 0;
    m->split.n = 0;
    if (!m->setup->elastic || !m->cfg->elastic) return;
    m->split.value = value;
    m->split.self = m;
    for (uint32_t i = 0; i < m->setup->n_servers; i++)
        gpus += m->plans[i].gpus - (uint32_t)__builtin_popcountll(m->plans[i].used);
    for (uint32_t i = 0; i < v->n_running; i++)
        if (may_change(m, v->running[i])) gpus += gpu_split_add(&m->split, v, v->running[i]);
    for (uint32_t i = 0; i < v->n_waiting; i++)
        if (v->tasks[v->waiting[i]].job.gpus > 0) (void)gpu_split_add(&m->split, v, v->waiting[i]);
    gpu_split_run(&m->split, gpus);
    for (uint32_t k = 0; k < m->split.n; k++) {
        const GpuSplitItem *i = &m->split.items[k];
        const ClusterJob   *j = &v->tasks[i->slot].job;
        if (i->held == 0 && j->gpus_max > 0) set_gpus(m, i->slot, least_of(m, i));
        if (i->held > target(i)) shrink(m, i);
        if (i->held > 0) keep(m, i->slot);
    }
}

static uint32_t free_gpus(const ServerPlan *plan) {
    return plan->full ? 0 : plan->gpus - (uint32_t)__builtin_popcountll(plan->used);
}

bool maifs_fit_smaller(Maifs *m, bool fewest) {
    uint32_t most = 0;
    bool     any = false;
    for (uint32_t i = 0; i < m->setup->n_servers; i++)
        if (free_gpus(&m->plans[i]) > most) most = free_gpus(&m->plans[i]);
    for (uint32_t k = 0; k < m->split.n; k++) {
        const GpuSplitItem *i = &m->split.items[k];
        const ClusterJob   *j = &m->view->tasks[i->slot].job;
        bool                waits = i->held == 0 && j->gpus_max > 0 && !maifs_taken(m, i->slot);
        uint32_t            to = fewest ? j->gpus_min : most;
        if (!waits || to < j->gpus_min || !allowed(m, j, to)) continue;
        if (m->utilities[i->slot].gpus <= to) continue;
        set_gpus(m, i->slot, to);
        any = true;
    }
    return any;
}

static bool within_limit(Maifs *m, uint32_t task, uint32_t gpus) {
    ClusterJob now = maifs_job(m, task), then = cluster_job_on(&m->view->tasks[task].job, gpus);
    tenant_quota_give(&m->tenants, &now);
    bool fits = tenant_quota_fits(&m->tenants, &then);
    tenant_quota_take(&m->tenants, &now);
    return fits;
}

// To the target, or the largest number below it that has a place and is worth it.
static void grow(Maifs *m, const GpuSplitItem *i) {
    double now = value(m, m->view, i->slot, i->held);
    Pieces p;
    for (uint32_t k = i->at; i->options[k].gpus > i->held; k--) {
        uint32_t gpus = i->options[k].gpus;
        if (!(i->options[k].value > now) || !within_limit(m, i->slot, gpus)) continue;
        if (!lay_out(m, i->slot, gpus, &p) || !compact(m, gpus, &p)) continue;
        change(m, i->slot, gpus, &p);
        return;
    }
}

// No task shares its GPUs.
static bool alone(const Maifs *m, uint32_t task) {
    const ClusterTask *t = &m->view->tasks[task];
    for (uint32_t i = 0; i < t->n_slices; i++) {
        const ServerPlan *plan = &m->plans[t->slices[i].server];
        for (uint32_t k = 0; k < plan->n; k++)
            if (plan->at[k].task != task && (plan->at[k].mask & t->slices[i].mask) != 0)
                return false;
    }
    return true;
}

void maifs_grow(Maifs *m) {
    for (uint32_t k = 0; k < m->split.n; k++) {
        const GpuSplitItem *i = &m->split.items[k];
        if (i->held == 0 || target(i) <= i->held || maifs_taken(m, i->slot)) continue;
        if (alone(m, i->slot)) grow(m, i);
    }
}
