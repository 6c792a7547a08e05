// The engine of a cluster in virtual time. It goes from event to event: jobs end, jobs come, a
// policy wanted to be woken, a round begins. In one instant the ends are first, then the arrivals,
// then the decision. Between events every job goes on at a rate of its own.
#include "base/check.h"
#include "cluster/cluster_sim_int.h"

enum { IDLE_ROUNDS = 1000000, ACTIONS_A_TASK = 3 };

static TimeNs earlier(TimeNs a, TimeNs b) { return a < b ? a : b; }

static TimeNs next_time(const Engine *e) {
    TimeNs t = earlier(due_next(&e->ends), e->wake);
    if (e->next_arrival < e->run->jobs->n) t = earlier(t, e->run->jobs->at[e->next_arrival].submit);
    return earlier(t, e->round);
}

static uint32_t happen(Engine *e) {
    uint32_t reason = e->now >= e->wake ? CLUSTER_WOKEN : 0;
    if (reason != 0) e->wake = INT64_MAX;
    for (; due_next(&e->ends) <= e->now; reason |= CLUSTER_ENDED)
        engine_end(e, e->ends.items[0].slot);
    for (; e->next_arrival < e->run->jobs->n; reason |= CLUSTER_CAME) {
        if (e->run->jobs->at[e->next_arrival].submit > e->now) break;
        engine_arrive(e);
    }
    if (e->now >= e->round) reason |= CLUSTER_ROUND;
    return reason;
}

static void act(Engine *e, const ClusterAction *x) {
    CHECK(x->verb == CLUSTER_WAKE || x->task < e->n_fresh);
    switch (x->verb) {
    case CLUSTER_START: engine_start(e, x->task, x->slices, x->n_slices); break;
    case CLUSTER_PREEMPT: engine_preempt(e, x->task); break;
    case CLUSTER_LEVEL: engine_level(e, x->task, x->slices, x->n_slices); break;
    case CLUSTER_WAKE:
        if (x->at > e->now && e->setup.round == 0) e->wake = earlier(e->wake, x->at);
        break;
    }
}

static ClusterView view_of(const Engine *e, uint32_t reason) {
    return (ClusterView){.now = e->now,
                         .setup = &e->setup,
                         .tasks = e->tasks,
                         .waiting = e->waiting.at + e->waiting.first,
                         .running = e->running.at + e->running.first,
                         .servers = e->servers,
                         .n_waiting = e->waiting.n,
                         .n_running = e->running.n,
                         .reason = reason};
}

static void decide(Engine *e, uint32_t reason) {
    const ClusterRun *r = e->run;
    ClusterView       v = view_of(e, reason);
    if (r->watch != NULL) r->watch(r->watcher, &v, e->state);
    TimeNs   from = r->clock != NULL ? clock_now(*r->clock) : 0;
    uint32_t n = r->policy->decide(e->state, &v, e->actions, e->max_actions);
    if (r->clock != NULL) e->result->decide_ns += (double)(clock_now(*r->clock) - from);
    CHECK(n <= e->max_actions);
    e->result->decisions++;
    e->wake = INT64_MAX;
    for (uint32_t i = 0; i < n; i++) act(e, &e->actions[i]);
}

// What is in use goes on until the next event.
static void note_use(Engine *e) {
    const ClusterSetup *s = &e->setup;
    e->course.now = (ClusterUse){
        .gpus = s->gpus > 0 ? (double)e->used_gpu_milli / ((double)s->gpus * CLUSTER_WHOLE) : 0,
        .cores = s->cores_milli > 0 ? (double)e->used_cores / (double)s->cores_milli : 0,
        .memory = s->memory_mib > 0 ? (double)e->used_memory / (double)s->memory_mib : 0,
        .waiting = e->waiting.n};
}

static Err stuck(const Engine *e) {
    const Job *j = &e->run->jobs->at[e->lives[e->waiting.at[e->waiting.first]].job];
    return err_set(ERR_ARG,
                   "job %s: %s never finds a place for its %u GPUs, even when nothing else runs; "
                   "give larger or other servers, or leave it out",
                   j->id, e->run->policy->name, j->gpus);
}

static void next_round(Engine *e) {
    TimeNs round = e->setup.round;
    if (round == 0) return;
    TimeNs after = (e->now / round + 1) * round;
    e->round = e->n_alive > 0 ? after : INT64_MAX;
}

static Err go(Engine *e) {
    while (e->next_arrival < e->run->jobs->n || e->n_alive > 0) {
        TimeNs at = next_time(e);
        bool   idle = e->running.n == 0 && e->next_arrival == e->run->jobs->n;
        e->idle_rounds = idle ? e->idle_rounds + 1 : 0;
        if (at == INT64_MAX || e->idle_rounds > IDLE_ROUNDS) return stuck(e);
        course_go(&e->course, at);
        e->now = at;
        e->result->events++;
        uint32_t reason = happen(e);
        bool     in_round = e->setup.round > 0 && e->now % e->setup.round == 0;
        if (e->n_alive > 0 && (e->setup.round == 0 || in_round)) decide(e, reason);
        if (e->now >= e->round || e->round == INT64_MAX) next_round(e);
        engine_rates(e);
        note_use(e);
    }
    return ERR_OK;
}

