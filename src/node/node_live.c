#include "node/node_live.h"

#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/futex.h"
#include "node/live_int.h"

enum { ARENA_SHIFT = 32, COUNT_NS = 10000000, MEMORY_PARTS = 32 };

static TimeNs now(void) { return clock_now(clock_steady()); }

static void run_member(void *ctx, uint32_t core, void *job, uint32_t index) {
    (void)ctx;
    block_run(job, core, index);
}

// What cost a late request most. Who waited longer than its whole target came at a bad time for
// everybody: that is load, not order.
static const char *why_late(const LivePlace *p) {
    double      target = (double)(p->ask.deadline - p->ask.arrival), most = (double)p->waited_ns;
    const char *why = most > target ? "overload" : "queueing";
    if (p->slowed_ns > most) most = p->slowed_ns, why = "contention";
    if (p->cramped_ns > most) most = p->cramped_ns, why = "conflict";
    if ((double)p->lost_ns > most) why = "preempted by the system";
    return why;
}

static void note_block(LivePlace *p, const Block *b) {
    TimeNs lost = atomic_load_explicit(&b->lost_ns, memory_order_relaxed);
    double over = (double)(b->ended - b->began - lost) - b->expected_ns;
    p->lost_ns += lost;
    p->slowed_ns += over > 0 ? over : 0;
    p->cramped_ns += b->expected_ns - b->unhindered_ns;
}

static void say_answer(LivePlace *p, const Block *b) {
    Err         e = program_collect(b->program, &p->space, NULL, p->outputs);
    bool        met = b->ended <= p->ask.deadline;
    LiveAnswer *a = &p->answer;
    *a = (LiveAnswer){.tenant = p->ask.tenant,
                      .outcome = met ? OUTCOME_MET : OUTCOME_LATE,
                      .arrival = p->ask.arrival,
                      .finish = b->ended,
                      .why = met ? NULL : why_late(p),
                      .outputs = p->outputs};
    if (e != ERR_OK) {
        a->outcome = OUTCOME_REJECTED;
        a->why = "a layer failed";
        a->failed = p->space.why;
        a->outputs = NULL;
    }
    p->ask.done(p->ask.self, a);
}

void live_over(void *live, Block *b) {
    NodeLive  *l = live;
    LivePlace *p = b->place;
    uint32_t   slot = (uint32_t)(b - l->blocks);
    note_block(p, b);
    if (p->finishes) say_answer(p, b);
    atomic_fetch_or_explicit(&l->ended[slot / 64], UINT64_C(1) << slot % 64, memory_order_release);
    turn_take(l);
}

static void read_budget(NodeLive *l) {
    uint32_t cores = cpu_budget(&l->cpu, l->o.roots).cores;
    if (cores > l->o.cores || l->o.fixed) cores = l->o.cores;
    atomic_store(&l->budget, cores);
}

// Sleeps until the policy's alarm, or until it is time to look at the budget and the counters.
static void *keep(void *live) {
    NodeLive *l = live;
    TimeNs    next = now() + l->o.budget_ns;
    TimeNs    pause = counters_any(&l->counters) ? COUNT_NS : l->o.budget_ns;
    while (!atomic_load(&l->stop)) {
        uint32_t word = atomic_load(&l->keeper_word);
        TimeNs   t = now(), until = t + pause;
        if (next < until) until = next;
        TimeNs alarm = atomic_load(&l->alarm);
        if (alarm < until) until = alarm;
        atomic_store(&l->armed, until);
        if (atomic_load(&l->alarm) >= until) futex_wait_for(&l->keeper_word, word, until - t);
        t = now();
        atomic_store(&l->armed, t);
        if (counters_any(&l->counters)) atomic_store(&l->measured, counters_rate(&l->counters, t));
        bool look = t >= next;
        if (look) {
            read_budget(l);
            next = t + l->o.budget_ns;
        }
        if (look || t >= atomic_load(&l->alarm)) turn_take(l);
    }
    return NULL;
}

