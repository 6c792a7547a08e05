// Discrete-event simulator of a cluster. Events: a job ends, a job arrives, a policy's timer, a
// round. At one instant ends come first, then arrivals, then the decision. Between events every
// running job progresses at its own rate.
#include "base/err.h"
#include "cluster/sim/cluster_sim_int.h"

enum { IDLE_ROUNDS = 1000000, ACTIONS_A_TASK = 3 };

// Times of a run that a policy lets idle stay below: far from overflow.
static const TimeNs time_limit = INT64_MAX / 8 * 7;

static TimeNs earlier(TimeNs a, TimeNs b) { return a < b ? a : b; }

static TimeNs next_time(const ClusterSim *w) {
    TimeNs t = earlier(heap_first_key(&w->ends), w->wake);
    t = earlier(t, heap_first_key(&w->measures));
    if (w->next_arrival < w->run->jobs->n) t = earlier(t, w->run->jobs->at[w->next_arrival].submit);
    return earlier(t, w->round);
}

static bool at_round(const ClusterSim *w) {
    const ClusterSetup *s = w->setup;
    return s->round > 0 && w->now >= s->round_first && (w->now - s->round_first) % s->round == 0;
}

static uint32_t apply_events(ClusterSim *w) {
    uint32_t reason = w->now >= w->wake ? CLUSTER_TIMER : 0;
    if (reason != 0) w->wake = INT64_MAX;
    if (w->setup->in_rounds && at_round(w)) cluster_sim_round(w);
    for (; heap_first_key(&w->ends) <= w->now; reason |= CLUSTER_JOB_ENDED)
        cluster_sim_end(w, w->ends.items[0].id);
    for (; w->next_arrival < w->run->jobs->n; reason |= CLUSTER_JOB_ARRIVED) {
        if (w->run->jobs->at[w->next_arrival].submit > w->now) break;
        cluster_sim_arrive(w);
    }
    if (w->run->params.anew) cluster_sim_interrupt(w);
    if (w->now >= w->round) reason |= CLUSTER_ROUND;
    if (cluster_sim_measure(w)) reason |= CLUSTER_BELIEF;
    return reason;
}

static void apply_action(ClusterSim *w, const ClusterAction *x) {
    CHECK(x->verb == CLUSTER_WAKE || x->task < w->n_fresh);
    switch (x->verb) {
    case CLUSTER_START: cluster_sim_start(w, x->task, x->slices, x->n_slices); break;
    case CLUSTER_PREEMPT: cluster_sim_preempt(w, x->task); break;
    case CLUSTER_RESIZE: cluster_sim_resize(w, x->task, x->slices, x->n_slices); break;
    case CLUSTER_WAKE:
        if (x->at > w->now && w->setup->round == 0) w->wake = earlier(w->wake, x->at);
        break;
    }
}

static ClusterView view_of(const ClusterSim *w, uint32_t reason) {
    return (ClusterView){.now = w->now,
                         .setup = w->setup,
                         .tasks = w->tasks,
                         .waiting = w->waiting.at + w->waiting.first,
                         .running = w->running.at + w->running.first,
                         .servers = w->servers,
                         .n_waiting = w->waiting.n,
                         .n_running = w->running.n,
                         .reason = reason,
                         .alive_ns = w->result->alive_ns,
                         .busy_ns = w->result->busy_ns};
}

static bool some_owed(const ClusterSim *w) {
    for (uint32_t i = 0; i < w->waiting.n; i++)
        if (tenant_quota_guaranteed(&w->tenants,
                                    &w->tasks[w->waiting.at[w->waiting.first + i]].job))
            return true;
    return false;
}

// Running tasks that a tenant below its guarantee may claim, whatever the limit of stops.
static void find_lent(ClusterSim *w) {
    if (!w->setup->quotas) return;
    bool owed = some_owed(w);
    for (uint32_t i = 0; i < w->running.n; i++) {
        ClusterTask *t = &w->tasks[w->running.at[w->running.first + i]];
        t->lent = owed && tenant_quota_lent(&w->tenants, &t->job) > 0;
    }
}

