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
    p->next = m->free;
    m->free = p;
}

static void drop(NodeLive *l, uint32_t i) {
    give_back(l, l->queue.requests[i].tenant, l->beside[i].place);
    uint32_t from = queue_drop(&l->queue, i);
    if (from == i) return;
    l->beside[i] = l->beside[from];
    if (l->queue.requests[i].state == NODE_RUNNING) l->of_block[l->beside[i].slot] = i;
}

static void answer_refused(const LiveAsk *ask, TimeNs t, const char *why) {
    LiveAnswer a = {.tenant = ask->tenant,
                    .outcome = OUTCOME_REJECTED,
                    .arrival = ask->arrival,
                    .finish = t,
                    .why = why};
    ask->done(ask->self, &a);
}

static void record_rejected(NodeLive *l, TimeNs t, uint64_t id, uint32_t tenant, const char *why) {
    live_record(l, (Record){.at = t,
                            .kind = RECORD_REJECT,
                            .request = id,
                            .tenant = tenant,
                            .outcome = OUTCOME_REJECTED,
                            .why = why});
}

// It leaves when the whole plan was carried out, because indices would move otherwise.
void live_reject(NodeLive *l, uint32_t i, TimeNs t, const char *why) {
    const NodeRequest *r = &l->queue.requests[i];
    record_rejected(l, t, r->id, r->tenant, why);
    answer_refused(&l->beside[i].ask, t, why);
    l->beside[i].gone = true;
    l->n_gone++;
}

static void admit(NodeLive *l, const LiveAsk *ask, TimeNs t) {
    uint64_t    id = l->next_id++;
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
    bool known = ask->tenant < l->now.setup.n_tenants &&
                 (ask->inputs != NULL || l->models[ask->tenant].inputs != NULL);
    uint32_t i = known ? queue_add(&l->queue, &r) : UINT32_MAX;
    if (i != UINT32_MAX) {
        l->beside[i] = (LiveRequest){.ask = *ask};
        return;
    }
    const char *why = known ? "the queue is full" : "no such tenant, or no inputs";
    record_rejected(l, t, id, ask->tenant, why);
    answer_refused(ask, t, why);
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

static void end_block(NodeLive *l, uint32_t slot) {
    const Block     *b = &l->blocks[slot];
    uint32_t         i = l->of_block[slot];
    NodeRequest     *r = &l->queue.requests[i];
    const LivePlace *p = l->beside[i].place;
    count_block(l, b);
    l->idle = cores_both(l->idle, &r->cores);
    r->computed += (TimeNs)b->area_ns;
    r->since = b->ended;
    r->layer = b->end;
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
        return;
    }
    record_finish(l, r, &p->answer);
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
    Cores within = cores_all(atomic_load_explicit(&l->budget, memory_order_relaxed));
    return cores_common(l->idle, &within);
}

static void show(NodeLive *l, NodeView *v) {
    *v = (NodeView){.now = now(), .setup = &l->now.setup, .free = live_free(l)};
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
}

static void forget_gone(NodeLive *l) {
    for (uint32_t i = l->queue.n; i-- > 0 && l->n_gone > 0;) {
        if (!l->beside[i].gone) continue;
        drop(l, i);
        l->n_gone--;
    }
}

static void flush(NodeLive *l) {
    TimeNs t = now();
    for (uint32_t k = 0; k < l->queue.n_waiting; k++)
        live_reject(l, l->queue.waiting[k], t, "nobody started it");
    forget_gone(l);
}

// Once more when the plan was as long as may be: there was more to say.
static void decide(NodeLive *l) {
    uint32_t n = LIVE_ACTIONS;
    while (l->now.policy != NULL && n == LIVE_ACTIONS) {
        NodeView v;
        show(l, &v);
        atomic_store_explicit(&l->alarm, INT64_MAX, memory_order_relaxed);
        TimeNs begin = now();
        n = l->now.policy->decide(l->now.state, &v, l->actions, LIVE_ACTIONS);
        l->counts.decide_ns += (double)(now() - begin);
        l->counts.decisions++;
        act_plan(l, &v, n < LIVE_ACTIONS ? n : LIVE_ACTIONS);
        forget_gone(l);
    }
}

static void step(NodeLive *l) {
    TimeNs begin = now();
    double decided = l->counts.decide_ns;
    sense(l);
    if (atomic_load_explicit(&l->flush, memory_order_relaxed))
        flush(l);
    else
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