static Err allocate(NodeLive *l) {
    Arena   *a = &l->arena;
    uint32_t n = l->o.cores;
    l->blocks = arena_try_new(a, Block, n);
    l->of_block = arena_try_new(a, uint32_t, n);
    l->clocks = arena_try_new(a, BlockClock, n);
    l->beside = arena_try_new(a, LiveRequest, l->o.requests);
    l->models = arena_try_new(a, LiveModel, l->o.tenants);
    l->actions = arena_try_new(a, NodeAction, LIVE_ACTIONS);
    l->weights = arena_try_new(a, LiveWeight, LIVE_WEIGHTS);
    if (l->blocks == NULL || l->of_block == NULL || l->clocks == NULL || l->beside == NULL ||
        l->models == NULL || l->actions == NULL || l->weights == NULL)
        return err_set(ERR_LIMIT, "no memory for %u requests at once", l->o.requests);
    TRY(queue_init(&l->queue, l->o.requests, a));
    TRY(inbox_init(&l->inbox, l->o.requests, a));
    return journal_init(&l->journal, l->o.records, a);
}

static void complete(NodeLiveOptions *o) {
    if (o->roots == NULL) o->roots = &cgroup_roots;
    if (o->tenants == 0) o->tenants = 64;
    if (o->requests == 0) o->requests = 4096;
    if (o->places == 0) o->places = 8;
    if (o->records == 0) o->records = 1 << 16;
    if (o->spin_ns == 0) o->spin_ns = 200000;
    if (o->budget_ns == 0) o->budget_ns = 1000000000;
}

static Err start_threads(NodeLive *l) {
    uint32_t       cpus[CORES_MAX];
    bool           bound = cpu_pick(&l->cpu, l->o.cores, cpus) == l->o.cores;
    WorkersOptions o = {.n = l->o.cores,
                        .cpus = bound ? cpus : NULL,
                        .spin_ns = l->o.spin_ns,
                        .run = run_member,
                        .ctx = l};
    counters_open(&l->counters, o.cpus, o.n);
    TRY(workers_create(&l->workers, &o));
    for (uint32_t i = 0; i < l->o.cores; i++) {
        Block *b = &l->blocks[i];
        b->workers = l->workers;
        b->clocks = l->clocks;
        b->over = live_over;
        b->self = l;
    }
    int bad = pthread_create(&l->keeper, NULL, keep, l);
    l->keeps = bad == 0;
    return bad == 0 ? ERR_OK : err_set(ERR_LIMIT, "cannot start a thread: %s", strerror(bad));
}

static Err open_live(NodeLive *l, const NodeLiveOptions *o) {
    l->o = *o;
    complete(&l->o);
    for (uint32_t i = 0; i < 2; i++) TRY(arena_init(&l->states[i], (size_t)1 << ARENA_SHIFT));
    TRY(cpu_read(&l->arena, l->o.roots, &l->cpu));
    if (l->o.cores == 0) l->o.cores = cpu_budget(&l->cpu, l->o.roots).cores;
    if (l->o.cores > CORES_MAX) l->o.cores = CORES_MAX;
    l->idle = cores_all(l->o.cores);
    atomic_store(&l->alarm, INT64_MAX);
    TRY(allocate(l));
    read_budget(l);
    return start_threads(l);
}

Err node_live_create(NodeLive **out, const NodeLiveOptions *o) {
    Arena a;
    TRY(arena_init(&a, (size_t)1 << ARENA_SHIFT));
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
    atomic_fetch_add(&l->keeper_word, 1);
    futex_wake(&l->keeper_word, 1);
    if (l->keeps) CHECK(pthread_join(l->keeper, NULL) == 0);
    workers_destroy(l->workers);
    counters_close(&l->counters);
    for (uint32_t i = 0; i < l->n_models; i++)
        for (uint32_t k = 0; k < l->models[i].n_places; k++)
            space_finish(&l->models[i].places[k].space);
    for (uint32_t i = 0; i < 2; i++) arena_finish(&l->states[i]);
    Arena a = l->arena;
    arena_finish(&a);
}

uint32_t    node_live_cores(const NodeLive *l) { return l->o.cores; }
const char *node_live_watch(const NodeLive *l) { return l->counters.status; }

