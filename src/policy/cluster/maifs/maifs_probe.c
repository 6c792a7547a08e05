// Probes: a running task of which little is known gets a third of its default cores until its rate
// is measured there, if what its belief gains is expected to save more work than that costs.
//
// At the default demand all classes have the same rate, so that a task that never leaves it is
// never known. What a probed task does not use stays free: it gets it back.
#include "policy/cluster/maifs/maifs.h"

static const uint32_t probe_part = 3;
static const double   probe_s = 30;                       // what a probe costs, at most
static const double   probe_least_sd = 0.3;               // less does not change what is decided
static const TimeNs   probe_most = 120 * CLUSTER_SECOND;  // then it ends without a measurement
static const TimeNs   probe_look = 15 * CLUSTER_SECOND;   // between decisions meanwhile

bool maifs_probes(const Maifs *m, uint32_t task) {
    const MaifsProbe *p = &m->probes[task];
    return m->cfg->probing > 0 && p->job == m->view->tasks[task].job.id + 1 && p->open;
}

static bool worth(const Maifs *m, const ClusterTask *t) {
    double probing = m->cfg->probing * (double)m->stances[t->slices[0].server].probes;
    double sd = t->spread.rate_sd, left_s = (double)cluster_left(m->view, t) / 1e9;
    return sd > probe_least_sd && probing * sd * sd * left_s > probe_s;
}

// A class with a weight is a name, whose jobs all learn from one probe.
static bool probed_by_another(const Maifs *m, const ClusterTask *t) {
    if (!(m->setup->profiles->at[t->job.class].weight > 0)) return false;
    for (uint32_t i = 0; i < m->view->n_running; i++)
        if (m->view->tasks[m->view->running[i]].job.class == t->job.class &&
            maifs_probes(m, m->view->running[i]))
            return true;
    return false;
}

static bool alone(const ServerPlan *plan, const Resident *x) {
    for (uint32_t g = 0; g < plan->n; g++)
        if (plan->at[g].task != x->task && (plan->at[g].mask & x->mask) != 0) return false;
    return true;
}

static uint32_t probe_cores(const ClusterJob *j) { return j->cores_milli / probe_part; }

static bool has_few_cores(const ClusterTask *t) {
    return t->measured > 0 && t->slices[0].cores_milli <= probe_cores(&t->job);
}

static bool may_begin(const Maifs *m, const ServerPlan *plan, const Resident *x) {
    const ClusterTask *t = &m->view->tasks[x->task];
    return t->n_slices == 1 && t->owed == 0 && m->utilities[x->task].class != CLUSTER_NONE &&
           probe_cores(&t->job) > 0 && alone(plan, x) && !has_few_cores(t) && worth(m, t) &&
           !probed_by_another(m, t);
}

// Each task once.
static void look_at(Maifs *m, const ServerPlan *plan, const Resident *x) {
    const ClusterTask *t = &m->view->tasks[x->task];
    MaifsProbe        *p = &m->probes[x->task];
    if (p->job == t->job.id + 1) {
        bool measured = t->measured > 0 && t->measured_at > p->begin;
        p->open = p->open && !measured && m->view->now < p->begin + probe_most;
    } else if (may_begin(m, plan, x)) {
        *p = (MaifsProbe){.job = t->job.id + 1, .begin = m->view->now, .open = true};
    }
    if (maifs_probes(m, x->task)) m->look_at = m->view->now + probe_look;
}

void maifs_probe(Maifs *m) {
    m->look_at = 0;
    if (!(m->cfg->probing > 0) || m->setup->profiles == NULL) return;
    for (uint32_t i = 0; i < m->setup->n_servers; i++)
        for (uint32_t g = 0; g < m->plans[i].n; g++) look_at(m, &m->plans[i], &m->plans[i].at[g]);
}

uint32_t maifs_probe_cores(const Maifs *m, uint32_t task, uint32_t cores_milli) {
    uint32_t few = probe_cores(&m->view->tasks[task].job);
    return maifs_probes(m, task) && !maifs_taken(m, task) && few < cores_milli ? few : cores_milli;
}
