// One run: submits arrivals in real time, collects results, delivers records at the end.
#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/sync.h"
#include "node/live/live_int.h"

enum { LEAD_NS = 2000000, PATIENCE_NS = 200000000, PATIENCE_ROUNDS = 50, PAUSE_NS = 100000 };

typedef struct LiveRun LiveRun;

typedef struct Asked {
    LiveRun *live_run;
    uint32_t index;
} Asked;

struct LiveRun {
    NodeLive        *live;
    const NodeRun   *run;
    NodeResult      *out;
    Asked           *asked;  // [n]
    _Atomic uint32_t answered, missed;
    TimeNs           origin;  // time 0 of the run
};

static void sleep_until(TimeNs t) {
    struct timespec at = {.tv_sec = t / 1000000000, .tv_nsec = t % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) continue;
}

static void answered(void *self, const EngineResult *a) {
    const Asked *k = self;
    LiveRun     *p = k->live_run;
    p->out->answers[k->index] = (NodeAnswer){.arrival = a->arrival - p->origin,
                                             .finish = a->finish - p->origin,
                                             .tenant = a->tenant,
                                             .outcome = a->outcome};
    if (a->outcome != OUTCOME_MET && k->index >= p->run->skip) atomic_fetch_add(&p->missed, 1);
    uint32_t n = atomic_fetch_add(&p->answered, 1) + 1;
    if (n == p->out->n) futex_wake(&p->answered, 1);
}

static void submit(LiveRun *p, uint32_t i) {
    const Arrival *a = &p->run->arrivals.at[i];
    TimeNs         at = p->origin + a->at;
    EngineRequest  ask = {.tenant = a->tenant,
                          .arrival = at,
                          .deadline = at + p->run->setup.tenants[a->tenant].qos_ns,
                          .done = answered,
                          .self = &p->asked[i]};
    if (p->run->inputs != NULL) {
        ask.program = p->run->inputs[i].program;
        ask.inputs = p->run->inputs[i].inputs;
    }
    p->asked[i] = (Asked){p, i};
    while (!node_live_submit(p->live, &ask)) (void)sched_yield();
}

// A policy that never starts some requests must not block the end of the run.
static void wait_for_answers(LiveRun *p) {
    uint32_t last = 0, idle = 0;
    for (;;) {
        uint32_t n = atomic_load(&p->answered);
        if (n == p->out->n) return;
        idle = n == last ? idle + 1 : 0;
        last = n;
        if (idle == PATIENCE_ROUNDS) {
            atomic_store(&p->live->flush, true);
            sched_run(p->live);
            idle = 0;
        }
        futex_wait_for(&p->answered, n, PATIENCE_NS);
    }
}

// The last result is delivered before its block is returned, possibly by a thread preempted by this
// one.
static void wait_until_quiet(NodeLive *l) {
    for (;;) {
        sched_lock(l);
        bool quiet = l->queue.n == 0;
        sched_unlock(l);
        if (quiet) return;
        sleep_until(clock_monotonic_ns() + PAUSE_NS);
    }
}

static bool hopeless(const LiveRun *p) {
    double counted = (double)(p->out->n - p->run->skip);
    return p->run->give_up > 0 && (double)atomic_load(&p->missed) > p->run->give_up * counted;
}

// Remaining arrivals count as late; waiting requests are rejected, running ones finish.
static void abandon(LiveRun *p, uint32_t from) {
    p->out->gave_up = true;
    atomic_store(&p->live->flush, true);
    sched_run(p->live);
    for (uint32_t i = from; i < p->out->n; i++) {
        const Arrival *a = &p->run->arrivals.at[i];
        p->asked[i] = (Asked){p, i};
        answered(&p->asked[i], &(EngineResult){.tenant = a->tenant,
                                               .outcome = OUTCOME_LATE,
                                               .arrival = p->origin + a->at,
                                               .finish = p->origin + a->at +
                                                         p->run->setup.tenants[a->tenant].qos_ns});
    }
}

static void submit_all(LiveRun *p) {
    int slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    (void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    for (uint32_t i = 0; i < p->out->n; i++) {
        TimeNs at = p->origin + p->run->arrivals.at[i].at;
        if (at > clock_monotonic_ns()) sleep_until(at);
        if (hopeless(p)) {
            abandon(p, i);
            break;
        }
        submit(p, i);
    }
    wait_for_answers(p);
    wait_until_quiet(p->live);
    atomic_store(&p->live->flush, false);
    if (slack > 0) (void)prctl(PR_SET_TIMERSLACK, (unsigned long)slack, 0, 0, 0);
}

typedef struct Shift {
    RecordSink to;
    TimeNs     origin;
    uint64_t   first;  // id of the run's first request
} Shift;

static void put_shifted(void *self, const Record *r) {
    const Shift *s = self;
    Record       own = *r;
    own.at = r->at > s->origin ? r->at - s->origin : 0;
    own.request -= r->kind == RECORD_REFUSE || r->kind == RECORD_LEVEL ? 0 : s->first;
    if (own.kind == RECORD_ARRIVE) own.deadline -= s->origin;
    record_put(s->to, &own);
}

static void sum_up(LiveRun *p, const LiveCounts *c) {
    NodeResult *r = p->out;
    TimeNs      last = 0, first = r->n > 0 ? p->run->arrivals.at[0].at : 0;
    for (uint32_t i = 0; i < r->n; i++)
        if (r->answers[i].finish > last) last = r->answers[i].finish;
    r->blocks = c->blocks;
    r->conflicts = c->conflicts;
    r->grown = c->grown;
    r->decisions = c->decisions;
    r->refused = c->refused;
    r->preempted = c->preempted;
    r->busy_core_ns = c->busy_core_ns;
    r->decide_ns = c->decide_ns;
    r->engine_ns = c->engine_ns;
    r->span = last - first;
}

Err node_live_run(NodeLive *l, const NodeRun *run, Arena *a, NodeResult *out) {
    uint32_t   n = run->arrivals.n;
    NodeResult result = {.n = n, .answers = arena_try_new(a, NodeAnswer, n)};
    LiveRun    p = {.live = l, .run = run, .out = &result, .asked = arena_try_new(a, Asked, n)};
    if (result.answers == NULL || p.asked == NULL)
        return err_set(ERR_LIMIT, "no memory for %u requests", n);
    TRY(node_live_use(l, run->policy, run->settings, &run->setup));
    TRY(journal_drain(&l->journal, a, (RecordSink){0}));
    sched_lock(l);
    l->counts = (LiveCounts){0};
    atomic_store(&l->waking_ns, 0);
    uint64_t first = l->next_id;
    l->o.admit = run->admit;
    atomic_store(&l->recording, run->records.put != NULL);
    sched_unlock(l);
    p.origin = clock_monotonic_ns() + LEAD_NS;
    submit_all(&p);
    sched_lock(l);
    LiveCounts counts = l->counts;
    counts.engine_ns += (double)atomic_load(&l->waking_ns);
    atomic_store(&l->recording, false);
    sched_unlock(l);
    sum_up(&p, &counts);
    Shift shift = {run->records, p.origin, first};
    TRY(journal_drain(&l->journal, a, (RecordSink){put_shifted, &shift}));
    *out = result;
    return ERR_OK;
}
