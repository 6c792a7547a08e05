// Arriving requests: queue limits and admission.
#include "node/live/live_int.h"

// Reason to reject an arriving request; NULL: accepted.
static const char *refusal(const NodeLive *l, const EngineRequest *ask, TimeNs t, LiveEnd *end) {
    const LiveModel *m = &l->models[ask->tenant];
    *end = LIVE_REFUSED;
    if (ask->tenant >= l->o.tenants || !m->served || (ask->inputs == NULL && m->inputs == NULL))
        return "no such tenant, or no inputs";
    if (ask->first >= m->n_layers) return "starts beyond the last layer";
    *end = LIVE_CANCELLED;
    if (ask->cancelled != NULL && atomic_load(ask->cancelled)) return "cancelled by the client";
    *end = LIVE_EXPIRED;
    if (ask->expire > 0 && ask->expire <= t) return "its deadline passed before it was computed";
    *end = LIVE_FULL;
    if ((m->room > 0 && m->queued >= m->room) || l->queue.n == l->queue.room)
        return "queue is full";
    return NULL;
}

bool live_is_late(const LiveRequest *x) {
    return x->behind_all && x->ask.deadline - x->ask.arrival <= LIVE_SOON_NS;
}

void live_put_behind(NodeLive *l, uint32_t i) {
    LiveRequest *x = &l->beside[i];
    if (x->behind_all) return;
    l->n_behind++;
    x->behind_all = true;
    l->models[l->queue.requests[i].tenant].late += live_is_late(x);
}

// A burst is served late, sustained overload is rejected: otherwise late requests would fill the
// queue and leave no space for requests that can meet their deadline.
static bool enough_late(const LiveModel *m) {
    return m->room > 0 && LIVE_LATE_PARTS * m->late >= m->room;
}

// Whether a request that admission cannot promise its deadline may still wait.
static bool may_be_late(const NodeLive *l, const EngineRequest *ask) {
    return ask->on_miss == ON_MISS_DEGRADE ||
           (ask->on_miss == ON_MISS_SERVE_LATE && !enough_late(&l->models[ask->tenant]));
}

void live_degrade(NodeLive *l, uint32_t i, TimeNs t) {
    LiveRequest *x = &l->beside[i];
    NodeRequest *r = &l->queue.requests[i];
    live_promise_over(l, i, true, &(LiveTiming){.queue_ns = t - r->arrival});
    r->deadline = t + LIVE_DEGRADED_NS;
    x->degraded = true;
    if (x->ctx != NULL) x->ctx->timing.degraded = true;
    live_put_behind(l, i);
}

// With admission on, on_miss=reject requests expire at their deadline.
TimeNs live_over_at(const NodeLive *l, const EngineRequest *ask) {
    TimeNs at = ask->expire > 0 ? ask->expire : INT64_MAX;
    return l->o.admit && ask->on_miss == ON_MISS_REJECT && ask->deadline < at ? ask->deadline : at;
}

TimeNs live_check_at(const NodeLive *l, uint32_t i) {
    const LiveRequest *x = &l->beside[i];
    TimeNs             at = live_over_at(l, &x->ask);
    bool               degrades = x->ask.on_miss == ON_MISS_DEGRADE && !x->degraded;
    return degrades && x->ask.deadline < at ? x->ask.deadline : at;
}

static bool promise(NodeLive *l, const NodeRequest *r, TimeNs t) {
    l->admission.cores = atomic_load_explicit(&l->budget, memory_order_relaxed);
    return admission_allows(&l->admission, r->tenant, t);
}

void live_promise_over(NodeLive *l, uint32_t i, bool late, const LiveTiming *t) {
    LiveRequest *x = &l->beside[i];
    TimeNs       waited = t->queue_ns + t->paused_ns;
    if (!x->promised) return;
    x->promised = false;
    admission_result(&l->admission, late && 2 * waited > x->ask.deadline - x->ask.arrival);
}

// Rejected requests count: they are part of the load.
static TimeNs virtual_wait(NodeLive *l, const EngineRequest *ask, TimeNs t) {
    uint32_t cores = atomic_load_explicit(&l->budget, memory_order_relaxed);
    return stolen_time_arrive(&l->stolen, l->admission.of[ask->tenant].alone_ns, cores, t);
}

// Core time that other processes have taken from the blocks that run.
static double taken_from_running(const NodeLive *l, TimeNs now) {
    double sum = 0;
    for (uint32_t k = 0; k < l->queue.n_running; k++) {
        const LiveRequest *x = &l->beside[l->queue.running[k]];
        if (!x->demoted) sum += (double)block_held_so_far(&l->blocks[x->slot], now);
    }
    return sum;
}

void live_blame_wait(const NodeLive *l, uint32_t i, LiveTiming *t, TimeNs now) {
    const LiveRequest *x = &l->beside[i];
    StolenQuestion     q = {.wait = t->queue_ns,
                            .least = x->least_wait_ns,
                            .target = x->ask.deadline - x->ask.arrival,
                            .cores = atomic_load_explicit(&l->budget, memory_order_relaxed),
                            .now = now};
    if (2 * q.wait > q.target) q.running = taken_from_running(l, now);
    StolenWait w = stolen_time_wait(&l->stolen, q);
    t->queue_stolen_ns = w.ns;
    t->taken_ns = w.taken;
    t->taken_of_ns = w.of_ns;
}

void live_admit(NodeLive *l, const EngineRequest *ask, TimeNs t) {
    uint64_t    id = l->next_id++;
    LiveEnd     end = LIVE_DONE;
    NodeRequest r = {.id = id,
                     .tenant = ask->tenant,
                     .arrival = ask->arrival,
                     .deadline = ask->deadline,
                     .next = ask->first,
                     .since = ask->arrival};
    live_record(l, (Record){.at = ask->arrival,
                            .kind = RECORD_ARRIVE,
                            .request = id,
                            .tenant = ask->tenant,
                            .deadline = ask->deadline});
    const char *why = refusal(l, ask, t, &end);
    TimeNs      least = why == NULL || end == LIVE_FULL ? virtual_wait(l, ask, t) : 0;
    if (why != NULL) {
        live_reject(l, ask, id, t, end, why);
        return;
    }
    bool soon = ask->deadline - t <= LIVE_SOON_NS, admit = l->o.admit && !ask->job;
    bool promised = admit && soon, behind = l->o.admit && !soon, missed = ask->deadline <= t;
    if (promised && !promise(l, &r, t)) {
        if (!may_be_late(l, ask)) {
            live_reject(l, ask, id, t, LIVE_REFUSED, live_reason(NODE_OVERLOADED));
            return;
        }
        behind = missed = true;
        promised = false;
        r.deadline = t + LIVE_LATE_NS;
    }
    LiveRequest x = {.ask = *ask,
                     .promised = promised,
                     .behind = live_busiest(l, UINT32_MAX),
                     .waiting = l->queue.n_waiting,
                     .least_wait_ns = least};
    uint32_t    i = request_table_add(&l->queue, &r);
    l->beside[i] = x;
    if (behind) live_put_behind(l, i);
    if (missed && ask->on_miss == ON_MISS_DEGRADE) live_degrade(l, i, t);
    l->models[ask->tenant].waiting++;
    l->models[ask->tenant].queued++;
    l->n_ranked += ask->priority > 0;
    l->n_late += ask->on_miss != ON_MISS_REJECT;
    if (live_check_at(l, i) < l->expiry) l->expiry = live_check_at(l, i);
}
