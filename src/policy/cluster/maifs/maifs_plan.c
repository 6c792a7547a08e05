// The result of a decision as actions in an executable order, and the allocation before it.
#include "policy/cluster/maifs/maifs.h"

static ClusterSlice *put(Maifs *m, const Resident *g, uint32_t server) {
    ClusterSlice *s = &m->slices[m->n_slices++];
    *s = (ClusterSlice){.mask = g->mask,
                        .server = server,
                        .gpus = g->gpus,
                        .gpu_milli = g->milli,
                        .cores_milli = maifs_probe_cores(m, g->task, g->cores_milli),
                        .memory_mib = g->memory_mib};
    return s;
}

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

// Shrinking resizes come first, so that their resources are free; `up`: the growing part.
static uint32_t resize(Maifs *m, uint32_t task, bool up, ClusterAction *out) {
    const ClusterTask *t = &m->view->tasks[task];
    ClusterSlice      *first = m->slices + m->n_slices;
    bool               shrinks = false, grows = false;
    if (maifs_taken(m, task)) return 0;
    for (uint32_t i = 0; i < t->n_slices; i++) {
        const ClusterSlice *was = &t->slices[i];
        const Resident     *g = server_plan_find(&m->plans[was->server], task);
        if (g == NULL) return 0;  // the server is left alone
        ClusterSlice *s = put(m, g, was->server);
        shrinks = shrinks || s->cores_milli < was->cores_milli || s->memory_mib < was->memory_mib ||
                  s->gpu_milli < was->gpu_milli;
        grows = grows || s->cores_milli > was->cores_milli || s->memory_mib > was->memory_mib ||
                s->gpu_milli > was->gpu_milli;
        if (up) continue;
        s->cores_milli = least(s->cores_milli, was->cores_milli);
        s->memory_mib = least(s->memory_mib, was->memory_mib);
        s->gpu_milli = least(s->gpu_milli, was->gpu_milli);
    }
    if (up ? !grows : !shrinks) {
        m->n_slices -= t->n_slices;
        return 0;
    }
    *out = (ClusterAction){.verb = CLUSTER_RESIZE,
                           .task = task,
                           .n_slices = t->n_slices,
                           .slices = first,
                           .probe = !up && maifs_probes(m, task) &&
                                    m->probes[task].begin == m->view->now};
    return 1;
}

static uint32_t start_all(Maifs *m, ClusterAction *out) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_starts; i++) {
        const MaifsStart *x = &m->starts[i];
        ClusterSlice     *s = put(m, server_plan_find(&m->plans[x->server], x->task), x->server);
        if (n > 0 && out[n - 1].task == x->task)
            out[n - 1].n_slices++;
        else
            out[n++] =
                (ClusterAction){.verb = CLUSTER_START, .task = x->task, .n_slices = 1, .slices = s};
    }
    return n;
}

uint32_t maifs_plan(Maifs *m, ClusterAction *out) {
    const ClusterView *v = m->view;
    uint32_t           n = 0;
    m->n_slices = 0;
    for (uint32_t i = 0; i < m->n_evicted; i++)
        out[n++] = (ClusterAction){.verb = CLUSTER_PREEMPT, .task = m->evicted[i]};
    for (uint32_t i = 0; i < v->n_running; i++) n += resize(m, v->running[i], false, out + n);
    n += start_all(m, out + n);
    for (uint32_t i = 0; i < v->n_running; i++) n += resize(m, v->running[i], true, out + n);
    return n;
}

// Lowest level among the slices of every gang.
static void find_min_levels(Maifs *m) {
    for (uint32_t i = 0; i < m->setup->n_servers; i++)
        for (uint32_t g = 0; g < m->plans[i].n; g++)
            if (m->plans[i].at[g].sliced) m->min_level[m->plans[i].at[g].task] = UTILITY_LEVELS;
    for (uint32_t i = 0; i < m->setup->n_servers; i++)
        for (uint32_t g = 0; g < m->plans[i].n; g++) {
            const Resident *x = &m->plans[i].at[g];
            if (x->sliced && x->level < m->min_level[x->task]) m->min_level[x->task] = x->level;
        }
}

// A level above that of the gang's slowest slice gains nothing.
static bool cap_gangs(const Maifs *m, ServerPlan *plan) {
    bool any = false;
    for (uint32_t g = 0; g < plan->n; g++) {
        Resident *x = &plan->at[g];
        if (!x->sliced || x->level <= m->min_level[x->task]) continue;
        x->cap = m->min_level[x->task];
        any = true;
    }
    return any;
}

void maifs_allocate(Maifs *m) {
    for (uint32_t i = 0; i < m->setup->n_servers; i++)
        server_plan_allocate(&m->plans[i], m->setup, m->utilities);
    for (uint32_t pass = 0; pass < 2; pass++) {
        find_min_levels(m);
        for (uint32_t i = 0; i < m->setup->n_servers; i++)
            if (cap_gangs(m, &m->plans[i]))
                server_plan_allocate(&m->plans[i], m->setup, m->utilities);
    }
}
