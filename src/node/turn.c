// The turn: sense, decide, act. One thread has it; others leave word that there is more to do.
#include <sched.h>

#include "base/clock.h"
#include "node/live_int.h"

static TimeNs now(void) { return clock_now(clock_steady()); }

void live_record(NodeLive *l, Record r) {
    if (atomic_load_explicit(&l->recording, memory_order_relaxed)) journal_put(&l->journal, &r);
}

static void give_back(NodeLive *l, uint32_t tenant, LivePlace *p) {
    LiveModel *m = &l->models[tenant];
    if (p == NULL) return;
    if (m->free == NULL) l->n_full--;
    p->next = m->free;
    m->free = p;
}

// Counters of those that leave the queue, whatever they did there.
static void forget(NodeLive *l, uint32_t i) {
    const LiveRequest *x = &l->beside[i];
    LiveModel         *m = &l->models[l->queue.requests[i].tenant];
    bool               runs = l->queue.requests[i].state == NODE_RUNNING;
    m->running -= runs;
    m->waiting -= !runs;
    m->queued -= x->place == NULL;
    l->n_halted -= x->halted;
    l->n_ranked -= x->ask.priority > 0;
    l->n_late -= x->ask.late_ok;
    l->n_behind -= x->behind_all;
    live_release(l, x->rule);
    give_back(l, l->queue.requests[i].tenant, x->place);
}

static void drop(NodeLive *l, uint32_t i) {
    forget(l, i);
    uint32_t from = queue_drop(&l->queue, i);
    if (from == i) return;
    l->beside[i] = l->beside[from];
    if (l->queue.requests[i].state == NODE_RUNNING) l->of_block[l->beside[i].slot] = i;
}

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

// Why a request cannot even wait; NULL: it can.
static const char *refusal(const NodeLive *l, const LiveAsk *ask, TimeNs t, LiveEnd *end) {
    const LiveModel *m = &l->models[ask->tenant];
    *end = LIVE_REFUSED;
    if (ask->tenant >= l->o.tenants || !m->served || (ask->inputs == NULL && m->inputs == NULL))
        return "no such tenant, or no inputs";
    *end = LIVE_CANCELLED;
    if (ask->cancelled != NULL && atomic_load(ask->cancelled)) return "it was cancelled";
    *end = LIVE_EXPIRED;
    if (ask->expire > 0 && ask->expire <= t) return "its time was over";
    *end = LIVE_FULL;
    if ((m->room > 0 && m->queued >= m->room) || l->queue.n == l->queue.room)
        return "the queue is full";
    return NULL;
}

void live_put_behind(NodeLive *l, uint32_t i) {
    l->n_behind += !l->beside[i].behind_all;
    l->beside[i].behind_all = true;
}

