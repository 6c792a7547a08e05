#include "node/live/node_live.h"

#include <malloc.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/thread.h"
#include "base/warm_memory.h"
#include "base/sync.h"
#include "node/live/live_int.h"

enum { ARENA_SHIFT = 32, COUNT_NS = 10000000, SPIN_NS = 200000, QUOTA_NS = 100000000 };
enum { SLICE_NS = 100000 };  // of CPU time: the timer thread wakes up in time

static void run_member(void *ctx, uint32_t core, void *job, uint32_t index) {
    (void)ctx, (void)core;
    block_run(job, index);
}

static void read_budget(NodeLive *l) {
    CpuBudget b = cpu_budget(&l->cpu, l->o.roots);
    uint32_t  cores = b.cores;
    l->quota = b.quota_milli != INT64_MAX;
    if (cores > l->o.cores || l->o.fixed) cores = l->o.cores;
    atomic_store(&l->budget, cores);
}

// With a cgroup quota, cpu.stat tells how long the process was throttled.
static void look_at_throttling(NodeLive *l, TimeNs t) {
    int64_t ns = l->quota ? cgroup_throttled_ns(l->o.roots) : 0;
    if (ns > l->throttled_ns && l->throttled_ns >= 0) atomic_store(&l->throttled_at, t);
    l->throttled_ns = ns;
}

// Whether a flag asks the timer thread to act now.
static bool is_called(const NodeLive *l) {
    return atomic_load(&l->call) || atomic_load(&l->spares) > 0;
}

// Sleeps until the next wake-up, at the latest until `until`. Flags are set before the word
// changes, and read after it: no call is lost.
static TimeNs sleep_until(NodeLive *l, TimeNs t, TimeNs until) {
    uint32_t word = atomic_load(&l->timer_word);
    TimeNs   alarm = atomic_load(&l->alarm);
    if (alarm < until) until = alarm;
    atomic_store(&l->armed, until);
    if (atomic_load(&l->alarm) >= until && !is_called(l) && !atomic_load(&l->stop))
        futex_wait_for(&l->timer_word, word, until - t);
    t = clock_monotonic_ns();
    atomic_store(&l->armed, t);
    return t;
}

// True: the scheduler should run, because spares it waits for are there or a demoted block ended.
static bool answer_calls(NodeLive *l) {
    uint32_t want = atomic_exchange(&l->spares, 0);
    bool     call = atomic_exchange(&l->call, false), more = false;
    while (workers_spares(l->workers) < want && workers_add_spare(l->workers) == ERR_OK)
        more = true;
    workers_join_ended(l->workers);
    return call || more;
}

// Long runs of the interpreter leave free memory in the heaps of their threads. It is returned once
// no such run has ended for a while, since that takes locks that they need.
static void return_memory(NodeLive *l) {
    bool more = atomic_exchange(&l->freed, false);
    if (l->trims && !more) (void)malloc_trim(0);
    l->trims = more;
    warm_memory_age();
}

// Timer thread: sleeps until the next wake-up, or until budget, counters and watchdog are due.
static void *timer_thread(void *live) {
    NodeLive *l = live;
    thread_set_slice(0, SLICE_NS);
    TimeNs tick_ns = l->o.watchdog_ns / LIVE_TICKS, tick = clock_monotonic_ns() + tick_ns;
    TimeNs next = clock_monotonic_ns() + l->o.budget_ns, quota = 0;
    TimeNs pause = counters_any(&l->counters) ? COUNT_NS : l->o.budget_ns;
    while (!atomic_load(&l->stop)) {
        TimeNs t = clock_monotonic_ns(),
               until = t + (l->quota && pause > QUOTA_NS ? QUOTA_NS : pause);
        if (next < until) until = next;
        if (tick < until) until = tick;
        t = sleep_until(l, t, until);
        if (counters_any(&l->counters)) atomic_store(&l->measured, counters_rate(&l->counters, t));
        if (l->quota && t >= quota) {
            look_at_throttling(l, t);
            quota = t + QUOTA_NS;
        }
        bool look = answer_calls(l);
        if (t >= next) {
            look = true;
            cpu_update_affinity(&l->cpu);
            read_budget(l);
            next = t + l->o.budget_ns;
            live_free_retired(l);
            return_memory(l);
        }
        if (t >= tick) {
            atomic_store(&l->tick, look = true);
            tick = t + tick_ns;
        }
        if (look || t >= atomic_load(&l->alarm)) sched_run(l);
    }
    return NULL;
}

static Err allocate(NodeLive *l) {
    Arena   *a = &l->arena;
    uint32_t n = l->o.cores * (1 + LIVE_DEMOTED_PER_CORE) + LIVE_DEMOTED;
    l->n_slots = n;
    l->blocks = arena_try_new(a, Block, n);
    l->of_block = arena_try_new(a, uint32_t, n);
    l->slots = arena_try_new(a, uint32_t, n);
    l->beside = arena_try_new(a, LiveRequest, l->o.requests);
    l->models = arena_try_new(a, LiveModel, l->o.tenants);
    l->shown = arena_try_new(a, uint32_t, l->o.requests);
    l->actions = arena_try_new(a, NodeAction, LIVE_ACTIONS);
    l->weights = arena_try_new(a, LiveWeight, LIVE_WEIGHTS);
    if (l->blocks == NULL || l->of_block == NULL || l->slots == NULL || l->beside == NULL ||
        l->models == NULL || l->shown == NULL || l->actions == NULL || l->weights == NULL)
        return err_set(ERR_LIMIT, "no memory for %u requests at once", l->o.requests);
    TRY(request_table_init(&l->queue, l->o.requests, a));
    TRY(admission_init(&l->admission, l->o.tenants, a));
    TRY(inbox_init(&l->inbox, l->o.requests, a));
    return journal_init(&l->journal, l->o.records, a);
}

