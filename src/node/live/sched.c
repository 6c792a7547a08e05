// The scheduler: sense, decide, act. One thread runs it at a time; others set `again`.
#include <math.h>
#include <sched.h>

#include "base/clock.h"
#include "node/live/live_int.h"

void live_record(NodeLive *l, Record r) {
    if (atomic_load_explicit(&l->recording, memory_order_relaxed)) journal_put(&l->journal, &r);
}

static void give_back(NodeLive *l, uint32_t tenant, ExecContext *p) {
    LiveModel *m = &l->models[tenant];
    if (p == NULL) return;
    if (m->free == NULL) l->n_full--;
    m->begun--;
    p->next = m->free;
    m->free = p;
}

// Updates the counters for a request that is removed.
static void forget(NodeLive *l, uint32_t i) {
    const LiveRequest *x = &l->beside[i];
    LiveModel         *m = &l->models[l->queue.requests[i].tenant];
    bool               runs = l->queue.requests[i].state == NODE_RUNNING;
    m->running -= runs;
    m->waiting -= !runs;
    m->queued -= x->ctx == NULL;
    l->n_halted -= x->halted;
    l->n_ranked -= x->ask.priority > 0;
    l->n_late -= x->ask.on_miss != ON_MISS_REJECT;
    l->n_behind -= x->behind_all;
    m->late -= live_is_late(x);
    policy_instance_release(l, x->rule);
    give_back(l, l->queue.requests[i].tenant, x->ctx);
}

static void drop(NodeLive *l, uint32_t i) {
    forget(l, i);
    uint32_t from = request_table_drop(&l->queue, i);
    if (from == i) return;
    l->beside[i] = l->beside[from];
    if (l->queue.requests[i].state == NODE_RUNNING) l->of_block[l->beside[i].slot] = i;
}

static void record_growths(NodeLive *l, const Block *b, const NodeRequest *r) {
    for (uint32_t i = 0; i < b->n_growths; i++) {
        const BlockGrowth *g = &b->growths[i];
        live_record(l, (Record){.at = g->at,
                                .kind = RECORD_GROW,
                                .request = r->id,
                                .tenant = r->tenant,
                                .first = g->layer,
                                .cores = g->cores});
    }
}

static void count_block(NodeLive *l, const Block *b) {
    TimeNs             lost = atomic_load_explicit(&b->stolen_ns, memory_order_relaxed);
    InterferenceSample s = {.wall_ns = (double)(b->ended - b->began),
                            .stolen_ns = (double)lost,
                            .expected_ns = b->expected_ns,
                            .slope = b->slope};
    uint64_t           before = l->watch.preempted;
    interference_end(&l->watch, b->load);
    interference_sample(&l->watch, &s);
    l->counts.preempted += l->watch.preempted - before;
}

static void record_finish(NodeLive *l, const NodeRequest *r, const EngineResult *a) {
    live_record(l, (Record){.at = a->finish,
                            .kind = a->failed == NULL ? RECORD_FINISH : RECORD_REJECT,
                            .request = r->id,
                            .tenant = r->tenant,
                            .outcome = a->outcome,
                            .why = a->why});
}

// Time of the computed layers on one core without interference.
static double alone_ns(const Block *b, const BlockPoint *to) {
    const NodeModel  *m = b->model;
    const BlockPoint *ends[2] = {&b->first, to};
    double            rest[2];
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t l = ends[i]->layer < m->n_layers ? ends[i]->layer : m->n_layers;
        rest[i] = (double)node_rest(m, m->rest_best, l, 0, 0);
        if (l < m->n_layers)
            rest[i] -= block_point_share(ends[i]) *
                       (rest[i] - (double)node_rest(m, m->rest_best, l + 1, 0, 0));
    }
    return rest[0] - rest[1];
}

// Core time of a block. A demoted one has cores only while other blocks leave them idle. Waiting
// for a worker to wake is no work: several waiting requests share it.
static double spent_ns(const Block *b, bool demoted) {
    double lost = (double)atomic_load_explicit(&b->stolen_ns, memory_order_relaxed);
    double woke = (double)atomic_load_explicit(&b->start_ns, memory_order_relaxed) * b->began_with;
    return fmax(b->area_ns - (demoted ? lost : woke), 0);
}

