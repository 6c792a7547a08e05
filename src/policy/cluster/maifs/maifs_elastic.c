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

// Jobs wider than a server keep their submitted number, others stay on one server.
static bool allowed(const Maifs *m, const ClusterJob *j, uint32_t gpus) {
    uint32_t most = m->setup->most_gpus;
    return gpus == j->gpus || (j->gpus <= most && gpus <= most);
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

// It runs alone on whole GPUs of one server.
static bool may_change(const Maifs *m, uint32_t task) {
    const ClusterTask *t = &m->view->tasks[task];
    return t->job.gpus_max > 0 && t->n_slices == 1 && t->slices[0].gpu_milli == CLUSTER_WHOLE_GPU &&
           !m->plans[t->slices[0].server].full;
}

// The resident's GPUs change: its task is preempted and starts again in this plan.
static void change(Maifs *m, ServerPlan *to, uint32_t task, uint64_t mask) {
    ServerPlan *from = &m->plans[m->view->tasks[task].slices[0].server];
    Resident    g = *server_plan_find(from, task);
    ClusterJob  as = maifs_job(m, task);
    tenant_quota_give(&m->tenants, &as);
    server_plan_remove(from, task);
    set_gpus(m, task, (uint32_t)__builtin_popcountll(mask));
    as = maifs_job(m, task);
    tenant_quota_take(&m->tenants, &as);
    g.mask = mask;
    g.gpus = (uint8_t)as.gpus;
    g.cores_milli = as.gpus * m->utilities[task].levels[0].cores_milli;
    g.memory_mib = as.gpus * m->utilities[task].levels[0].memory_mib;
    g.incoming = true;
    g.pinned = false;
    g.level = 0;
    server_plan_add(to, &g);
    server_plan_allocate(from, m->setup, m->utilities);
    if (to != from) server_plan_allocate(to, m->setup, m->utilities);
    from->stale = to->stale = true;
    m->outcome[task] = MAIFS_MIGRATED;
    m->evicted[m->n_evicted++] = task;
    m->starts[m->n_starts++] = (MaifsStart){task, to->server};
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

static void shrink(Maifs *m, const GpuSplitItem *i) {
    ServerPlan     *plan = &m->plans[m->view->tasks[i->slot].slices[0].server];
    const Resident *g = server_plan_find(plan, i->slot);
    if (!feeds(m, plan, i->slot, target(i))) return;
    change(m, plan, i->slot, gpu_mask_lowest(g->mask, target(i)));
}

// What the division gave to a running task is not taken by offers.
static void keep(Maifs *m, uint32_t task) {
    ServerPlan *plan = &m->plans[m->view->tasks[task].slices[0].server];
    for (uint32_t i = 0; i < plan->n; i++)
        if (plan->at[i].task == task) plan->at[i].firm = true;
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

// The most GPUs up to the target that are free there beside its own, are fed, and are worth it.
static uint32_t reach(const Maifs *m, const ServerPlan *plan, const GpuSplitItem *i, uint32_t has) {
    uint32_t most = free_gpus(plan) + has;
    if (plan->full || plan->n + 1 >= SERVER_PLAN_RESIDENTS) return 0;
    if (!cluster_type_fits(m->setup, &m->view->tasks[i->slot].job, plan->server)) return 0;
    if (most > target(i)) most = target(i);
    double now = value(m, m->view, i->slot, i->held);
    while (most > i->held &&
           (!(value(m, m->view, i->slot, most) > now) || !feeds(m, plan, i->slot, most)))
        most--;
    return most > i->held ? most : 0;
}

static bool within_limit(Maifs *m, uint32_t task, uint32_t gpus) {
    ClusterJob now = maifs_job(m, task), then = cluster_job_on(&m->view->tasks[task].job, gpus);
    tenant_quota_give(&m->tenants, &now);
    bool fits = tenant_quota_fits(&m->tenants, &then);
    tenant_quota_take(&m->tenants, &now);
    return fits;
}

// On its own server, or on the one where it reaches more.
static void grow(Maifs *m, const GpuSplitItem *i) {
    ServerPlan     *own = &m->plans[m->view->tasks[i->slot].slices[0].server], *to = own;
    const Resident *g = server_plan_find(own, i->slot);
    uint32_t        most = reach(m, own, i, i->held);
    for (uint32_t s = 0; s < m->setup->n_servers && most < target(i); s++) {
        uint32_t here = &m->plans[s] != own ? reach(m, &m->plans[s], i, 0) : 0;
        if (here <= most) continue;
        most = here;
        to = &m->plans[s];
    }
    if (most == 0 || !within_limit(m, i->slot, most)) return;
    uint64_t free = gpu_mask_all(to->gpus) & ~to->used, kept = to == own ? g->mask : 0;
    uint32_t more = most - (uint32_t)__builtin_popcountll(kept);
    change(m, to, i->slot, kept | gpu_mask_lowest(free, more));
}

static bool alone(const ServerPlan *plan, const Resident *x) {
    for (uint32_t k = 0; k < plan->n; k++)
        if (plan->at[k].task != x->task && (plan->at[k].mask & x->mask) != 0) return false;
    return true;
}

void maifs_grow(Maifs *m) {
    for (uint32_t k = 0; k < m->split.n; k++) {
        const GpuSplitItem *i = &m->split.items[k];
        if (i->held == 0 || target(i) <= i->held || maifs_taken(m, i->slot)) continue;
        const ServerPlan *own = &m->plans[m->view->tasks[i->slot].slices[0].server];
        if (alone(own, server_plan_find(own, i->slot))) grow(m, i);
    }
}
