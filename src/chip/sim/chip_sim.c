// The engine of a package in virtual time. It goes from event to event: a layer begins or ends, a
// request arrives or is dropped, a thought is adopted, a policy wanted to be woken. Between two
// events every layer goes on at a speed of its own, see chip_sim_unit.c.
#include "base/err.h"
#include "chip/sim/chip_sim_int.h"

enum { IDLE_ROUNDS = 1000000 };  // without work or news until a policy is held to be stuck

static bool thinks(const ChipSim *e) { return e->run->policy->plan != NULL; }

static TimeNs earlier(TimeNs a, TimeNs b) { return a < b ? a : b; }

static TimeNs next_time(const ChipSim *e) {
    TimeNs t = earlier(e->wake, e->commit_at);
    for (uint32_t u = 0; u < e->progress.n; u++) t = earlier(t, e->progress.event[u]);
    if (e->next_arrival < e->run->trace.n)
        t = earlier(t, e->run->trace.at[e->next_arrival].arrival);
    if (thinks(e) && e->n_tasks > 0) t = earlier(t, e->tick);
    return earlier(t, heap_first_key(&e->deadlines));
}

// A request whose layer runs stays a task until that layer ends, but is answered.
static bool drop_late(ChipSim *e) {
    bool any = false;
    while (heap_first_key(&e->deadlines) <= e->now) {
        uint32_t request = heap_pop(&e->deadlines).id, task = e->place[request];
        if (e->result->answers[request].outcome != OUTCOMES) continue;
        chip_sim_answer(e, task, OUTCOME_REJECTED);
        any = true;
        if (e->tasks[task].unit != CHIP_NONE) continue;
        e->dropped_layers += e->tasks[task].layer;
        chip_sim_remove_task(e, task);
    }
    return any;
}

// All that happens now. True when a policy has something to decide.
static bool happen(ChipSim *e) {
    bool news = e->now >= e->wake;
    news = chip_sim_unit_events(e) || news;
    for (; e->next_arrival < e->run->trace.n; news = true) {
        if (e->run->trace.at[e->next_arrival].arrival > e->now) break;
        chip_sim_arrive(e);
    }
    news = drop_late(e) || news;
    if (e->commit_at > e->now) return news;
    e->commit_at = INT64_MAX;
    if (e->run->policy->commit != NULL) e->run->policy->commit(e->state);
    return true;
}

// Periods start at multiples of T_s; one that finds nothing to think about, or the last thought
// not yet adopted, passes.
static void tick(ChipSim *e) {
    if (!thinks(e) || e->now < e->tick) return;
    bool due = e->now % e->setup.period == 0;
    e->tick = (e->now / e->setup.period + 1) * e->setup.period;
    if (due && e->n_tasks > 0 && e->commit_at == INT64_MAX) chip_sim_plan(e);
}

static void check_alive(ChipSim *e) {
    bool idle = e->n_free == e->setup.n_units && e->next_arrival == e->run->trace.n;
    e->idle_rounds = idle ? e->idle_rounds + 1 : 0;
    bool policy_holds_requests_forever = e->now == INT64_MAX || e->idle_rounds > IDLE_ROUNDS;
    CHECK(!policy_holds_requests_forever);
}

static void go(ChipSim *e) {
    while (e->next_arrival < e->run->trace.n || e->n_tasks > 0) {
        e->now = next_time(e);
        check_alive(e);
        if (happen(e)) chip_sim_decide(e);
        chip_sim_set_speeds(e);
        tick(e);
    }
}

static void prepare_units(ChipSim *e) {
    e->progress.n = e->setup.n_units;
    for (uint32_t u = 0; u < e->setup.n_units; u++) {
        e->progress.event[u] = INT64_MAX;
        e->units[u] = (ChipUnit){.task = CHIP_NONE, .cap = INFINITY};
        e->free[e->n_free++] = u;
    }
    for (uint32_t i = 0; i < e->setup.n_tenants; i++) e->tenant_stats[i].hit_rate = 1;
    e->wake = e->commit_at = INT64_MAX;
}

static Err prepare_tasks(ChipSim *e) {
    uint32_t n = e->run->trace.n;
    e->room = 2 * n + 2;
    e->tasks = arena_try_new(e->arena, ChipTask, n);
    e->place = arena_try_new(e->arena, uint32_t, n);
    e->line = arena_try_new(e->arena, uint32_t, e->room);
    e->slots = arena_try_new(e->arena, uint32_t, n);
    if (e->tasks == NULL || e->place == NULL || e->line == NULL || e->slots == NULL)
        return err_set(ERR_LIMIT, "no memory to simulate %u requests", n);
    if (e->setup.firm) heap_init(&e->deadlines, e->arena, n);
    e->waiting = e->line;
    for (uint32_t i = 0; i < n; i++) e->slots[e->n_slots_left++] = n - 1 - i;
    for (uint32_t i = 0; i < n; i++) e->result->answers[i].outcome = OUTCOMES;
    return ERR_OK;
}