// Every page is touched now, so that no request pays for it.
static Err prepare(NodeLive *l, LivePlace *p, const Program *program) {
    p->outputs = arena_try_new(&l->arena, Tensor, program->special->graph->n_outputs);
    if (p->outputs == NULL) return err_set(ERR_LIMIT, "no memory for outputs");
    TRY(space_init(&p->space, program, l->o.cores));
    memset(p->space.memory.base, 0, p->space.memory.used);
    return ERR_OK;
}

// A tenant's places take no more than a part of the memory, unless that is less than two.
static uint32_t choose_places(const NodeLive *l, const Program *p) {
    uint64_t each = p->arena_bytes + l->o.cores * program_scratch(p) + 1;
    uint64_t most = cpu_mem_budget(l->o.roots) / MEMORY_PARTS / each;
    if (most > l->o.places) most = l->o.places;
    return most < 2 && l->o.places >= 2 ? 2 : most < 1 ? 1 : (uint32_t)most;
}

Err node_live_add(NodeLive *l, const LiveTenant *t) {
    LiveModel *m = &l->models[l->n_models];
    if (l->n_models == l->o.tenants)
        return err_set(ERR_LIMIT, "tenant '%s' is one more than %u", t->tenant.name, l->o.tenants);
    if (t->tenant.model->n_layers != t->program->n_steps)
        return err_set(ERR_ARG, "tenant '%s': its model has %u layers, its program %u steps",
                       t->tenant.name, t->tenant.model->n_layers, t->program->n_steps);
    *m = (LiveModel){.program = t->program, .inputs = t->inputs};
    uint32_t n = choose_places(l, t->program);
    m->places = arena_try_new(&l->arena, LivePlace, n);
    m->n_versions = arena_try_new(&l->arena, uint8_t, t->program->n_steps);
    if (m->places == NULL || m->n_versions == NULL)
        return err_set(ERR_LIMIT, "no memory for tenant '%s'", t->tenant.name);
    for (uint32_t i = 0; i < t->program->n_steps; i++)
        m->n_versions[i] = (uint8_t)t->program->steps[i].n_versions;
    for (; m->n_places < n; m->n_places++) {
        LivePlace *p = &m->places[m->n_places];
        Err        e = prepare(l, p, t->program);
        if (e != ERR_OK) return err_add(e, "tenant '%s'", t->tenant.name);
        p->next = m->free;
        m->free = p;
    }
    l->n_models++;
    return ERR_OK;
}

Err node_live_use(NodeLive *l, const NodePolicy *policy, const void *settings,
                  const NodeSetup *setup) {
    Watch      watch;
    LivePolicy next = {.policy = policy, .setup = *setup};
    if (setup->n_tenants > l->n_models)
        return err_set(ERR_ARG, "%u tenants, and %u were added", setup->n_tenants, l->n_models);
    if (setup->machine->n_cores > l->o.cores)
        return err_set(ERR_ARG, "a machine of %u cores, and we have %u", setup->machine->n_cores,
                       l->o.cores);
    size_t bytes = policy->state_size != NULL ? policy->state_size(setup, settings) : 0;
    next.state = arena_try(&l->states[!l->state], bytes, 1, 64);
    if (next.state == NULL) return err_set(ERR_LIMIT, "no memory for policy %s", policy->name);
    if (policy->init != NULL) policy->init(next.state, setup, settings);
    watch_init(&watch, &(WatchOptions){0}, setup->machine);
    turn_hold(l);
    watch.running = l->watch.running;
    l->watch = watch;
    l->now = next;
    memset(l->weights, 0, LIVE_WEIGHTS * sizeof *l->weights);
    if (l->queue.n == 0) arena_rewind(&l->states[l->state], 0);  // nobody runs its versions
    l->state = !l->state;
    turn_leave(l);
    return ERR_OK;
}

bool node_live_submit(NodeLive *l, const LiveAsk *ask) {
    if (!inbox_put(&l->inbox, ask)) return false;
    turn_take(l);
    return true;
}

void node_live_record(NodeLive *l, bool on) { atomic_store(&l->recording, on); }

Err node_live_records(NodeLive *l, Arena *scratch, RecordSink to) {
    return journal_drain(&l->journal, scratch, to);
}
