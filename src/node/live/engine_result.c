// The result of a request: outcome, breakdown of its latency, cause of a miss.
#include "base/clock.h"
#include "node/live/live_int.h"

static const char *const causes[] = {
    [LIVE_NO_CAUSE] = NULL,
    [LIVE_QUEUEING] = "queueing",
    [LIVE_OVERLOAD] = "overload",
    [LIVE_CONTENTION] = "contention",
    [LIVE_CONFLICT] = "conflict",
    [LIVE_PREEMPTED] = "preempted by the system",
    [LIVE_THROTTLED] = "throttled by the system",
};

// The largest contribution to a late request's latency. Waiting longer than the whole target is
// overload, not queueing order.
static LiveCause why_late(const NodeLive *l, const EngineRequest *ask, const LiveTiming *t) {
    TimeNs    most = t->queue_ns - t->queue_stolen_ns + t->paused_ns;
    LiveCause why = most > ask->deadline - ask->arrival ? LIVE_OVERLOAD : LIVE_QUEUEING;
    if (t->interference_ns > most) most = t->interference_ns, why = LIVE_CONTENTION;
    if (t->core_shortage_ns > most) most = t->core_shortage_ns, why = LIVE_CONFLICT;
    if (t->stolen_ns + t->queue_stolen_ns <= most) return why;
    bool less = atomic_load_explicit(&l->budget, memory_order_relaxed) < l->o.cores;
    return less || atomic_load(&l->throttled_at) >= ask->arrival ? LIVE_THROTTLED : LIVE_PREEMPTED;
}

static void note_versions(LiveTiming *t, const Block *b) {
    uint32_t end = b->from < b->model->n_layers ? b->from : b->model->n_layers;
    for (uint32_t i = b->first.layer; i < end; i++)
        if (b->versions[i] < LIVE_VERSIONS) t->versions[b->versions[i]]++;
}

static void note_block(LiveTiming *t, const Block *b) {
    TimeNs lost = block_held_up(b);
    double over = (double)(b->ended - b->began - lost) - b->expected_ns;
    bool   demoted = atomic_load_explicit(&b->hold, memory_order_relaxed) == BLOCK_DEMOTED;
    TimeNs waited = demoted && lost < b->ended - b->began ? lost : 0;  // for cores it had lost
    t->compute_ns += b->ended - b->began - waited;
    t->paused_ns += waited;
    t->core_ns += (TimeNs)b->area_ns - waited;
    t->stolen_ns += lost - waited;
    t->interference_ns += over > 0 ? (TimeNs)over : 0;
    t->core_shortage_ns += (TimeNs)(b->expected_ns - b->unhindered_ns);
    t->blocks++;
    t->demotions += demoted;
    if (b->count > t->cores_most) t->cores_most = b->count;
    if (t->cores_least == 0 || b->began_with < t->cores_least) t->cores_least = b->began_with;
    note_versions(t, b);
}

static const char *why_stopped(LiveEnd end) {
    if (end == LIVE_STUCK) return "a block took too long";
    return end == LIVE_CANCELLED ? "cancelled by the client"
                                 : "its deadline passed before it was computed";
}

static void say_released(const EngineRequest *ask) {
    if (ask->released != NULL) ask->released(ask->self);
}

static void say_failed(ExecContext *p, EngineResult *a) {
    bool    stopped = run_memory_stopped(&p->mem);
    LiveEnd end = stopped ? (LiveEnd)atomic_load(&p->stopped_as) : LIVE_FAILED;
    a->end = end;
    a->outcome = OUTCOME_REJECTED;
    a->why = stopped ? why_stopped(end) : "a layer failed";
    a->failed = p->mem.why;
    a->error = p->mem.failed;
    a->outputs = NULL;
    if (end != LIVE_EXPIRED) a->timing.late_cause = LIVE_NO_CAUSE;
}

static void say_answer(const NodeLive *l, ExecContext *p, const Block *b) {
    Err           e = program_outputs(b->program, &p->mem, NULL, p->outputs);
    bool          met = b->ended <= p->ask.deadline;
    EngineResult *a = &p->answer;
    LiveCause     why = met ? LIVE_NO_CAUSE : why_late(l, &p->ask, &p->timing);
    *a = (EngineResult){.tenant = p->ask.tenant,
                        .end = LIVE_DONE,
                        .timing = p->timing,
                        .outcome = met ? OUTCOME_MET : OUTCOME_LATE,
                        .arrival = p->ask.arrival,
                        .finish = b->ended,
                        .why = causes[why],
                        .outputs = p->outputs};
    a->timing.late_cause = why;
    if (e != ERR_OK) say_failed(p, a);
    live_guard_close(p);
    WorkFlag *before = work_stop_watch(&p->mem.stop);  // outputs are copied: that pauses too
    p->ask.done(p->ask.self, a);
    (void)work_stop_watch(before);
    run_memory_release(&p->mem);
    say_released(&p->ask);
}