// The time of the interpreted tail is a part of the last layer's: both are told together. Time in
// which a demoted block waited for its core was not stolen by other processes.
static void learn_work(NodeLive *l, uint32_t tenant, const Block *b, ExecContext *p, double spent,
                       bool demoted) {
    double lost = (double)atomic_load_explicit(&b->stolen_ns, memory_order_relaxed);
    p->alone_ns += alone_ns(b, &p->point);
    p->core_ns += spent;
    p->stolen_ns += demoted ? 0 : lost;
    bool tail_left = !p->finishes && p->point.layer >= b->model->n_layers;
    if (p->mem.failed != ERR_OK || tail_left) return;
    admission_note(&l->admission, tenant, p->alone_ns, p->core_ns, p->stolen_ns);
    p->alone_ns = p->core_ns = p->stolen_ns = 0;
}

// Blocks that grew or were demoted had several widths.
static void learn_width(NodeLive *l, const Block *b, double alone) {
    bool several = b->n_growths > 0 || !(b->expected_ns > 0) || b->mem->failed != ERR_OK;
    if (several || !(alone > 0)) return;
    block_width_note(&l->width, alone, b->count > 1, (double)(b->ended - b->began) / b->expected_ns,
                     b->ended);
}

void live_record_end(NodeLive *l, const NodeRequest *r, TimeNs at) {
    live_record(l, (Record){.at = at,
                            .kind = RECORD_END,
                            .request = r->id,
                            .tenant = r->tenant,
                            .first = r->first,
                            .n_layers = r->next - r->first,
                            .cores = r->cores});
}

static void release_cores(NodeLive *l, NodeRequest *r, const Block *b) {
    LiveModel *m = &l->models[r->tenant];
    m->cores -= cores_count(&r->cores);
    l->idle = cores_union(l->idle, &r->cores);
    live_record_end(l, r, b->ended);
}

// The request waits for its next block: after the layers computed, or within one.
static void wait_again(NodeLive *l, uint32_t i, const BlockPoint *at) {
    NodeRequest *r = &l->queue.requests[i];
    LiveModel   *m = &l->models[r->tenant];
    bool         tail = at->layer >= m->n_layers;
    r->next = tail ? m->n_layers - 1 : at->layer;
    r->done = tail ? 1 : (float)block_point_share(at);
    request_table_wait(&l->queue, i);
    m->running--;
    m->waiting++;
    if (live_check_at(l, i) < l->expiry) l->expiry = live_check_at(l, i);
    if (atomic_load(&l->beside[i].ctx->stopped_as) != LIVE_DONE) l->expiry = 0;
    l->beside[i].halted = true;
    l->n_halted++;
}

static void end_block(NodeLive *l, uint32_t slot) {
    const Block *b = &l->blocks[slot];
    uint32_t     i = l->of_block[slot];
    NodeRequest *r = &l->queue.requests[i];
    ExecContext *p = l->beside[i].ctx;
    bool         demoted = l->beside[i].demoted;
    double       spent = spent_ns(b, demoted);
    if (!demoted) {
        count_block(l, b);
        learn_width(l, b, alone_ns(b, &p->point));
        stolen_time_take(&l->stolen, (double)(block_held_up(b) + b->after_ns) * b->count);
    }
    learn_work(l, r->tenant, b, p, spent, demoted);
    l->counts.busy_core_ns += spent;
    l->counts.grown += b->n_growths;
    l->models[r->tenant].core_ns += spent;
    core_use_add(&l->models[r->tenant].use, spent, b->ended);
    l->models[r->tenant].yields += p->point.layer < b->end && !p->finishes;
    r->computed += (TimeNs)spent;
    r->since = b->ended;
    r->layer = r->next = p->point.layer < b->model->n_layers ? p->point.layer : b->model->n_layers;
    if (l->beside[i].relieved) l->relief = b->ended + LIVE_RELIEF * (b->ended - b->began);
    record_growths(l, b, r);
    if (demoted)
        workers_take_back(l->workers, l->beside[i].threads);
    else
        release_cores(l, r, b);
    l->slots[l->n_free_slots++] = slot;
    if (!p->finishes) {
        wait_again(l, i, &p->point);
        return;
    }
    record_finish(l, r, &p->answer);
    bool missed = p->answer.outcome != OUTCOME_MET && p->answer.end != LIVE_CANCELLED;
    live_promise_over(l, i, missed, &p->timing);
    drop(l, i);
}

