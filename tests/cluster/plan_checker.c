#include "tests/cluster/plan_checker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static PlanChecker *plan_checker_of(const void *settings) {
    return *(PlanChecker *const *)settings;
}

static size_t state_size(const ClusterSetup *s, const void *settings) {
    const PlanChecker *a = plan_checker_of(settings);
    return 64 + (a->inner->state_size != NULL ? a->inner->state_size(s, a->settings) : 0);
}

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    PlanChecker *a = plan_checker_of(settings);
    (void)loaded;
    *(PlanChecker **)state = a;
    for (uint32_t i = 0; i < s->n_servers; i++) {
        a->servers[i] = (CheckedServer){.cores_milli = s->servers[i].cores_milli,
                                        .memory_mib = s->servers[i].memory_mib};
        for (uint32_t g = 0; g < s->servers[i].gpus; g++) a->servers[i].part[g] = CLUSTER_WHOLE_GPU;
    }
    if (a->inner->init != NULL) a->inner->init((char *)state + 64, s, a->settings, a->loaded);
}

// Takes (sign 1) or releases (-1) a slice.
static void hold(PlanChecker *a, const ClusterSlice *s, int sign) {
    CheckedServer *x = &a->servers[s->server];
    x->cores_milli -= sign * (int64_t)s->cores_milli;
    x->memory_mib -= sign * (int64_t)s->memory_mib;
    assert_true(x->cores_milli >= 0 && x->memory_mib >= 0);
    for (uint32_t g = 0; g < CLUSTER_GPUS; g++) {
        if ((s->mask >> g & 1) == 0) continue;
        x->part[g] -= sign * (int64_t)s->gpu_milli;
        assert_true(x->part[g] >= 0 && x->part[g] <= CLUSTER_WHOLE_GPU);
        if (sign > 0) a->shared += x->n[g] > 0;
        x->n[g] += sign > 0 ? 1 : UINT32_MAX;
    }
}

static void leave(PlanChecker *a, uint32_t job) {
    uint32_t i = 0;
    for (uint32_t k = 0; k < a->held[job].n; k++) hold(a, &a->held[job].slices[k], -1);
    a->held[job].n = 0;
    while (a->running[i] != job) i++;
    a->running[i] = a->running[--a->n_running];
}

// The lowest GPUs with enough free.
static uint64_t lowest(const PlanChecker *a, const ClusterSlice *s) {
    uint64_t mask = 0;
    for (uint32_t g = 0, n = 0; g < CLUSTER_GPUS && n < s->gpus; g++)
        if (a->servers[s->server].part[g] >= s->gpu_milli && a->servers[s->server].part[g] > 0) {
            mask |= UINT64_C(1) << g;
            n++;
        }
    return mask;
}

static void start(PlanChecker *a, const Job *j, uint32_t job, const ClusterAction *x) {
    uint32_t gpus = 0;
    assert_true(a->held[job].n == 0 && x->n_slices > 0 && x->n_slices <= PLAN_CHECKER_SLICES);
    for (uint32_t i = 0; i < x->n_slices; i++) {
        ClusterSlice s = x->slices[i];
        if (s.gpu_milli == 0) s.gpu_milli = j->gpu_milli;
        if (s.mask == 0) s.mask = lowest(a, &s);
        assert_true(j->servers == NULL || (j->servers[s.server / 64] >> s.server % 64 & 1) != 0);
        assert_true(s.gpu_milli <= j->gpu_milli);
        assert_int_equal(__builtin_popcountll(s.mask), s.gpus);
        hold(a, &s, 1);
        gpus += s.gpus;
        a->held[job].slices[i] = s;
    }
    a->held[job].n = x->n_slices;
    a->running[a->n_running++] = job;
    assert_true(gpus == j->gpus || (gpus >= j->gpus_min && gpus <= j->gpus_max));
}

static void level(PlanChecker *a, const Job *j, uint32_t job, const ClusterAction *x) {
    CheckedJob *b = &a->held[job];
    assert_int_equal(b->n, x->n_slices);
    for (uint32_t i = 0; i < b->n; i++) {
        ClusterSlice s = x->slices[i];
        assert_int_equal(s.server, b->slices[i].server);
        s.mask = b->slices[i].mask;
        s.gpus = b->slices[i].gpus;
        if (s.gpu_milli == 0) s.gpu_milli = b->slices[i].gpu_milli;
        assert_true(s.gpu_milli <= j->gpu_milli);
        hold(a, &b->slices[i], -1);
        hold(a, &s, 1);
        b->slices[i] = s;
    }
}