// The thread of a demoted block may have a low priority and must not hold the scheduler lock then:
// other threads would wait for it.
void live_over(void *live, Block *b) {
    NodeLive    *l = live;
    ExecContext *p = b->ctx;
    uint32_t     slot = (uint32_t)(b - l->blocks);
    note_block(&p->timing, b);
    p->point = block_point(b);
    if (p->point.layer < b->end) p->finishes = false;
    if (p->mem.failed != ERR_OK || p->mem.complete) p->finishes = true;
    p->timing.yields += p->point.layer < b->end && !p->finishes;
    if (p->finishes) say_answer(l, p, b);
    b->after_ns = block_held_after(b);
    bool demoted = !block_leave(b);
    atomic_fetch_or_explicit(&l->ended[slot / 64], UINT64_C(1) << slot % 64, memory_order_release);
    if (!demoted) {
        sched_run(l);
        return;
    }
    atomic_store(&l->freed, true);
    atomic_store(&l->call, true);
    live_call_timer(l);
}

static void record_ended(NodeLive *l, TimeNs t, uint64_t id, uint32_t tenant, const char *why) {
    live_record(l, (Record){.at = t,
                            .kind = RECORD_REJECT,
                            .request = id,
                            .tenant = tenant,
                            .outcome = OUTCOME_REJECTED,
                            .why = why});
}

void live_reject(NodeLive *l, const EngineRequest *ask, uint64_t id, TimeNs t, LiveEnd end,
                 const char *why) {
    EngineResult a = {.tenant = ask->tenant,
                      .end = end,
                      .timing = {.queue_ns = t - ask->arrival,
                                 .behind = live_busiest(l, UINT32_MAX),
                                 .paused_by = UINT32_MAX,
                                 .waiting = l->queue.n_waiting},
                      .outcome = OUTCOME_REJECTED,
                      .arrival = ask->arrival,
                      .finish = t,
                      .why = why};
    a.timing.late_cause = t > ask->deadline ? why_late(l, ask, &a.timing) : LIVE_NO_CAUSE;
    record_ended(l, t, id, ask->tenant, why);
    ask->done(ask->self, &a);
    say_released(ask);
}

void live_end(NodeLive *l, uint32_t i, TimeNs t, LiveEnd end, const char *why) {
    const NodeRequest *r = &l->queue.requests[i];
    LiveRequest       *x = &l->beside[i];
    EngineResult       a = {.tenant = r->tenant,
                            .end = end,
                            .outcome = OUTCOME_REJECTED,
                            .arrival = x->ask.arrival,
                            .finish = t,
                            .why = why};
    if (x->ctx != NULL) {
        a.timing = x->ctx->timing;
        a.timing.paused_ns += t - r->since;
    } else {
        a.timing = (LiveTiming){.queue_ns = t - r->arrival,
                                .behind = x->behind,
                                .paused_by = UINT32_MAX,
                                .waiting = x->waiting,
                                .degraded = x->degraded};
        live_blame_wait(l, i, &a.timing, t);
    }
    if (t > x->ask.deadline) a.timing.late_cause = why_late(l, &x->ask, &a.timing);
    record_ended(l, t, r->id, r->tenant, why);
    live_promise_over(l, i, end != LIVE_CANCELLED, &a.timing);
    x->ask.done(x->ask.self, &a);
    if (x->ctx != NULL) run_memory_release(&x->ctx->mem);
    say_released(&x->ask);
    x->gone = true;
    l->n_gone++;
}

// Status of the engine.

enum { RECENT_NS = 1000000000 };

static LiveTenantStatus status_of(const LiveModel *m) {
    return (LiveTenantStatus){.waiting = m->waiting,
                              .running = m->running,
                              .cores = m->cores,
                              .blocks = m->blocks,
                              .preemptions = m->pauses,
                              .conflicts = m->conflicts,
                              .yields = m->yields,
                              .demotions = m->demotions,
                              .core_ns = m->core_ns,
                              .memory_bytes = m->memory_bytes};
}

Err node_live_status(NodeLive *l, Arena *a, LiveStatus *out) {
    LiveStatus s = {.cores = l->o.cores,
                    .tenants = arena_try_new(a, LiveTenantStatus, l->o.tenants)};
    if (s.tenants == NULL) return err_set(ERR_LIMIT, "no memory for the status of tenants");
    s.budget = atomic_load(&l->budget);
    s.throttled = atomic_load(&l->throttled_at) > clock_now(clock_monotonic()) - RECENT_NS;
    sched_lock(l);
    s.n_tenants = l->n_models;
    s.busy = l->o.cores - cores_count(&l->idle);
    s.level = l->watch.level;
    s.waiting = l->queue.n_waiting;
    s.running = l->queue.n_running;
    s.demoted = l->queue.n_demoted;
    s.decisions = l->counts.decisions;
    s.refused = l->counts.refused;
    s.decide_ns = l->counts.decide_ns;
    for (uint32_t i = 0; i < l->n_models; i++) s.tenants[i] = status_of(&l->models[i]);
    sched_unlock(l);
    *out = s;
    return ERR_OK;
}
