// From what inns agreed on to steps that an engine can take one after the other.
#include "policy/cluster/maifs.h"

static ClusterSlice *put(Maifs *m, const Guest *g, uint32_t server) {
    ClusterSlice *s = &m->slices[m->n_slices++];
    *s = (ClusterSlice){.mask = g->mask,
                        .server = server,
                        .gpus = g->gpus,
                        .gpu_milli = g->milli,
                        .cores_milli = g->cores_milli,
                        .memory_mib = g->memory_mib};
    return s;
}

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static bool same(const ClusterSlice *s, const Guest *g) {
    return s->cores_milli == g->cores_milli && s->memory_mib == g->memory_mib &&
           s->gpu_milli == g->milli;
}

static bool grows(const ClusterSlice *s, const Guest *g) {
    return s->cores_milli < g->cores_milli || s->memory_mib < g->memory_mib ||
           s->gpu_milli < g->milli;
}

static ClusterAction level(const Guest *g, const ClusterSlice *s) {
    return (ClusterAction){.verb = CLUSTER_LEVEL, .task = g->task, .n_slices = 1, .slices = s};
}

// Down first, so that what others get is free by then; `up`: the rest of the way.
static uint32_t levels(Maifs *m, const Inn *h, bool up, ClusterAction *out) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->n; i++) {
        const Guest *g = &h->at[i];
        if (g->fresh || g->wide) continue;
        const ClusterSlice *was = m->view->tasks[g->task].slices;
        if (same(was, g) || (up && !grows(was, g))) continue;
        ClusterSlice *s = put(m, g, h->server);
        if (!up) {
            s->cores_milli = least(s->cores_milli, was->cores_milli);
            s->memory_mib = least(s->memory_mib, was->memory_mib);
            s->gpu_milli = least(s->gpu_milli, was->gpu_milli);
        }
        out[n++] = level(g, s);
    }
    return n;
}

static const Guest *guest_of(const Inn *h, uint32_t task) {
    for (uint32_t i = 0; i < h->n; i++)
        if (h->at[i].task == task) return &h->at[i];
    return NULL;
}

static uint32_t start_all(Maifs *m, ClusterAction *out) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_starts; i++) {
        const MaifsStart *x = &m->starts[i];
        ClusterSlice     *s = put(m, guest_of(&m->inns[x->inn], x->task), x->inn);
        if (n > 0 && out[n - 1].task == x->task)
            out[n - 1].n_slices++;
        else
            out[n++] =
                (ClusterAction){.verb = CLUSTER_START, .task = x->task, .n_slices = 1, .slices = s};
    }
    return n;
}

uint32_t maifs_plan(Maifs *m, ClusterAction *out) {
    uint32_t n = 0;
    m->n_slices = 0;
    for (uint32_t i = 0; i < m->n_evicted; i++)
        out[n++] = (ClusterAction){.verb = CLUSTER_PREEMPT, .task = m->evicted[i]};
    for (uint32_t i = 0; i < m->setup->n_servers; i++) n += levels(m, &m->inns[i], false, out + n);
    n += start_all(m, out + n);
    for (uint32_t i = 0; i < m->setup->n_servers; i++) n += levels(m, &m->inns[i], true, out + n);
    return n;
}