static void apply(PlanChecker *a, const ClusterView *v, const ClusterAction *x) {
    if (x->verb == CLUSTER_WAKE) return;
    uint32_t   job = (uint32_t)v->tasks[x->task].job.id;
    const Job *j = &a->jobs->at[job];
    if (x->verb == CLUSTER_START) start(a, j, job, x);
    if (x->verb == CLUSTER_RESIZE) level(a, j, job, x);
    if (x->verb == CLUSTER_PREEMPT) {
        assert_true(a->held[job].n > 0);
        leave(a, job);
    }
    a->steps++;
    a->levels += x->verb == CLUSTER_RESIZE;
    a->stops += x->verb == CLUSTER_PREEMPT;
    if (a->n == a->room) return;
    CheckedStep *s = &a->log[a->n++];
    *s = (CheckedStep){.at = v->now, .verb = x->verb, .job = job, .n_slices = a->held[job].n};
    memcpy(s->slices, a->held[job].slices, s->n_slices * sizeof *s->slices);
}

// A job in the accounts that does not run any more has ended.
static void look(PlanChecker *a, const ClusterView *v) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n_running; i++) {
        const ClusterTask *t = &v->tasks[v->running[i]];
        const CheckedJob  *b = &a->held[t->job.id];
        assert_true(t->state == CLUSTER_RUNNING && b->n == t->n_slices);
        for (uint32_t k = 0; k < b->n; k++) {
            const ClusterSlice *x = &b->slices[k], *y = &t->slices[k];
            assert_true(x->mask == y->mask && x->server == y->server && x->gpus == y->gpus);
            assert_true(x->gpu_milli == y->gpu_milli && x->cores_milli == y->cores_milli &&
                        x->memory_mib == y->memory_mib);
        }
    }
    for (uint32_t i = a->n_running; i-- > 0;) {
        bool there = false;
        for (uint32_t k = 0; k < v->n_running && !there; k++)
            there = v->tasks[v->running[k]].job.id == a->running[i];
        if (!there) leave(a, a->running[i]);
        n += there;
    }
    assert_int_equal(n, v->n_running);
}

static void compare(const PlanChecker *a, const ClusterView *v) {
    for (uint32_t i = 0; i < v->setup->n_servers; i++) {
        const CheckedServer *x = &a->servers[i];
        const ServerState   *y = &v->servers[i];
        uint32_t             whole = 0, milli = 0;
        for (uint32_t g = 0; g < v->setup->servers[i].gpus; g++) {
            assert_int_equal(x->part[g], y->parts[g]);
            whole += x->part[g] == CLUSTER_WHOLE_GPU;
            milli += (uint32_t)x->part[g];
        }
        assert_true(whole == y->gpus && milli == y->gpu_milli);
        assert_true(x->cores_milli == y->cores_milli && x->memory_mib == y->memory_mib);
    }
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    PlanChecker *a = *(PlanChecker **)state;
    look(a, v);
    compare(a, v);
    uint32_t n = a->inner->decide((char *)state + 64, v, out, max);
    for (uint32_t i = 0; i < n; i++) apply(a, v, &out[i]);
    return n;
}

static const ClusterPolicy plan_checker_policy = {.name = "plan_checker",
                                                  .knows = CLUSTER_ORACLE,
                                                  .forecasts = true,  // like those it checks
                                                  .settings_size = sizeof(PlanChecker *),
                                                  .state_size = state_size,
                                                  .init = init,
                                                  .decide = decide};

void plan_checker_open(PlanChecker *a, ClusterRun *run, uint32_t room, Arena *arena) {
    PlanChecker **self = arena_new(arena, PlanChecker *, 1);
    *self = a;
    *a = (PlanChecker){.inner = run->policy,
                       .settings = run->settings,
                       .loaded = run->loaded,
                       .jobs = run->jobs,
                       .held = arena_new(arena, CheckedJob, run->jobs->n),
                       .servers = arena_new(arena, CheckedServer, run->servers->n),
                       .running = arena_new(arena, uint32_t, run->jobs->n),
                       .log = arena_new(arena, CheckedStep, room + 1),
                       .room = room};
    run->policy = &plan_checker_policy;
    run->settings = self;
    run->loaded = NULL;
}
