// The policy's view: cores available to new blocks, and requests that could be started.
#include <math.h>

#include "base/clock.h"
#include "node/live/live_int.h"

enum { MODEST_PARTS = 4 };  // of the use of the busiest tenant

uint32_t live_busiest(const NodeLive *l, uint32_t but) {
    uint32_t best = UINT32_MAX, most = 0;
    for (uint32_t k = 0; k < l->queue.n_running; k++) {
        uint32_t t = l->queue.requests[l->queue.running[k]].tenant;
        if (t == but || l->models[t].cores <= most) continue;
        best = t;
        most = l->models[t].cores;
    }
    return best;
}

Cores live_free(const NodeLive *l) {
    uint32_t n = atomic_load_explicit(&l->budget, memory_order_relaxed);
    if (l->rule != NULL && l->rule->setup.machine->n_cores < n) n = l->rule->setup.machine->n_cores;
    Cores within = cores_all(n);
    return cores_intersection(l->idle, &within);
}

static uint32_t own_kept(const LiveModel *m) {
    return m->min_cores > m->cores ? m->min_cores - m->cores : 0;
}

uint32_t live_kept(const NodeLive *l) {
    uint32_t n = 0;
    for (uint32_t i = 0; l->limited && i < l->n_models; i++) n += own_kept(&l->models[i]);
    return n;
}

// Cores reserved for others are withheld, unless no block runs at all.
uint32_t live_allowance(const NodeLive *l, uint32_t tenant, uint32_t kept) {
    const LiveModel *m = &l->models[tenant];
    Cores            open = live_free(l);
    uint32_t         free = cores_count(&open), own = own_kept(m), others = kept - own;
    uint32_t         n = free > others ? free - others : 0;
    if (!l->limited) return free;
    if (n < own) n = own < free ? own : free;
    if (n == 0 && l->queue.n_running == l->queue.n_demoted) n = 1;
    if (m->max_cores == 0 || m->cores + n <= m->max_cores) return n;
    return m->max_cores > m->cores ? m->max_cores - m->cores : 0;
}

// Late requests may use at most half of the contexts.
static bool has_place(const LiveRequest *x, const LiveModel *m) {
    if (x->ctx != NULL) return true;
    return m->free != NULL && (!live_is_late(x) || 2 * m->begun < m->n_contexts);
}

// Whether it could start now: a context is free and its tenant may have cores.
static bool startable(const NodeLive *l, uint32_t i, uint32_t kept) {
    uint32_t tenant = l->queue.requests[i].tenant;
    if (!has_place(&l->beside[i], &l->models[tenant])) return false;
    return !l->limited || live_allowance(l, tenant, kept) > 0;
}

// 0: can meet its deadline, 1: late or without a target, 2: degraded.
static uint32_t tier(const LiveRequest *x) { return x->degraded ? 2 : x->behind_all; }

// Requests that cannot start are hidden, because a policy would hold cores free for them. Others
// are ordered by tier, for policies that look at the first few.
static void arrange(NodeLive *l, NodeView *v) {
    uint32_t n = 0, kept = live_kept(l);
    for (uint32_t pass = 0; pass < 3; pass++)
        for (uint32_t k = 0; k < v->n_waiting && (pass == 0 || l->n_behind > 0); k++) {
            uint32_t i = v->waiting[k];
            if (tier(&l->beside[i]) == pass && startable(l, i, kept)) l->shown[n++] = i;
        }
    v->waiting = l->shown;
    v->n_waiting = n;
}

void live_show(NodeLive *l, NodeView *v) {
    *v = (NodeView){.now = clock_monotonic_ns(), .setup = &l->rule->setup, .free = live_free(l)};
    v->n_free = cores_count(&v->free);
    l->watch.measured = atomic_load_explicit(&l->measured, memory_order_relaxed);
    uint32_t before = l->watch.level;
    v->level = interference_level(&l->watch);
    if (v->level != before)
        live_record(l, (Record){.at = v->now, .kind = RECORD_LEVEL, .level = v->level});
    v->pressure = interference_pressure(&l->watch);
    for (uint32_t k = 0; k < l->queue.n_running; k++) {
        uint32_t i = l->queue.running[k];
        l->queue.requests[i].layer =
            atomic_load_explicit(&l->blocks[l->beside[i].slot].at, memory_order_relaxed);
    }
    request_table_show(&l->queue, v);
    if (l->limited || l->n_full > 0 || l->n_behind > 0) arrange(l, v);
}

static uint32_t tenant_of(const NodeLive *l, uint32_t i) { return l->queue.requests[i].tenant; }

// Requests of one tenant often follow each other.
typedef struct KnownUse {
    const CoreUse *of;
    double         ns;
} KnownUse;

static double use_of(const NodeLive *l, uint32_t i, TimeNs now, KnownUse *last) {
    const CoreUse *u = &l->models[tenant_of(l, i)].use;
    if (u != last->of) *last = (KnownUse){u, core_use_ns(u, now)};
    return last->ns;
}

static double busiest_use(const NodeLive *l, const NodeView *v) {
    KnownUse last = {0};
    double   most = 0;
    for (uint32_t k = 0; k < v->n_waiting; k++)
        most = fmax(most, use_of(l, v->waiting[k], v->now, &last));
    for (uint32_t k = 0; k < v->n_running; k++)
        most = fmax(most, use_of(l, v->running[k], v->now, &last));
    return most;
}

static bool is_of_one_tenant(const NodeLive *l) {
    const LiveModel *m = &l->models[tenant_of(l, l->queue.waiting[0])];
    return m->waiting == l->queue.n_waiting && m->running == l->queue.n_running;
}

// By deadlines alone, a tenant that overloads the cores makes others wait: its requests are always
// close to theirs, and what they need until then fills the plan.
bool live_show_modest(NodeLive *l, NodeView *v) {
    uint32_t n = 0, shown = v->n_waiting;
    KnownUse last = {0};
    if (!l->o.admit || v->n_free == 0 || shown == 0 || is_of_one_tenant(l)) return false;
    double most = busiest_use(l, v);
    for (uint32_t k = 0; k < shown; k++) {
        uint32_t i = v->waiting[k];
        bool     modest = MODEST_PARTS * use_of(l, i, v->now, &last) <= most;
        if (modest && tier(&l->beside[i]) == 0) l->shown[n++] = i;
    }
    if (n == 0 || n == shown + v->n_running) return false;
    v->waiting = l->shown;
    v->n_waiting = n;
    v->n_running = 0;
    return true;
}