static uint32_t simulate_with(ChipSim *e, const ChipPolicy *p, const void *settings,
                              uint8_t *in_time) {
    size_t     mark = e->arena->used;
    ChipResult r;
    ChipRun    run = *e->run;
    uint32_t   met = 0;
    run.policy = p;
    run.settings = settings;
    run.loaded = NULL;
    run.records = (RecordSink){0};
    run.watch = NULL;
    run.clock = NULL;
    bool rehearsal_runs =
        (p->load == NULL || p->load(&e->setup, settings, e->arena, &run.loaded) == ERR_OK) &&
        !p->clairvoyant && chip_simulate(&run, e->arena, &r) == ERR_OK;
    CHECK(rehearsal_runs);
    for (uint32_t i = 0; i < r.n; i++) {
        bool hit = r.answers[i].outcome == OUTCOME_MET;
        met += hit;
        if (in_time != NULL) in_time[i] = hit;
    }
    arena_rewind(e->arena, mark);
    return met;
}

static void prepare_policy(ChipSim *e) {
    const ChipPolicy *p = e->run->policy;
    e->setup.n_slots = e->run->trace.n;
    e->setup.rng = rng_fork((Rng){e->run->seed}, 1);
    e->setup.future = NULL;
    if (p->clairvoyant) {
        e->future = (ChipFuture){e->run->trace.at, e->run->trace.n, e, simulate_with, e->run->skip};
        e->setup.future = &e->future;
    }
    if (p->state_size != NULL)
        e->state = arena_alloc(e->arena, p->state_size(&e->setup, e->run->settings), 1, 64);
    if (p->init != NULL) p->init(e->state, &e->setup, e->run->settings, e->run->loaded);
}

static Err check_model(const ChipSetup *s, const ChipModel *m) {
    CHECK(m->n_kinds == s->n_kinds);
    if (m->n_layers == 0) return err_set(ERR_ARG, "network %s has no layers", m->name);
    for (uint32_t l = 0; l < m->n_layers; l++) {
        bool can = false;
        for (uint32_t k = 0; k < s->n_kinds; k++)
            can = can || (s->kinds[k].n_units > 0 && isfinite(chip_cost(m, l, k)->ns));
        if (!can)
            return err_set(ERR_ARG,
                           "no unit of the package can compute layer %u of %s; add one that can", l,
                           m->name);
    }
    return ERR_OK;
}

static Err check_run(const ChipRun *run) {
    const ChipSetup *s = &run->setup;
    CHECK(s->n_units <= CHIP_UNITS && s->n_tenants <= CHIP_TENANTS && s->n_kinds <= CHIP_KINDS);
    CHECK(run->policy->plan == NULL || s->period > 0);
    if (!(s->bytes_ns > 0)) return err_set(ERR_ARG, "a memory without bandwidth; give it some");
    for (uint32_t i = 0; i < s->n_tenants; i++) TRY(check_model(s, s->tenants[i].model));
    for (uint32_t i = 0; i < run->trace.n; i++) {
        const ChipRequest *r = &run->trace.at[i];
        CHECK(r->tenant < s->n_tenants && r->arrival >= 0);
        CHECK(i == 0 || r->arrival >= run->trace.at[i - 1].arrival);
    }
    return ERR_OK;
}

// Whatever came was answered once, and every layer that was computed was some request's.
static void check_balance(const ChipSim *e) {
    uint64_t layers = e->finished_layers + e->dropped_layers, wanted = 0;
    for (uint32_t i = 0; i < e->result->n; i++) {
        const ChipAnswer *x = &e->result->answers[i];
        CHECK(x->outcome < OUTCOMES);
        if (x->outcome != OUTCOME_REJECTED) wanted += e->setup.tenants[x->tenant].model->n_layers;
    }
    CHECK(e->answered == e->result->n && wanted == e->finished_layers);
    CHECK(layers == e->result->layers);
    CHECK(e->n_free == e->setup.n_units && e->n_waiting == 0);
    CHECK(e->n_slots_left == e->result->n);
}

static Err simulate(ChipSim *e) {
    TRY(prepare_tasks(e));
    prepare_units(e);
    prepare_policy(e);
    go(e);
    check_balance(e);
    e->result->idle_pj = e->run->idle_mw * (double)e->result->span;  // 1 mW is 1 pJ in 1 ns
    return ERR_OK;
}

Err chip_simulate(const ChipRun *run, Arena *a, ChipResult *out) {
    ChipResult r = {.n = run->trace.n};
    TRY(check_run(run));
    r.answers = arena_try_new(a, ChipAnswer, r.n);
    size_t   mark = a->used;
    ChipSim *e = arena_try_new(a, ChipSim, 1);
    if (r.answers == NULL || e == NULL)
        return err_set(ERR_LIMIT, "no memory to simulate %u requests", r.n);
    e->run = run;
    e->arena = a;
    e->setup = run->setup;
    e->result = &r;
    Err error = simulate(e);
    arena_rewind(a, mark);
    TRY(error);
    *out = r;
    return ERR_OK;
}
