// A discrete-event simulation of a package. Events: a layer begins or ends, a request arrives or is
// dropped, a plan is committed, a wake-up that the policy asked for. Between two events every layer
// progresses at its own constant speed, see chip_sim_units.c.
#include "base/err.h"
#include "base/stats.h"
#include "chip/sim/chip_sim_int.h"

enum { IDLE_ROUNDS = 1000000 };  // after which the policy counts as stuck

static bool plans(const ChipSim *sim) { return sim->run->policy->plan != NULL; }

static TimeNs earlier(TimeNs a, TimeNs b) { return a < b ? a : b; }

static TimeNs next_time(const ChipSim *sim) {
    TimeNs t = earlier(sim->wake, sim->commit_at);
    for (uint32_t u = 0; u < sim->progress.n; u++) t = earlier(t, sim->progress.event[u]);
    if (sim->next_arrival < sim->run->trace.n)
        t = earlier(t, sim->run->trace.at[sim->next_arrival].arrival);
    if (plans(sim) && sim->n_tasks > 0) t = earlier(t, sim->tick);
    return earlier(t, heap_first_key(&sim->deadlines));
}

// A request with a running layer is answered now, but stays a task until the layer ends.
static bool drop_late(ChipSim *sim) {
    bool any = false;
    while (heap_first_key(&sim->deadlines) <= sim->now) {
        uint32_t request = heap_pop(&sim->deadlines).id, task = sim->index[request];
        if (sim->result->answers[request].outcome != OUTCOMES) continue;
        chip_sim_answer(sim, task, OUTCOME_REJECTED);
        any = true;
        if (sim->tasks[task].unit != CHIP_NONE) continue;
        sim->dropped_layers += sim->tasks[task].layer;
        chip_sim_remove_task(sim, task);
    }
    return any;
}

// Handles all events due now. True if the policy has to decide.
static bool handle_events(ChipSim *sim) {
    bool due = sim->now >= sim->wake;
    due = chip_sim_unit_events(sim) || due;
    for (; sim->next_arrival < sim->run->trace.n; due = true) {
        if (sim->run->trace.at[sim->next_arrival].arrival > sim->now) break;
        chip_sim_arrive(sim);
    }
    due = drop_late(sim) || due;
    if (sim->commit_at > sim->now) return due;
    sim->commit_at = INT64_MAX;
    if (sim->run->policy->commit != NULL) sim->run->policy->commit(sim->state);
    return true;
}

// Periods start at multiples of T_s. One without tasks, or before the last plan is committed, is
// skipped.
static void tick(ChipSim *sim) {
    if (!plans(sim) || sim->now < sim->tick) return;
    bool at_period = sim->now % sim->setup.period == 0;
    sim->tick = (sim->now / sim->setup.period + 1) * sim->setup.period;
    if (at_period && sim->n_tasks > 0 && sim->commit_at == INT64_MAX) chip_sim_plan(sim);
}

static void check_alive(ChipSim *sim) {
    bool idle = sim->n_free == sim->setup.n_units && sim->next_arrival == sim->run->trace.n;
    sim->idle_rounds = idle ? sim->idle_rounds + 1 : 0;
    bool policy_holds_requests_forever = sim->now == INT64_MAX || sim->idle_rounds > IDLE_ROUNDS;
    CHECK(!policy_holds_requests_forever);
}

static void run_events(ChipSim *sim) {
    while (sim->next_arrival < sim->run->trace.n || sim->n_tasks > 0) {
        sim->now = next_time(sim);
        check_alive(sim);
        if (handle_events(sim)) chip_sim_decide(sim);
        chip_sim_set_speeds(sim);
        tick(sim);
    }
}

static void prepare_units(ChipSim *sim) {
    sim->progress.n = sim->setup.n_units;
    for (uint32_t u = 0; u < sim->setup.n_units; u++) {
        sim->progress.event[u] = INT64_MAX;
        sim->units[u] = (ChipUnit){.task = CHIP_NONE, .cap = INFINITY};
        sim->free[sim->n_free++] = u;
    }
    for (uint32_t i = 0; i < sim->setup.n_tenants; i++) sim->tenant_stats[i].hit_rate = 1;
    sim->wake = sim->commit_at = INT64_MAX;
}