// Who must not be late is over with its deadline, where that is promised at all.
static TimeNs over_at(const NodeLive *l, const LiveAsk *ask) {
    TimeNs at = ask->expire > 0 ? ask->expire : INT64_MAX;
    return l->o.admit && !ask->late_ok && ask->deadline < at ? ask->deadline : at;
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

static void admit(NodeLive *l, const LiveAsk *ask, TimeNs t) {
    uint64_t    id = l->next_id++;
    LiveEnd     end = LIVE_DONE;
    NodeRequest r = {.id = id,
                     .tenant = ask->tenant,
                     .arrival = ask->arrival,
                     .deadline = ask->deadline,
                     .since = ask->arrival};
    live_record(l, (Record){.at = ask->arrival,
                            .kind = RECORD_ARRIVE,
                            .request = id,
                            .tenant = ask->tenant,
                            .deadline = ask->deadline});
    const char *why = refusal(l, ask, t, &end);
    if (why != NULL) {
        live_turn_away(l, ask, id, t, end, why);
        return;
    }
    bool soon = ask->deadline - t <= LIVE_SOON_NS, promised = l->o.admit && soon;
    bool behind = l->o.admit && !soon;
    if (promised && !promise(l, &r, t)) {
        if (!ask->late_ok) {
            live_turn_away(l, ask, id, t, LIVE_REFUSED, live_reason(NODE_CROWDED));
            return;
        }
        behind = true;
        promised = false;
        r.deadline = t + LIVE_LATE_NS;
    }
    LiveRequest x = {.ask = *ask,
                     .promised = promised,
                     .behind = live_busiest(l, UINT32_MAX),
                     .waiting = l->queue.n_waiting};
    uint32_t    i = queue_add(&l->queue, &r);
    l->beside[i] = x;
    if (behind) live_put_behind(l, i);
    l->models[ask->tenant].waiting++;
    l->models[ask->tenant].queued++;
    l->n_ranked += ask->priority > 0;
    l->n_late += ask->late_ok;
    if (over_at(l, ask) < l->expiry) l->expiry = over_at(l, ask);
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
    TimeNs      lost = atomic_load_explicit(&b->lost_ns, memory_order_relaxed);
    WatchSample s = {.wall_ns = (double)(b->ended - b->began),
                     .lost_ns = (double)lost,
                     .expected_ns = b->expected_ns,
                     .slope = b->slope};
    uint64_t    before = l->watch.preempted;
    watch_end(&l->watch, b->load);
    watch_sample(&l->watch, &s);
    l->counts.preempted += l->watch.preempted - before;
    l->counts.busy_core_ns += b->area_ns;
    l->counts.grown += b->n_growths;
}

static void record_finish(NodeLive *l, const NodeRequest *r, const LiveAnswer *a) {
    live_record(l, (Record){.at = a->finish,
                            .kind = a->failed == NULL ? RECORD_FINISH : RECORD_REJECT,
                            .request = r->id,
                            .tenant = r->tenant,
                            .outcome = a->outcome,
                            .why = a->why});
}

static void learn_work(NodeLive *l, uint32_t tenant, const Block *b) {
    const NodeModel *m = b->model;
    uint32_t         end = b->end < m->n_layers ? b->end : m->n_layers;
    double           alone = (double)node_rest(m, m->rest_best, b->first, 0, 0) -
                   (double)node_rest(m, m->rest_best, end, 0, 0);
    double lost = (double)atomic_load_explicit(&b->lost_ns, memory_order_relaxed);
    if (!b->skip) admission_note(&l->admission, tenant, alone, b->area_ns, lost);
}

static void end_block(NodeLive *l, uint32_t slot) {
    const Block     *b = &l->blocks[slot];
    uint32_t         i = l->of_block[slot];
    NodeRequest     *r = &l->queue.requests[i];
    const LivePlace *p = l->beside[i].place;
    LiveModel       *m = &l->models[r->tenant];
    count_block(l, b);
    learn_work(l, r->tenant, b);
    m->cores -= cores_count(&r->cores);
    m->core_ns += b->area_ns;
    l->idle = cores_both(l->idle, &r->cores);
    r->computed += (TimeNs)b->area_ns;
    r->since = b->ended;
    r->layer = b->end;
    if (l->beside[i].relieved) l->relief = b->ended + LIVE_RELIEF * (b->ended - b->began);
    record_growths(l, b, r);
    live_record(l, (Record){.at = b->ended,
                            .kind = RECORD_END,
                            .request = r->id,
                            .tenant = r->tenant,
                            .first = b->first,
                            .n_layers = r->next - b->first,
                            .cores = r->cores});
    if (!p->finishes) {
        queue_wait(&l->queue, i);
        m->running--;
        m->waiting++;
        if (over_at(l, &p->ask) < l->expiry) l->expiry = over_at(l, &p->ask);
        l->beside[i].halted = true;
        l->n_halted++;
        return;
    }
    record_finish(l, r, &p->answer);
    live_promise_over(l, i, p->answer.outcome != OUTCOME_MET, &p->timing);
    drop(l, i);
}

static void sense(NodeLive *l) {
    LiveAsk ask;
    for (uint32_t w = 0; w < CORES_WORDS; w++) {
        if (atomic_load_explicit(&l->ended[w], memory_order_relaxed) == 0) continue;
        uint64_t bits = atomic_exchange_explicit(&l->ended[w], 0, memory_order_acquire);
        for (; bits != 0; bits &= bits - 1) end_block(l, w * 64 + (uint32_t)__builtin_ctzll(bits));
    }
    if (!inbox_take(&l->inbox, &ask)) return;
    TimeNs t = now();
    do admit(l, &ask, t);
    while (inbox_take(&l->inbox, &ask));
}

Cores live_free(const NodeLive *l) {
    uint32_t n = atomic_load_explicit(&l->budget, memory_order_relaxed);
    if (l->rule != NULL && l->rule->setup.machine->n_cores < n) n = l->rule->setup.machine->n_cores;
    Cores within = cores_all(n);
    return cores_common(l->idle, &within);
}

static uint32_t own_kept(const LiveModel *m) {
    return m->min_cores > m->cores ? m->min_cores - m->cores : 0;
}

uint32_t live_kept(const NodeLive *l) {
    uint32_t n = 0;
    for (uint32_t i = 0; l->limited && i < l->n_models; i++) n += own_kept(&l->models[i]);
    return n;
}

// What is kept for others is not given, unless nobody computes at all.
uint32_t live_allowance(const NodeLive *l, uint32_t tenant, uint32_t kept) {
    const LiveModel *m = &l->models[tenant];
    Cores            open = live_free(l);
    uint32_t         free = cores_count(&open), own = own_kept(m), others = kept - own;
    uint32_t         n = free > others ? free - others : 0;
    if (!l->limited) return free;
    if (n < own) n = own < free ? own : free;
    if (n == 0 && l->queue.n_running == 0) n = 1;
    if (m->max_cores == 0 || m->cores + n <= m->max_cores) return n;
    return m->max_cores > m->cores ? m->max_cores - m->cores : 0;
}

// Whether it could be started now: there is a place for it, and its tenant may have cores.
static bool startable(const NodeLive *l, uint32_t i, uint32_t kept) {
    uint32_t tenant = l->queue.requests[i].tenant;
    if (l->beside[i].place == NULL && l->models[tenant].free == NULL) return false;
    return !l->limited || live_allowance(l, tenant, kept) > 0;
}

// Requests that could not be started are not shown as waiting, because a policy would hold cores
// free for them; and policies that look at the first so many see those first that can be in time.
static void arrange(NodeLive *l, NodeView *v) {
    uint32_t n = 0, kept = live_kept(l);
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t k = 0; k < v->n_waiting && (pass == 0 || l->n_behind > 0); k++) {
            uint32_t i = v->waiting[k];
            if (l->beside[i].behind_all == (pass == 1) && startable(l, i, kept)) l->shown[n++] = i;
        }
    v->waiting = l->shown;
    v->n_waiting = n;
}