static void sense(NodeLive *l) {
    EngineRequest ask;
    for (uint32_t w = 0; w < (l->n_slots + 63) / 64; w++) {
        if (atomic_load_explicit(&l->ended[w], memory_order_relaxed) == 0) continue;
        uint64_t bits = atomic_exchange_explicit(&l->ended[w], 0, memory_order_acquire);
        for (; bits != 0; bits &= bits - 1) end_block(l, w * 64 + (uint32_t)__builtin_ctzll(bits));
    }
    if (!inbox_take(&l->inbox, &ask)) return;
    TimeNs t = clock_monotonic_ns();
    do live_admit(l, &ask, t);
    while (inbox_take(&l->inbox, &ask));
}

void live_forget_gone(NodeLive *l) {
    for (uint32_t i = l->queue.n; i-- > 0 && l->n_gone > 0;) {
        if (!l->beside[i].gone) continue;
        drop(l, i);
        l->n_gone--;
    }
}

static void flush(NodeLive *l) {
    TimeNs t = clock_monotonic_ns();
    for (uint32_t k = 0; k < l->queue.n_waiting; k++)
        live_end(l, l->queue.waiting[k], t, LIVE_REFUSED,
                 "rejected: the run ended before it started");
    live_forget_gone(l);
}

static bool is_cancelled(const EngineRequest *ask) {
    return ask->cancelled != NULL && atomic_load_explicit(ask->cancelled, memory_order_relaxed);
}

// Ends waiting requests that expired or were cancelled.
static void expire_waiting(NodeLive *l, TimeNs t) {
    l->expiry = INT64_MAX;
    for (uint32_t k = 0; k < l->queue.n_waiting; k++) {
        uint32_t             i = l->queue.waiting[k];
        const EngineRequest *ask = &l->beside[i].ask;
        if (is_cancelled(ask))
            live_end(l, i, t, LIVE_CANCELLED, "cancelled by the client");
        else if (ask->expire > 0 && ask->expire <= t)
            live_end(l, i, t, LIVE_EXPIRED, "its deadline passed before it was computed");
        else if (live_over_at(l, ask) <= t)
            live_end(l, i, t, LIVE_REFUSED, live_reason(NODE_INFEASIBLE));
        else if (live_check_at(l, i) <= t)
            live_degrade(l, i, t);
        if (!l->beside[i].gone && live_check_at(l, i) < l->expiry) l->expiry = live_check_at(l, i);
    }
    live_forget_gone(l);
}

// Stops a block after LIVE_TICKS ticks. Ticks, not time: while the whole
// process is suspended, no ticks pass.
static void tick(NodeLive *l) {
    for (uint32_t k = 0; k < l->queue.n_running; k++) {
        LiveRequest *x = &l->beside[l->queue.running[k]];
        if (++x->ticks > LIVE_TICKS) live_stop(x->ctx, LIVE_STUCK);
    }
}

// Records which tenant took the cores of requests paused between blocks.
static void note_pauses(NodeLive *l) {
    for (uint32_t k = 0; k < l->queue.n_waiting && l->n_halted > 0; k++) {
        uint32_t     i = l->queue.waiting[k], tenant = l->queue.requests[i].tenant;
        LiveRequest *x = &l->beside[i];
        if (!x->halted) continue;
        uint32_t by = live_busiest(l, tenant);
        x->ctx->timing.pauses++;
        x->ctx->timing.paused_by = by != UINT32_MAX ? by : live_busiest(l, UINT32_MAX);
        l->models[tenant].pauses++;
        x->halted = false;
        l->n_halted--;
    }
}