static Err prepare_tasks(ChipSim *sim) {
    uint32_t n = sim->run->trace.n;
    sim->room = 2 * n + 2;
    sim->tasks = arena_try_new(sim->arena, ChipTask, n);
    sim->index = arena_try_new(sim->arena, uint32_t, n);
    sim->buffer = arena_try_new(sim->arena, uint32_t, sim->room);
    sim->slots = arena_try_new(sim->arena, uint32_t, n);
    if (sim->tasks == NULL || sim->index == NULL || sim->buffer == NULL || sim->slots == NULL)
        return err_set(ERR_LIMIT, "no memory to simulate %u requests", n);
    if (sim->setup.firm) heap_init(&sim->deadlines, sim->arena, n);
    sim->waiting = sim->buffer;
    for (uint32_t i = 0; i < n; i++) sim->slots[sim->n_slots_left++] = n - 1 - i;
    for (uint32_t i = 0; i < n; i++) sim->result->answers[i].outcome = OUTCOMES;
    return ERR_OK;
}

static uint32_t simulate_with(ChipSim *sim, const ChipPolicy *p, const void *settings,
                              uint8_t *in_time) {
    size_t     mark = sim->arena->used;
    ChipResult r;
    ChipRun    run = *sim->run;
    uint32_t   met = 0;
    run.policy = p;
    run.settings = settings;
    run.loaded = NULL;
    run.records = (RecordSink){0};
    run.watch = NULL;
    run.clock = NULL;
    bool simulated =
        (p->load == NULL || p->load(&sim->setup, settings, sim->arena, &run.loaded) == ERR_OK) &&
        !p->clairvoyant && chip_simulate(&run, sim->arena, &r) == ERR_OK;
    CHECK(simulated);
    for (uint32_t i = 0; i < r.n; i++) {
        bool hit = r.answers[i].outcome == OUTCOME_MET;
        met += hit;
        if (in_time != NULL) in_time[i] = hit;
    }
    arena_rewind(sim->arena, mark);
    return met;
}

static void prepare_policy(ChipSim *sim) {
    const ChipPolicy *p = sim->run->policy;
    sim->setup.n_slots = sim->run->trace.n;
    sim->setup.rng = rng_fork((Rng){sim->run->seed}, 1);
    sim->setup.future = NULL;
    if (p->clairvoyant) {
        sim->future =
            (ChipFuture){sim->run->trace.at, sim->run->trace.n, sim, simulate_with, sim->run->skip};
        sim->setup.future = &sim->future;
    }
    if (p->state_size != NULL)
        sim->state = arena_alloc(sim->arena, p->state_size(&sim->setup, sim->run->settings), 1, 64);
    if (p->init != NULL) p->init(sim->state, &sim->setup, sim->run->settings, sim->run->loaded);
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
    if (!(s->bytes_ns > 0)) return err_set(ERR_ARG, "the memory has no bandwidth; set bytes_cycle");
    for (uint32_t i = 0; i < s->n_tenants; i++) TRY(check_model(s, s->tenants[i].model));
    for (uint32_t i = 0; i < run->trace.n; i++) {
        const ChipRequest *r = &run->trace.at[i];
        CHECK(r->tenant < s->n_tenants && r->arrival >= 0);
        CHECK(i == 0 || r->arrival >= run->trace.at[i - 1].arrival);
    }
    return ERR_OK;
}

// Every request was answered once, and every computed layer belongs to a request.
static void check_balance(const ChipSim *sim) {
    uint64_t layers = sim->finished_layers + sim->dropped_layers, wanted = 0;
    for (uint32_t i = 0; i < sim->result->n; i++) {
        const ChipAnswer *x = &sim->result->answers[i];
        CHECK(x->outcome < OUTCOMES);
        if (x->outcome != OUTCOME_REJECTED) wanted += sim->setup.tenants[x->tenant].model->n_layers;
    }
    CHECK(sim->answered == sim->result->n && wanted == sim->finished_layers);
    CHECK(layers == sim->result->layers);
    CHECK(sim->n_free == sim->setup.n_units && sim->n_waiting == 0);
    CHECK(sim->n_slots_left == sim->result->n);
}