static void complete(NodeLiveOptions *o) {
    if (o->roots == NULL) o->roots = &cgroup_roots;
    if (o->tenants == 0) o->tenants = 64;
    if (o->requests == 0) o->requests = 4096;
    if (o->contexts == 0) o->contexts = 8;
    if (o->records == 0) o->records = 1 << 16;
    if (o->budget_ns == 0) o->budget_ns = 1000000000;
    if (o->starve_ns == 0) o->starve_ns = INT64_C(5000000000);
    if (o->watchdog_ns == 0) o->watchdog_ns = INT64_C(10000000000);
}

// On a single core no other thread could post a job while the worker spins.
static TimeNs choose_spin(const NodeLive *l) {
    if (l->o.spin_ns != 0) return l->o.spin_ns;
    return cpu_budget(&l->cpu, l->o.roots).allowed > 1 ? SPIN_NS : 0;
}

static Err start_threads(NodeLive *l) {
    uint32_t       cpus[CORES_MAX];
    bool           bound = cpu_pick(&l->cpu, l->o.cores, cpus) == l->o.cores;
    WorkersOptions o = {.n = l->o.cores,
                        .cpus = bound ? cpus : NULL,
                        .spin_ns = choose_spin(l),
                        .run = run_member,
                        .ctx = l};
    counters_open(&l->counters, o.cpus, o.n);
    TRY(workers_create(&l->workers, &o));
    for (uint32_t i = l->n_slots; i-- > 0;) {
        Block *b = &l->blocks[i];
        l->slots[l->n_free_slots++] = i;
        b->workers = l->workers;
        b->over = live_over;
        b->self = l;
    }
    TRY(thread_start(&l->timer, "timer", timer_thread, l));
    l->timer_started = true;
    return ERR_OK;
}

static Err open_live(NodeLive *l, const NodeLiveOptions *o) {
    l->o = *o;
    complete(&l->o);
    TRY(cpu_read(&l->arena, l->o.roots, &l->cpu));
    if (l->o.cores == 0) l->o.cores = cpu_budget(&l->cpu, l->o.roots).cores;
    if (l->o.cores > CORES_MAX) l->o.cores = CORES_MAX;
    l->idle = cores_all(l->o.cores);
    atomic_store(&l->n_idle, l->o.cores);
    atomic_store(&l->alarm, INT64_MAX);
    atomic_store(&l->throttled_at, INT64_MIN);
    l->throttled_ns = -1;
    l->expiry = INT64_MAX;
    TRY(allocate(l));
    TRY(job_program_make(&l->jobs));
    read_budget(l);
    return start_threads(l);
}

Err node_live_create(NodeLive **out, const NodeLiveOptions *o) {
    Arena a;
    TRY(arena_init_growing(&a, 1 << 24, (size_t)1 << ARENA_SHIFT));
    NodeLive *l = arena_try_new(&a, NodeLive, 1);
    CHECK(l != NULL);
    l->arena = a;
    Err e = open_live(l, o);
    if (e == ERR_OK)
        *out = l;
    else
        node_live_destroy(l);
    return e;
}

void node_live_destroy(NodeLive *l) {
    if (l == NULL) return;
    atomic_store(&l->stop, true);
    atomic_fetch_add(&l->timer_word, 1);
    futex_wake(&l->timer_word, 1);
    if (l->timer_started) CHECK(pthread_join(l->timer, NULL) == 0);
    workers_destroy(l->workers);
    counters_close(&l->counters);
    for (uint32_t i = 0; i < l->n_models; i++) live_forget_model(&l->models[i]);
    job_program_finish(&l->jobs);
    live_free_retired(l);
    if (l->rule != NULL) {
        Arena rule = l->rule->arena;
        arena_finish(&rule);
    }
    Arena a = l->arena;
    arena_finish(&a);
}

uint32_t node_live_cores(const NodeLive *l) { return l->o.cores; }

// Cores beyond the budget of the process have no block either.
uint32_t node_live_idle(const NodeLive *l) {
    uint32_t idle = atomic_load_explicit(&l->n_idle, memory_order_relaxed);
    uint32_t budget = atomic_load_explicit(&l->budget, memory_order_relaxed);
    uint32_t away = budget < l->o.cores ? l->o.cores - budget : 0;
    return idle > away ? idle - away : 0;
}

const char *node_live_watch(const NodeLive *l) { return l->counters.status; }

bool node_live_submit(NodeLive *l, const EngineRequest *ask) {
    if (!inbox_put(&l->inbox, ask)) return false;
    sched_run(l);
    return true;
}

void node_live_cancel(NodeLive *l) {
    atomic_store_explicit(&l->cancelled, true, memory_order_release);
    sched_run(l);
}

void node_live_record(NodeLive *l, bool on) { atomic_store(&l->recording, on); }

Err node_live_records(NodeLive *l, Arena *scratch, RecordSink to) {
    return journal_drain(&l->journal, scratch, to);
}

uint64_t node_live_lost(const NodeLive *l) {
    return atomic_load_explicit(&l->journal.lost, memory_order_relaxed);
}