void cluster_sim_decide(ClusterSim *w, uint32_t reason) {
    const ClusterRun *r = w->run;
    cluster_sim_estimate_running(w);
    find_lent(w);
    ClusterView v = view_of(w, reason);
    if (r->watch != NULL) r->watch(r->watcher, &v, w->state);
    TimeNs   from = r->clock != NULL ? clock_now(*r->clock) : 0;
    uint32_t n = r->policy->decide(w->state, &v, w->actions, w->max_actions);
    if (r->clock != NULL) w->result->decide_ns += (double)(clock_now(*r->clock) - from);
    CHECK(n <= w->max_actions);
    w->result->decisions++;
    w->wake = INT64_MAX;
    for (uint32_t i = 0; i < n; i++) apply_action(w, &w->actions[i]);
    CHECK(w->n_must_start == 0);
    if (r->after == NULL) return;
    v = view_of(w, reason);
    r->after(r->watcher, &v, w->actions, n);
}

// Utilization until the next event.
static void note_use(ClusterSim *w) {
    const ClusterSetup *s = w->setup;
    w->usage.now = (ClusterUse){
        .gpus = s->gpus > 0 ? (double)w->used_gpu_milli / ((double)s->gpus * CLUSTER_WHOLE_GPU) : 0,
        .cores = s->cores_milli > 0 ? (double)w->used_cores / (double)s->cores_milli : 0,
        .memory = s->memory_mib > 0 ? (double)w->used_memory / (double)s->memory_mib : 0,
        .waiting = w->waiting.n};
}

static Err stuck(const ClusterSim *w) {
    if (w->run->jobs->at == NULL) return err_set(ERR_ARG, "%s: stuck", w->run->policy->name);
    if (w->waiting.n == 0)
        return err_set(ERR_ARG, "job %s: %s gives it too little to make progress",
                       w->run->jobs->at[w->states[w->running.at[w->running.first]].job].id,
                       w->run->policy->name);
    const Job *j = &w->run->jobs->at[w->states[w->waiting.at[w->waiting.first]].job];
    return err_set(ERR_ARG,
                   "job %s: %s never starts it on %u GPUs, even when nothing else runs; "
                   "give larger or other servers, %s",
                   j->id, w->run->policy->name, j->gpus,
                   j->gpu_types != 0 ? "or ignore the GPU types that jobs ask for (--any-type)"
                                     : "or leave the job out");
}

static void next_round(ClusterSim *w) {
    TimeNs round = w->setup->round;
    if (round == 0) return;
    TimeNs first = w->setup->round_first;
    TimeNs after = w->now < first ? first : first + ((w->now - first) / round + 1) * round;
    w->round = w->n_alive > 0 ? after : INT64_MAX;
}

static void advance_to(ClusterSim *w, TimeNs to) {
    uint64_t ns = (uint64_t)(to - w->now);
    usage_go(&w->usage, to);
    w->result->alive_ns += ns * w->n_alive;
    if (w->n_alive > 0) w->result->busy_ns += ns;
    w->now = to;
}

static bool spent(const ClusterSim *w) {
    return w->most_decisions > 0 && w->result->decisions >= w->most_decisions;
}

Err cluster_sim_events(ClusterSim *w) {
    while ((w->next_arrival < w->run->jobs->n || w->n_alive > 0) && !spent(w)) {
        TimeNs at = next_time(w);
        bool   idle = w->running.n == 0 && w->next_arrival == w->run->jobs->n;
        w->idle_rounds = idle ? w->idle_rounds + 1 : 0;
        if (at > time_limit || w->idle_rounds > IDLE_ROUNDS) return stuck(w);
        advance_to(w, at);
        w->result->events++;
        uint32_t reason = apply_events(w);
        bool     called = reason != 0 && (w->setup->round == 0 || at_round(w));
        if (w->n_alive > 0 && called) cluster_sim_decide(w, reason);
        if (w->now >= w->round || w->round == INT64_MAX) next_round(w);
        cluster_sim_rates(w);
        note_use(w);
    }
    return ERR_OK;
}

