// What an engine does now, for those who watch it.
#include "base/clock.h"
#include "node/live_int.h"

enum { RECENT_NS = 1000000000 };

static LiveTenantStatus status_of(const LiveModel *m) {
    return (LiveTenantStatus){.waiting = m->waiting,
                              .running = m->running,
                              .cores = m->cores,
                              .blocks = m->blocks,
                              .preemptions = m->pauses,
                              .conflicts = m->conflicts,
                              .core_ns = m->core_ns,
                              .memory_bytes = m->memory_bytes};
}

Err node_live_status(NodeLive *l, Arena *a, LiveStatus *out) {
    LiveStatus s = {.cores = l->o.cores,
                    .tenants = arena_try_new(a, LiveTenantStatus, l->o.tenants)};
    if (s.tenants == NULL) return err_set(ERR_LIMIT, "no memory for the status of tenants");
    s.budget = atomic_load(&l->budget);
    s.throttled = atomic_load(&l->throttled_at) > clock_now(clock_steady()) - RECENT_NS;
    turn_hold(l);
    s.n_tenants = l->n_models;
    s.busy = l->o.cores - cores_count(&l->idle);
    s.level = l->watch.level;
    s.waiting = l->queue.n_waiting;
    s.running = l->queue.n_running;
    s.decisions = l->counts.decisions;
    s.refused = l->counts.refused;
    s.decide_ns = l->counts.decide_ns;
    for (uint32_t i = 0; i < l->n_models; i++) s.tenants[i] = status_of(&l->models[i]);
    turn_leave(l);
    *out = s;
    return ERR_OK;
}