// Calls the policy again when its plan filled the buffer or was truncated. Tenants that use few
// cores are planned first.
static void decide(NodeLive *l) {
    uint32_t n = LIVE_ACTIONS;
    l->short_of = false;
    for (uint32_t round = 0; round == 0 || n == LIVE_ACTIONS || l->short_of; round++) {
        NodeView v;
        if (round >= LIVE_ROUNDS && n < LIVE_ACTIONS) break;
        live_show(l, &v);
        if (l->n_late > 0 && v.now >= l->relief && apply_starved(l, &v)) live_show(l, &v);
        bool modest = round == 0 && live_show_modest(l, &v);
        l->short_of = modest;
        atomic_store_explicit(&l->alarm, INT64_MAX, memory_order_relaxed);
        TimeNs begin = clock_monotonic_ns();
        n = l->rule->policy->decide(l->rule->state, &v, l->actions, LIVE_ACTIONS);
        l->counts.decide_ns += (double)(clock_monotonic_ns() - begin);
        l->counts.decisions++;
        apply_plan(l, &v, n < LIVE_ACTIONS ? n : LIVE_ACTIONS);
        live_forget_gone(l);
        if (l->short_of && v.n_running == 0) live_wake(l, v.now + LIVE_RETRY_NS);
    }
    if (l->n_halted > 0) note_pauses(l);
    if (l->expiry < INT64_MAX) live_wake(l, l->expiry);
}

static void step(NodeLive *l) {
    TimeNs begin = clock_monotonic_ns();
    double decided = l->counts.decide_ns;
    sense(l);
    bool over = l->expiry < INT64_MAX && clock_monotonic_ns() >= l->expiry;
    bool cancelled = atomic_exchange_explicit(&l->cancelled, false, memory_order_acquire);
    if (over || cancelled) expire_waiting(l, clock_monotonic_ns());
    if (atomic_exchange_explicit(&l->tick, false, memory_order_relaxed)) tick(l);
    if (atomic_load_explicit(&l->flush, memory_order_relaxed))
        flush(l);
    else if (l->rule != NULL)
        decide(l);
    if (l->queue.n_waiting == 0) stolen_time_idle(&l->stolen);
    if (l->queue.n_running > 0) preempt_running(l, cancelled);
    if (l->queue.n_demoted > 0) turns_give(l);
    l->counts.engine_ns += (double)(clock_monotonic_ns() - begin) - (l->counts.decide_ns - decided);
}

// A woken worker may preempt this thread, and no other could run the scheduler meanwhile:
// so workers are woken after unlocking.
static void leave(NodeLive *l) {
    Cores asleep = l->asleep;
    l->asleep = (Cores){0};
    atomic_store_explicit(&l->n_idle, cores_count(&l->idle), memory_order_relaxed);
    atomic_store(&l->busy, 0);
    uint32_t c = cores_next(&asleep, 0);
    if (c == CORES_MAX) return;
    TimeNs begin = clock_monotonic_ns();
    for (; c < CORES_MAX; c = cores_next(&asleep, c + 1)) workers_wake(l->workers, c);
    atomic_fetch_add_explicit(&l->waking_ns, clock_monotonic_ns() - begin, memory_order_relaxed);
}

// A thread that fails to lock has set `again` before, and the unlocking thread checks `again`
// after: no run is lost.
static void go_on(NodeLive *l) {
    while (atomic_load(&l->again) != 0) {
        if (atomic_exchange(&l->busy, 1) != 0) return;
        while (atomic_exchange(&l->again, 0) != 0) step(l);
        leave(l);
    }
}

void sched_run(NodeLive *l) {
    atomic_store(&l->again, 1);
    go_on(l);
}

void sched_lock(NodeLive *l) {
    while (atomic_exchange(&l->busy, 1) != 0) (void)sched_yield();
}

void sched_unlock(NodeLive *l) {
    leave(l);
    go_on(l);
}