static Err prepare_tasks(Engine *e) {
    uint32_t n = e->setup.n_slots;
    e->max_actions = ACTIONS_A_TASK * n + 2;
    e->tasks = arena_try_new(e->arena, ClusterTask, n);
    e->lives = arena_try_new(e->arena, Life, n);
    e->free = arena_try_new(e->arena, uint32_t, n);
    e->changed = arena_try_new(e->arena, uint32_t, n);
    e->waiting = (Lane){.at = arena_try_new(e->arena, uint32_t, 2 * (size_t)n), .room = 2 * n};
    e->running = (Lane){.at = arena_try_new(e->arena, uint32_t, 2 * (size_t)n), .room = 2 * n};
    e->actions = arena_try_new(e->arena, ClusterAction, e->max_actions);
    if (e->tasks == NULL || e->lives == NULL || e->free == NULL || e->changed == NULL ||
        e->waiting.at == NULL || e->running.at == NULL || e->actions == NULL)
        return err_set(ERR_LIMIT, "no memory to simulate %u jobs", n);
    return due_init(&e->ends, e->arena, n);
}

static Err prepare_servers(Engine *e) {
    const ClusterSetup *s = &e->setup;
    uint16_t           *parts = arena_try_new(e->arena, uint16_t, s->gpus + 1);
    e->servers = arena_try_new(e->arena, ServerState, s->n_servers);
    e->yards = arena_try_new(e->arena, Yard, s->n_servers);
    if (parts == NULL || e->servers == NULL || e->yards == NULL)
        return err_set(ERR_LIMIT, "no memory to simulate %u servers", s->n_servers);
    for (uint64_t i = 0; i < s->gpus; i++) parts[i] = CLUSTER_WHOLE;
    for (uint32_t i = 0; i < s->n_servers; i++) {
        const ClusterServer *x = &s->servers[i];
        e->yards[i].parts = parts;
        e->servers[i] = (ServerState){.gpus = x->gpus,
                                      .gpu_milli = x->gpus * CLUSTER_WHOLE,
                                      .cores_milli = x->cores_milli,
                                      .memory_mib = x->memory_mib,
                                      .parts = parts};
        parts += x->gpus;
    }
    return ERR_OK;
}

static Err prepare_policy(Engine *e) {
    const ClusterPolicy *p = e->run->policy;
    if (p->state_size != NULL) {
        size_t bytes = p->state_size(&e->setup, e->run->settings);
        e->state = arena_try(e->arena, bytes, 1, 64);
        if (e->state == NULL)
            return err_set(ERR_LIMIT, "%s: no memory for %u jobs", p->name, e->setup.n_slots);
    }
    if (p->init != NULL) p->init(e->state, &e->setup, e->run->settings, e->run->loaded);
    return ERR_OK;
}

static Err check_jobs(const ClusterRun *run, const ClusterSetup *s) {
    for (uint32_t i = 0; i < run->jobs->n; i++) {
        const Job *j = &run->jobs->at[i];
        CHECK(i == 0 || j->submit >= run->jobs->at[i - 1].submit);
        CHECK(j->gpu_milli <= CLUSTER_WHOLE && j->submit >= 0);
        if (j->work < 1)
            return err_set(ERR_ARG, "job %s: its duration is %s; --known leaves such jobs out",
                           j->id, j->work < 0 ? "not known" : "0");
        if (j->gpus > s->gpus)
            return err_set(ERR_ARG, "job %s: %u GPUs of %llu; --max-gpus leaves such jobs out",
                           j->id, j->gpus, (unsigned long long)s->gpus);
        bool whole = run->rules.clock == 0 ||
                     (j->submit % run->rules.clock == 0 && j->work % run->rules.clock == 0);
        if (!whole)
            return err_set(ERR_ARG, "job %s: its times are not whole multiples of %g s", j->id,
                           (double)run->rules.clock / 1e9);
        if (run->rules.gpus_only && j->gpus == 0)
            return err_set(ERR_ARG, "job %s: without GPUs; --min-gpus 1 leaves such jobs out",
                           j->id);
    }
    return ERR_OK;
}

static Err simulate(Engine *e) {
    ClusterResult *r = e->result;
    TRY(prepare_tasks(e));
    TRY(prepare_servers(e));
    TRY(prepare_policy(e));
    course_open(&e->course, r->first);
    TRY(go(e));
    CHECK(e->used_gpu_milli == 0 && e->used_cores == 0 && e->used_memory == 0);
    CHECK(e->waiting.n == 0 && e->running.n == 0 && e->ends.n == 0);
    r->use = course_close(&e->course, r->course, &r->n_spans, &r->span);
    return ERR_OK;
}

Err cluster_simulate(const ClusterRun *run, Arena *a, ClusterResult *out) {
    ClusterResult r = {.n = run->jobs->n, .first = run->jobs->n > 0 ? run->jobs->at[0].submit : 0};
    ClusterSetup  setup;
    CHECK(run->knows <= run->policy->knows);
    r.ends = arena_try_new(a, ClusterEnd, r.n);
    r.course = arena_try_new(a, ClusterUse, CLUSTER_SPANS);
    size_t  mark = a->used;
    Engine *e = arena_try_new(a, Engine, 1);
    if (r.ends == NULL || r.course == NULL || e == NULL)
        return err_set(ERR_LIMIT, "no memory to simulate %u jobs", r.n);
    TRY(cluster_setup(run, a, &setup));
    TRY(check_jobs(run, &setup));
    for (uint32_t i = 0; i < r.n; i++) r.ends[i] = (ClusterEnd){.start = -1, .finish = -1};
    *e = (Engine){.run = run,
                  .arena = a,
                  .setup = setup,
                  .result = &r,
                  .wake = INT64_MAX,
                  .round = INT64_MAX};
    e->setup.rng = rng_fork((Rng){run->seed}, 1);
    e->guesses = rng_fork((Rng){run->seed}, 2);
    Err error = simulate(e);
    arena_rewind(a, mark);
    TRY(error);
    *out = r;
    return ERR_OK;
}