static Err prepare_tasks(ClusterSim *w) {
    uint32_t n = w->setup->n_slots;
    w->max_actions = ACTIONS_A_TASK * n + 2;
    w->tasks = arena_try_new(w->arena, ClusterTask, n);
    w->ones = arena_try_new(w->arena, ClusterSlice, n);
    w->states = arena_try_new(w->hidden, TaskState, n);
    w->free = arena_try_new(w->arena, uint32_t, n);
    w->changed = arena_try_new(w->arena, uint32_t, n);
    w->waiting = (SlotQueue){.at = arena_try_new(w->arena, uint32_t, 2 * (size_t)n), .room = 2 * n};
    w->running = (SlotQueue){.at = arena_try_new(w->arena, uint32_t, 2 * (size_t)n), .room = 2 * n};
    w->actions = arena_try_new(w->arena, ClusterAction, w->max_actions);
    if (w->tasks == NULL || w->states == NULL || w->free == NULL || w->changed == NULL ||
        w->waiting.at == NULL || w->running.at == NULL || w->actions == NULL || w->ones == NULL)
        return err_set(ERR_LIMIT, "no memory to simulate %u jobs", n);
    TRY(heap_init_indexed(&w->measures, w->hidden, n));
    return heap_init_indexed(&w->ends, w->hidden, n);
}

static Err prepare_servers(ClusterSim *w) {
    const ClusterSetup *s = w->setup;
    uint16_t           *parts = arena_try_new(w->arena, uint16_t, s->gpus + 1);
    w->servers = arena_try_new(w->arena, ServerState, s->n_servers);
    w->allocs = arena_try_new(w->arena, ServerAlloc, s->n_servers);
    if (parts == NULL || w->servers == NULL || w->allocs == NULL)
        return err_set(ERR_LIMIT, "no memory to simulate %u servers", s->n_servers);
    for (uint64_t i = 0; i < s->gpus; i++) parts[i] = CLUSTER_WHOLE_GPU;
    for (uint32_t i = 0; i < s->n_servers; i++) {
        const ClusterServer *x = &s->servers[i];
        w->allocs[i].parts = parts;
        w->servers[i] = (ServerState){.gpus = x->gpus,
                                      .gpu_milli = x->gpus * CLUSTER_WHOLE_GPU,
                                      .cores_milli = x->cores_milli,
                                      .memory_mib = x->memory_mib,
                                      .parts = parts};
        parts += x->gpus;
    }
    return ERR_OK;
}

static Err prepare_tenants(ClusterSim *w) {
    Carve size = {0};
    tenant_quota_carve(&w->tenants, w->setup, &size);
    Carve c = {.base = arena_try(w->hidden, size.used + 1, 1, 64)};
    if (c.base == NULL) return err_set(ERR_LIMIT, "no memory for %u tenants", w->setup->n_tenants);
    tenant_quota_carve(&w->tenants, w->setup, &c);
    tenant_quota_clear(&w->tenants, w->setup);
    return ERR_OK;
}

Err cluster_sim_prepare(ClusterSim *w) {
    TRY(prepare_tasks(w));
    TRY(prepare_servers(w));
    return prepare_tenants(w);
}

Err cluster_sim_prepare_policy(ClusterSim *w) {
    const ClusterPolicy *p = w->run->policy;
    if (p->forecasts && !w->setup->in_rounds && !w->setup->anew) {
        ClusterForecast *f = arena_try_new(w->arena, ClusterForecast, 1);
        if (f == NULL) return err_set(ERR_LIMIT, "%s: no memory to forecast", p->name);
        *f = (ClusterForecast){w->arena, cluster_forecast};
        w->setup->forecast = f;
    }
    if (p->state_size != NULL) {
        size_t bytes = p->state_size(w->setup, w->run->settings);
        w->state = arena_try(w->arena, bytes, 1, 64);
        if (w->state == NULL)
            return err_set(ERR_LIMIT, "%s: no memory for %u jobs", p->name, w->setup->n_slots);
    }
    if (p->init != NULL) p->init(w->state, w->setup, w->run->settings, w->run->loaded);
    return ERR_OK;
}