static Err simulate(ChipSim *sim) {
    TRY(prepare_tasks(sim));
    prepare_units(sim);
    prepare_policy(sim);
    run_events(sim);
    check_balance(sim);
    sim->result->idle_pj = sim->run->idle_mw * (double)sim->result->span;  // 1 mW is 1 pJ in 1 ns
    return ERR_OK;
}

Err chip_simulate(const ChipRun *run, Arena *a, ChipResult *out) {
    ChipResult r = {.n = run->trace.n};
    TRY(check_run(run));
    r.answers = arena_try_new(a, ChipAnswer, r.n);
    size_t   mark = a->used;
    ChipSim *sim = arena_try_new(a, ChipSim, 1);
    if (r.answers == NULL || sim == NULL)
        return err_set(ERR_LIMIT, "no memory to simulate %u requests", r.n);
    sim->run = run;
    sim->arena = a;
    sim->setup = run->setup;
    sim->result = &r;
    Err error = simulate(sim);
    arena_rewind(a, mark);
    TRY(error);
    *out = r;
    return ERR_OK;
}

typedef struct Tally {
    double  *ms;  // of answered ones
    uint32_t answered;
    double   slowdown;  // its logarithm, summed
} Tally;

static void add_answer(const ChipRun *run, const ChipResult *r, uint32_t i, ChipSummary *s,
                       Tally *t) {
    const ChipAnswer *x = &r->answers[i];
    s->n++;
    s->met += x->outcome == OUTCOME_MET;
    s->late += x->outcome == OUTCOME_LATE;
    s->dropped += x->outcome == OUTCOME_REJECTED;
    if (x->outcome == OUTCOME_REJECTED) return;
    double ns = (double)(x->finish - run->trace.at[i].arrival);
    t->slowdown += log(ns / (double)run->setup.tenants[x->tenant].model->rest_ns[0]);
    t->ms[t->answered++] = ns / 1e6;
}

static Err latencies(const Tally *t, Arena *scratch, ChipSummary *s) {
    double *sorted = NULL;
    if (t->answered == 0) return ERR_OK;
    TRY(stats_sort(scratch, t->ms, t->answered, &sorted));
    s->slowdown = exp(t->slowdown / t->answered);
    s->mean_ms = stats_mean(sorted, t->answered).mean;
    s->p99_ms = stats_percentile(sorted, t->answered, 99);
    return ERR_OK;
}

static void summarize_package(const ChipRun *run, const ChipResult *r, ChipSummary *s) {
    double   energy = r->layer_pj + r->policy_pj + r->idle_pj, span = (double)r->span;
    uint32_t met = 0;
    for (uint32_t i = 0; i < r->n; i++) met += r->answers[i].outcome == OUTCOME_MET;
    s->energy_mj = energy / 1e9;
    s->in_time_mj = met > 0 ? s->energy_mj / met : NAN;
    if (energy > 0) s->policy_energy_share = r->policy_pj / energy;
    if (!(span > 0)) return;
    s->bandwidth_use = r->bytes / (span * (double)run->setup.bytes_ns);
    s->unit_use = r->busy_unit_ns / (span * run->setup.n_units);
}

Err chip_summary(const ChipRun *run, const ChipResult *r, uint32_t tenant, Arena *scratch,
                 ChipSummary *out) {
    ChipSummary s = {0};
    size_t      mark = scratch->used;
    Tally       t = {.ms = arena_try_new(scratch, double, r->n)};
    if (t.ms == NULL) return err_set(ERR_LIMIT, "no memory for %u latencies", r->n);
    for (uint32_t i = run->skip; i < r->n; i++)
        if (tenant == CHIP_NONE || r->answers[i].tenant == tenant) add_answer(run, r, i, &s, &t);
    Err e = latencies(&t, scratch, &s);
    arena_rewind(scratch, mark);
    TRY(e);
    if (s.n > 0) s.sla = (double)s.met / s.n;
    summarize_package(run, r, &s);
    *out = s;
    return ERR_OK;
}