static void show(NodeLive *l, NodeView *v) {
    *v = (NodeView){.now = now(), .setup = &l->rule->setup, .free = live_free(l)};
    v->n_free = cores_count(&v->free);
    l->watch.measured = atomic_load_explicit(&l->measured, memory_order_relaxed);
    uint32_t before = l->watch.level;
    v->level = watch_level(&l->watch);
    if (v->level != before)
        live_record(l, (Record){.at = v->now, .kind = RECORD_LEVEL, .level = v->level});
    v->pressure = watch_pressure(&l->watch);
    for (uint32_t k = 0; k < l->queue.n_running; k++) {
        uint32_t i = l->queue.running[k];
        l->queue.requests[i].layer =
            atomic_load_explicit(&l->blocks[l->beside[i].slot].at, memory_order_relaxed);
    }
    queue_show(&l->queue, v);
    if (l->limited || l->n_full > 0 || l->n_behind > 0) arrange(l, v);
}

void live_forget_gone(NodeLive *l) {
    for (uint32_t i = l->queue.n; i-- > 0 && l->n_gone > 0;) {
        if (!l->beside[i].gone) continue;
        drop(l, i);
        l->n_gone--;
    }
}

static void flush(NodeLive *l) {
    TimeNs t = now();
    for (uint32_t k = 0; k < l->queue.n_waiting; k++)
        live_end(l, l->queue.waiting[k], t, LIVE_REFUSED, "nobody started it");
    live_forget_gone(l);
}

static bool is_cancelled(const LiveAsk *ask) {
    return ask->cancelled != NULL && atomic_load_explicit(ask->cancelled, memory_order_relaxed);
}

// Those that wait and whose time is over, or whose owners have gone.
static void weed(NodeLive *l, TimeNs t) {
    l->expiry = INT64_MAX;
    for (uint32_t k = 0; k < l->queue.n_waiting; k++) {
        uint32_t       i = l->queue.waiting[k];
        const LiveAsk *ask = &l->beside[i].ask;
        if (is_cancelled(ask))
            live_end(l, i, t, LIVE_CANCELLED, "it was cancelled");
        else if (ask->expire > 0 && ask->expire <= t)
            live_end(l, i, t, LIVE_EXPIRED, "its time was over");
        else if (over_at(l, ask) <= t)
            live_end(l, i, t, LIVE_REFUSED, live_reason(NODE_HOPELESS));
        else if (over_at(l, ask) < l->expiry)
            l->expiry = over_at(l, ask);
    }
    live_forget_gone(l);
}