static Err check_work(const Job *j) {
    if (j->work < 0 && j->iterations > 0)
        return err_set(
            ERR_ARG,
            "job %s: its work is in iterations; give their duration by --rates FILE, or leave "
            "such jobs out by --known",
            j->id);
    if (j->work < 0)
        return err_set(ERR_ARG, "job %s: its duration is not known; --known leaves such jobs out",
                       j->id);
    if (j->work == 0)
        return err_set(ERR_ARG, "job %s: its duration is 0; --min-s 1 leaves such jobs out", j->id);
    return ERR_OK;
}

static Err check_jobs(const ClusterRun *run, const ClusterSetup *s) {
    for (uint32_t i = 0; i < run->jobs->n; i++) {
        const Job *j = &run->jobs->at[i];
        CHECK(i == 0 || j->submit >= run->jobs->at[i - 1].submit);
        CHECK(j->gpu_milli <= CLUSTER_WHOLE_GPU && j->submit >= 0);
        TRY(check_work(j));
        if (j->gpus > s->gpus)
            return err_set(ERR_ARG, "job %s: %u GPUs of %llu; --max-gpus leaves such jobs out",
                           j->id, j->gpus, (unsigned long long)s->gpus);
        uint32_t limit = tenant_shares_limit(run->tenants, job_tenant(run->jobs, j));
        if (limit > 0 && j->gpus > limit)
            return err_set(ERR_ARG,
                           "job %s: %u GPUs, and its tenant may have %u; --max-gpus leaves such "
                           "jobs out",
                           j->id, j->gpus, limit);
        bool whole = run->params.clock == 0 ||
                     (j->submit % run->params.clock == 0 && j->work % run->params.clock == 0);
        if (!whole)
            return err_set(ERR_ARG, "job %s: its times are not whole multiples of %g s", j->id,
                           (double)run->params.clock / 1e9);
        if (run->params.in_rounds && (j->iterations < 1 || j->iteration < 1))
            return err_set(ERR_ARG,
                           "job %s: rounds need its iterations and the time of one; --rates FILE",
                           j->id);
        if (run->params.gpus_only && j->gpus == 0)
            return err_set(ERR_ARG, "job %s: without GPUs; --min-gpus 1 leaves such jobs out",
                           j->id);
    }
    return ERR_OK;
}

static Err simulate(ClusterSim *w) {
    ClusterResult *r = w->result;
    TRY(cluster_sim_prepare(w));
    TRY(cluster_sim_estimate_open(w));
    TRY(cluster_sim_prepare_policy(w));
    usage_open(&w->usage, r->first);
    TRY(cluster_sim_events(w));
    CHECK(w->used_gpu_milli == 0 && w->used_cores == 0 && w->used_memory == 0);
    CHECK(w->waiting.n == 0 && w->running.n == 0 && w->ends.n == 0);
    r->use = usage_close(&w->usage, r->timeline, &r->n_spans, &r->span);
    return cluster_sim_estimate_close(w);
}

static Err check_information(const ClusterRun *run) {
    bool exact = run->beliefs == NULL && information_is_perfect(&run->info);
    bool stops = run->params.stops.min_run > 0 || run->params.stops.max_stops > 0;
    CHECK(run->knows <= run->policy->knows);
    if (run->params.anew) CHECK(run->overheads != NULL && run->profiles == NULL);
    if ((run->params.in_rounds || run->params.anew) && stops)
        return err_set(ERR_ARG, "these rules (--like %s) take no --min-run and --max-stops",
                       run->params.anew ? "muri" : "synergy");
    if ((!run->params.in_rounds && !run->params.anew) || exact) return ERR_OK;
    return err_set(ERR_ARG, "these rules (--like %s) need --information perfect",
                   run->params.anew ? "muri" : "synergy");
}

