// Preemption: ends running requests that were cancelled or have expired, and takes cores from
// blocks that run long while other tenants wait.
//
// A block that has run for a quantum is told to yield: it ends at its next layer or slice, and the
// policy decides anew. A block that does not get there within another quantum of CPU time (a long
// reference kernel, an endless loop, a large copy) is demoted: other threads take over its cores,
// its request counts as running without cores, and its threads compute while cores are idle only
// (turns.c). A block that other processes keep from running is not demoted: it would get even less.
#include <sched.h>

#include "base/clock.h"
#include "base/sync.h"
#include "node/live/live_int.h"

enum { RETRY_NS = 500000 };

void live_stop(ExecContext *p, LiveEnd end) {
    uint32_t none = LIVE_DONE;
    (void)atomic_compare_exchange_strong(&p->stopped_as, &none, end);
    work_stop_tell(&p->mem.stop, WORK_STOP);
}

static bool is_cancelled(ExecContext *p) {
    uint32_t open = ANSWER_OPEN;
    if (p->ask.cancelled == NULL || !atomic_compare_exchange_strong(&p->guard, &open, ANSWER_READ))
        return false;
    bool yes = atomic_load(p->ask.cancelled);
    atomic_store(&p->guard, ANSWER_OPEN);
    return yes;
}

void live_guard_close(ExecContext *p) {
    uint32_t open = ANSWER_OPEN;
    while (!atomic_compare_exchange_strong(&p->guard, &open, ANSWER_GIVEN)) {
        open = ANSWER_OPEN;
        (void)sched_yield();
    }
}

// The next time to look at its expiry.
static TimeNs end_over(ExecContext *p, TimeNs now, bool cancelled) {
    TimeNs expire = p->ask.expire;
    if (cancelled && is_cancelled(p)) live_stop(p, LIVE_CANCELLED);
    if (expire == 0) return INT64_MAX;
    if (now < expire) return expire;
    live_stop(p, LIVE_EXPIRED);
    return INT64_MAX;
}

// Requests of a tenant that could start if they had cores.
static uint32_t ready(const LiveModel *m) {
    if (m->max_cores > 0 && m->cores >= m->max_cores) return 0;
    return m->free != NULL ? m->waiting : m->waiting - m->queued;
}

static bool others_ready(const NodeLive *l, uint32_t tenant) {
    for (uint32_t i = 0; i < l->n_models; i++)
        if (i != tenant && l->models[i].served && ready(&l->models[i]) > 0) return true;
    return false;
}

static void take_back(NodeLive *l, NodeRequest *r, const Cores *cores) {
    l->models[r->tenant].cores -= cores_count(cores);
    l->idle = cores_union(l->idle, cores);
    r->cores = cores_difference(r->cores, cores);
}

// Asks the timer thread for as many spare workers, and some for the next time.
static bool has_spares(NodeLive *l, uint32_t n) {
    uint32_t have = workers_spares(l->workers), want = n + l->o.cores;
    if (have >= want) return true;
    atomic_store(&l->spares, want);
    live_call_timer(l);
    return have >= n;
}

static void note_demotion(NodeLive *l, uint32_t i, TimeNs now) {
    NodeRequest *r = &l->queue.requests[i];
    live_record_end(l, r, now);
    core_use_add(&l->models[r->tenant].use, (double)(now - r->since) * cores_count(&r->cores), now);
    interference_end(&l->watch, l->blocks[l->beside[i].slot].load);
    l->beside[i].demoted = true;
    l->models[r->tenant].demotions++;
    if (l->queue.n_demoted == 0) {
        l->turns_from = now;
        l->turns_ns = 0;
    }
    request_table_demote(&l->queue, i);
}

// False: not now.
static bool demote(NodeLive *l, uint32_t i, TimeNs now) {
    NodeRequest *r = &l->queue.requests[i];
    Cores        all = r->cores;
    if (l->queue.n_demoted == l->n_slots - l->o.cores || !workers_begun(l->workers, &all))
        return false;
    if (!has_spares(l, cores_count(&all)) || !block_demote(&l->blocks[l->beside[i].slot]))
        return false;
    l->beside[i].threads = workers_demote(l->workers, &all);
    l->beside[i].turn_core = cores_next(&all, 0);
    note_demotion(l, i, now);
    turns_pause(l, &l->beside[i], now);
    take_back(l, r, &all);
    return true;
}

// Ends its growth and tells it to yield.
static bool tell_to_yield(NodeLive *l, uint32_t i) {
    LiveRequest *x = &l->beside[i];
    NodeRequest *r = &l->queue.requests[i];
    Block       *b = &l->blocks[x->slot];
    Cores        back = {0};
    if (!block_seal(b, &back)) return false;
    take_back(l, r, &back);
    atomic_store_explicit(&b->yield, true, memory_order_relaxed);
    x->cpu_ns = workers_cpu_ns(l->workers, &r->cores);
    x->delay_ns = workers_delay_ns(l->workers, &r->cores);
    x->pressed_at = clock_monotonic_ns();
    x->pressed = true;
    return true;
}

// Time since it was told to yield in which it used its cores or was blocked, for example by a lock
// of the system; not the time in which other processes had them.
static TimeNs used_ns(const NodeLive *l, const NodeRequest *r, const LiveRequest *x, TimeNs now) {
    TimeNs n = cores_count(&r->cores), wall = now - x->pressed_at;
    TimeNs cpu = (workers_cpu_ns(l->workers, &r->cores) - x->cpu_ns) / n;
    if (cpu >= l->rule->quantum_ns || wall < l->rule->quantum_ns || x->delay_ns < 0) return cpu;
    TimeNs delay = (workers_delay_ns(l->workers, &r->cores) - x->delay_ns) / n;
    return wall - delay > cpu ? wall - delay : cpu;
}

// The next time to look at the block, if other tenants wait still.
static TimeNs press(NodeLive *l, uint32_t i, TimeNs now, bool *freed) {
    const NodeRequest *r = &l->queue.requests[i];
    LiveRequest       *x = &l->beside[i];
    TimeNs             quantum = l->rule->quantum_ns;
    if (x->demoted || l->queue.n_waiting == l->models[r->tenant].waiting) return INT64_MAX;
    if (now - r->since < quantum) return r->since + quantum;
    if (!others_ready(l, r->tenant)) return now + RETRY_NS;
    if (!x->pressed) return now + (tell_to_yield(l, i) ? quantum : RETRY_NS);
    TimeNs each = used_ns(l, r, x, now);
    if (each < quantum) return now + (quantum - each > RETRY_NS ? quantum - each : RETRY_NS);
    *freed = demote(l, i, now);
    return *freed ? INT64_MAX : now + RETRY_NS;
}

void preempt_running(NodeLive *l, bool cancelled) {
    TimeNs now = clock_monotonic_ns(), next = INT64_MAX;
    bool   freed = false;
    for (uint32_t k = l->queue.n_running;
         k-- > 0;) {  // a demoted one changes places with a later one
        uint32_t i = l->queue.running[k];
        TimeNs   over = end_over(l->beside[i].ctx, now, cancelled);
        TimeNs   look = l->rule != NULL ? press(l, i, now, &freed) : INT64_MAX;
        if (over < next) next = over;
        if (look < next) next = look;
        if (freed) atomic_store(&l->again, 1);  // the policy gets the cores
    }
    if (next < INT64_MAX) live_wake(l, next);
}
