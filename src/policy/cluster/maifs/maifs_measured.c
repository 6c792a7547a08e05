// Measured rates of running tasks that share their GPUs or are cut into slices, where they are
// slower than believed.
#include "policy/cluster/maifs/maifs.h"

// A measured rate counts below this part of the believed one.
static const float worse = 0.85f;

static uint64_t starts_beside(const Maifs *m, const ServerPlan *plan, const Resident *x) {
    uint64_t sum = 0;
    for (uint32_t g = 0; g < plan->n; g++)
        if ((plan->at[g].mask & x->mask) != 0 && plan->at[g].task != x->task)
            sum += m->view->tasks[plan->at[g].task].entry + 1;
    return sum;
}

// The rate that a task misses beside others, or cut into slices, holds here and not elsewhere.
static bool note_measured(Maifs *m, const ServerPlan *plan, const Resident *x) {
    const ClusterTask *t = &m->view->tasks[x->task];
    MaifsMeasured     *r = &m->measured[x->task];
    uint64_t           beside = starts_beside(m, plan, x);
    if (t->slices[0].server != plan->server) return false;
    if (r->entry != t->entry + 1 || r->beside != beside)
        *r = (MaifsMeasured){t->entry + 1, beside, 1};
    if (t->measured > 0 && (beside != 0 || x->sliced)) {
        float by = (float)t->measured / resident_rate(x, &m->utilities[x->task]);
        r->factor = by < worse ? by : 1;
    }
    return r->factor < 1;
}

static void apply_measured(Maifs *m, uint32_t task) {
    const ClusterTask *t = &m->view->tasks[task];
    for (uint32_t i = 0; i < t->n_slices; i++) {
        ServerPlan *plan = &m->plans[t->slices[i].server];
        for (uint32_t g = 0; g < plan->n; g++) {
            if (plan->at[g].task != task) continue;
            plan->at[g].spread_factor *= m->measured[task].factor;
            plan->at[g].rate_factor *= m->measured[task].factor;
        }
        server_plan_total(plan, m->utilities);
    }
}

void maifs_match_measured(Maifs *m) {
    if (!m->cfg->measured) return;
    for (uint32_t i = 0; i < m->setup->n_servers; i++)
        for (uint32_t g = 0; g < m->plans[i].n; g++)
            if (note_measured(m, &m->plans[i], &m->plans[i].at[g]))
                apply_measured(m, m->plans[i].at[g].task);
}

bool maifs_is_worse(const Maifs *m, uint32_t task) {
    const MaifsMeasured *r = &m->measured[task];
    return m->cfg->measured && r->entry == m->view->tasks[task].entry + 1 && r->factor < 1;
}

float maifs_relief(const Maifs *m, const ServerPlan *plan, const Resident *x) {
    float sum = 0;
    for (uint32_t g = 0; g < plan->n; g++) {
        const Resident    *o = &plan->at[g];
        const TaskUtility *w = &m->utilities[o->task];
        if (o->task == x->task || (o->mask & x->mask) == 0 || o->sliced ||
            !maifs_is_worse(m, o->task))
            continue;
        float kept = o->rate_factor / server_plan_type_rate(m->setup, w, plan->server);
        sum += resident_utility(o, w) * (1 / kept - 1);
    }
    return sum;
}