static Err simulate_hidden(const ClusterRun *run, Arena *a, Arena *hidden, ClusterResult *r) {
    ClusterSim   *w = arena_try_new(hidden, ClusterSim, 1);
    ClusterSetup *setup = arena_try_new(a, ClusterSetup, 1);
    if (w == NULL || setup == NULL)
        return err_set(ERR_LIMIT, "no memory to simulate %u jobs", r->n);
    TRY(cluster_setup(run, a, setup));
    TRY(check_jobs(run, setup));
    *w = (ClusterSim){.run = run,
                      .arena = a,
                      .hidden = hidden,
                      .setup = setup,
                      .truth = *setup,
                      .result = r,
                      .wake = INT64_MAX,
                      .round = INT64_MAX};
    w->truth.profiles = run->profiles;
    setup->rng = rng_fork((Rng){run->seed}, 1);
    w->guesses = rng_fork((Rng){run->seed}, 2);
    w->noises = rng_fork((Rng){run->seed}, 3);
    return simulate(w);
}

Err cluster_simulate(const ClusterRun *run, Arena *a, ClusterResult *out) {
    ClusterResult r = {.n = run->jobs->n, .first = run->jobs->n > 0 ? run->jobs->at[0].submit : 0};
    Arena         own = {0}, *hidden = run->hidden;
    TRY(check_information(run));
    r.ends = arena_try_new(a, ClusterEnd, r.n);
    r.timeline = arena_try_new(a, ClusterUse, CLUSTER_SPANS);
    if (r.ends == NULL || r.timeline == NULL)
        return err_set(ERR_LIMIT, "no memory to simulate %u jobs", r.n);
    for (uint32_t i = 0; i < r.n; i++) r.ends[i] = (ClusterEnd){.start = -1, .finish = -1};
    if (hidden == NULL) TRY(arena_init_growing(hidden = &own, 1 << 20, arena_left(a)));
    size_t mark = a->used, hidden_mark = hidden->used;
    Err    error = simulate_hidden(run, a, hidden, &r);
    arena_rewind(a, mark);
    arena_rewind(hidden, hidden_mark);
    arena_finish(&own);
    TRY(error);
    *out = r;
    return ERR_OK;
}

static void add(ClusterUse *to, const ClusterUse *x, double times) {
    to->gpus += times * x->gpus;
    to->cores += times * x->cores;
    to->memory += times * x->memory;
    to->waiting += times * x->waiting;
}

void usage_open(Usage *c, TimeNs origin) {
    *c = (Usage){.origin = origin, .until = origin, .span = INT64_C(60) * CLUSTER_SECOND};
}

static void widen(Usage *c) {
    for (uint32_t i = 0; i < CLUSTER_SPANS / 2; i++) {
        ClusterUse x = c->sums[2 * i];
        add(&x, &c->sums[2 * i + 1], 1);
        c->sums[i] = x;
    }
    for (uint32_t i = CLUSTER_SPANS / 2; i < CLUSTER_SPANS; i++) c->sums[i] = (ClusterUse){0};
    c->span *= 2;
}

void usage_go(Usage *c, TimeNs to) {
    while (to - c->origin > c->span * CLUSTER_SPANS) widen(c);
    while (c->until < to) {
        uint32_t i = (uint32_t)((c->until - c->origin) / c->span);
        TimeNs   end = c->origin + (i + 1) * c->span;
        if (end > to) end = to;
        add(&c->sums[i], &c->now, (double)(end - c->until));
        c->until = end;
        c->n = i + 1;
    }
}

ClusterUse usage_close(Usage *c, ClusterUse *at, uint32_t *n, TimeNs *span) {
    ClusterUse all = {0}, mean = {0};
    double     ns = (double)(c->until - c->origin);
    for (uint32_t i = 0; i < c->n; i++) {
        TimeNs from = c->origin + i * c->span, to = from + c->span;
        double width = (double)((to < c->until ? to : c->until) - from);
        at[i] = (ClusterUse){0};
        if (width > 0) add(&at[i], &c->sums[i], 1 / width);
        add(&all, &c->sums[i], 1);
    }
    if (ns > 0) add(&mean, &all, 1 / ns);
    *n = c->n;
    *span = c->span;
    return mean;
}