// A block that is still the same after so many ticks has taken too long. Ticks, not time: when the
// whole process stood still, so did they.
static void tick(NodeLive *l) {
    for (uint32_t k = 0; k < l->queue.n_running; k++) {
        LiveRequest *x = &l->beside[l->queue.running[k]];
        if (++x->ticks <= LIVE_TICKS) continue;
        atomic_store_explicit(&x->place->space.stop, true, memory_order_relaxed);
    }
}

// Who lost its cores at the end of a block: to whom?
static void note_pauses(NodeLive *l) {
    for (uint32_t k = 0; k < l->queue.n_waiting && l->n_halted > 0; k++) {
        uint32_t     i = l->queue.waiting[k], tenant = l->queue.requests[i].tenant;
        LiveRequest *x = &l->beside[i];
        if (!x->halted) continue;
        uint32_t by = live_busiest(l, tenant);
        x->place->timing.pauses++;
        x->place->timing.paused_by = by != UINT32_MAX ? by : live_busiest(l, UINT32_MAX);
        l->models[tenant].pauses++;
        x->halted = false;
        l->n_halted--;
    }
}

// Once more when the plan was as long as may be, or was cut short: there was more to say.
static void decide(NodeLive *l) {
    uint32_t n = LIVE_ACTIONS;
    l->short_of = false;
    for (uint32_t round = 0; round == 0 || n == LIVE_ACTIONS || l->short_of; round++) {
        NodeView v;
        if (round >= LIVE_ROUNDS && n < LIVE_ACTIONS) break;
        show(l, &v);
        if (l->n_late > 0 && v.now >= l->relief && act_relief(l, &v)) show(l, &v);
        l->short_of = false;
        atomic_store_explicit(&l->alarm, INT64_MAX, memory_order_relaxed);
        TimeNs begin = now();
        n = l->rule->policy->decide(l->rule->state, &v, l->actions, LIVE_ACTIONS);
        l->counts.decide_ns += (double)(now() - begin);
        l->counts.decisions++;
        act_plan(l, &v, n < LIVE_ACTIONS ? n : LIVE_ACTIONS);
        live_forget_gone(l);
        if (l->short_of && l->queue.n_running == 0) live_wake(l, v.now + LIVE_RETRY_NS);
    }
    if (l->n_halted > 0) note_pauses(l);
    if (l->expiry < INT64_MAX) live_wake(l, l->expiry);
}

static void step(NodeLive *l) {
    TimeNs begin = now();
    double decided = l->counts.decide_ns;
    sense(l);
    bool over = l->expiry < INT64_MAX && now() >= l->expiry;
    if (over || atomic_exchange_explicit(&l->cancelled, false, memory_order_acquire))
        weed(l, now());
    if (atomic_exchange_explicit(&l->tick, false, memory_order_relaxed)) tick(l);
    if (atomic_load_explicit(&l->flush, memory_order_relaxed))
        flush(l);
    else if (l->rule != NULL)
        decide(l);
    l->counts.engine_ns += (double)(now() - begin) - (l->counts.decide_ns - decided);
}

// A worker that is woken may take the very core we are on, and nobody could decide until we are
// back: so sleepers are woken after the turn was left.
static void leave(NodeLive *l) {
    Cores asleep = l->asleep;
    l->asleep = (Cores){0};
    atomic_store(&l->busy, 0);
    uint32_t c = cores_next(&asleep, 0);
    if (c == CORES_MAX) return;
    TimeNs begin = now();
    for (; c < CORES_MAX; c = cores_next(&asleep, c + 1)) workers_wake(l->workers, c);
    atomic_fetch_add_explicit(&l->waking_ns, now() - begin, memory_order_relaxed);
}

// Whoever fails to get the turn has left word before, and who leaves it looks for word after.
static void go_on(NodeLive *l) {
    while (atomic_load(&l->again) != 0) {
        if (atomic_exchange(&l->busy, 1) != 0) return;
        while (atomic_exchange(&l->again, 0) != 0) step(l);
        leave(l);
    }
}

void turn_take(NodeLive *l) {
    atomic_store(&l->again, 1);
    go_on(l);
}

void turn_hold(NodeLive *l) {
    while (atomic_exchange(&l->busy, 1) != 0) (void)sched_yield();
}

void turn_leave(NodeLive *l) {
    leave(l);
    go_on(l);
}
