// The engine under a policy that does anything it may: nothing is given twice, gangs stay whole,
// and work is neither lost nor done twice.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "cluster/run.h"

enum { SERVERS = 6, JOBS = 3000, SLICES = 4096 };

static Arena arena;

typedef struct Wild {  // starts, stops, moves and levels at random
    Rng          rng;
    ClusterSlice slices[SLICES];
    uint32_t     n;
    ServerState  free[SERVERS];
    uint16_t     parts[SERVERS][8];
} Wild;

static uint64_t steps;

static size_t wild_size(const ClusterSetup *s, const void *settings) {
    (void)s;
    (void)settings;
    return sizeof(Wild);
}

static void wild_init(void *state, const ClusterSetup *s, const void *settings,
                      const void *loaded) {
    (void)settings;
    (void)loaded;
    ((Wild *)state)->rng = s->rng;
}

static uint32_t wild_gpus(Wild *w, uint32_t server, uint32_t milli, uint32_t want, uint64_t *mask) {
    uint32_t n = 0;
    for (uint32_t g = 0; g < 8 && n < want; g++) {
        if (w->parts[server][g] < milli || rng_below(&w->rng, 4) == 0) continue;
        w->parts[server][g] = (uint16_t)(w->parts[server][g] - milli);
        *mask |= UINT64_C(1) << g;
        n++;
    }
    return n;
}

static void give_back(Wild *w, const ClusterSlice *s) {
    for (uint32_t g = 0; g < 8; g++)
        if ((s->mask >> g & 1) != 0)
            w->parts[s->server][g] = (uint16_t)(w->parts[s->server][g] + s->gpu_milli);
    w->free[s->server].cores_milli += s->cores_milli;
    w->free[s->server].memory_mib += s->memory_mib;
}

static bool wild_place(Wild *w, const ClusterTask *t, ClusterAction *out) {
    uint32_t first = w->n, left = t->job.gpus;
    uint32_t turn = (uint32_t)rng_below(&w->rng, SERVERS);
    for (uint32_t k = 0; k < SERVERS && left > 0; k++) {
        uint32_t     server = (turn + k) % SERVERS;
        ClusterSlice s = {.server = server, .gpu_milli = t->job.gpu_milli};
        ServerState *f = &w->free[server];
        s.gpus = wild_gpus(w, server, s.gpu_milli, left, &s.mask);
        if (s.gpus == 0) continue;
        s.cores_milli = (uint32_t)rng_below(&w->rng, f->cores_milli / 2 + 1);
        s.memory_mib = (uint32_t)rng_below(&w->rng, f->memory_mib / 2 + 1);
        f->cores_milli -= s.cores_milli;
        f->memory_mib -= s.memory_mib;
        left -= s.gpus;
        w->slices[w->n++] = s;
    }
    if (left > 0)
        while (w->n > first) give_back(w, &w->slices[--w->n]);
    *out = (ClusterAction){
        .verb = CLUSTER_START, .slices = w->slices + first, .n_slices = w->n - first};
    return left == 0;
}

static bool wild_level(Wild *w, const ClusterTask *t, ClusterAction *out) {
    uint32_t first = w->n;
    for (uint32_t i = 0; i < t->n_slices; i++) {
        ClusterSlice s = t->slices[i];
        ServerState *f = &w->free[s.server];
        f->cores_milli += s.cores_milli;
        s.cores_milli = (uint32_t)rng_below(&w->rng, f->cores_milli + 1);
        f->cores_milli -= s.cores_milli;
        w->slices[w->n++] = s;
    }
    *out = (ClusterAction){
        .verb = CLUSTER_LEVEL, .slices = w->slices + first, .n_slices = w->n - first};
    return true;
}

static uint32_t wild_decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    Wild    *w = state;
    uint32_t n = 0;
    assert_true(max >= v->n_waiting + v->n_running);
    w->n = 0;
    for (uint32_t i = 0; i < SERVERS; i++) {
        w->free[i] = v->servers[i];
        memcpy(w->parts[i], v->servers[i].parts, sizeof w->parts[i]);
    }
    for (uint32_t i = 0; i < v->n_running; i++) {
        const ClusterTask *t = &v->tasks[v->running[i]];
        uint64_t           what = rng_below(&w->rng, 40);
        if (what > 5) continue;
        bool acts = what == 0 || wild_level(w, t, &out[n]);
        if (what == 0) {
            for (uint32_t k = 0; k < t->n_slices; k++) give_back(w, &t->slices[k]);
            out[n] = (ClusterAction){.verb = CLUSTER_PREEMPT};
        }
        out[n].task = v->running[i];
        n += acts;
    }
    for (uint32_t i = 0; i < v->n_waiting && n < 200; i++) {
        if (!wild_place(w, &v->tasks[v->waiting[i]], &out[n])) continue;
        out[n++].task = v->waiting[i];
    }
    steps += n;
    out[n++] = (ClusterAction){.verb = CLUSTER_WAKE, .at = v->now + 7 * CLUSTER_SECOND};
    return n;
}

static const ClusterPolicy wild = {.name = "wild",
                                   .knows = CLUSTER_ORACLE,
                                   .preempts = true,
                                   .state_size = wild_size,
                                   .init = wild_init,
                                   .decide = wild_decide};

static int begin(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 28) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static JobList jobs_of(uint64_t seed, uint32_t n) {
    JobList l = {.at = arena_new(&arena, Job, n), .n = n};
    Rng     r = {seed};
    TimeNs  now = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool part = rng_below(&r, 3) == 0;
        now += (TimeNs)rng_below(&r, 40 * (uint64_t)JOB_SECOND);
        l.at[i] = (Job){.id = "j",
                        .submit = now,
                        .work = 1 + (TimeNs)rng_below(&r, 300 * (uint64_t)JOB_SECOND),
                        .gpus = part ? 1 : 1 + (uint32_t)rng_below(&r, 12),
                        .gpu_milli = part ? 1 + (uint32_t)rng_below(&r, 999) : 1000,
                        .model = JOB_NONE,
                        .tenant = JOB_NONE};
    }
    return l;
}

static ClusterResult run(const JobList *l, uint64_t seed) {
    ServerList    servers;
    ClusterResult r;
    Server        like = {.gpus = 8, .gpu_type = ""};
    assert_int_equal(server_list_equal(SERVERS, &like, &arena, &servers), ERR_OK);
    ClusterRun x = {.jobs = l,
                    .servers = &servers,
                    .policy = &wild,
                    .knows = CLUSTER_ORACLE,
                    .seed = seed,
                    .rules = {.restart = 5 * CLUSTER_SECOND, .restart_wide = 9 * CLUSTER_SECOND}};
    assert_int_equal(cluster_simulate(&x, &arena, &r), ERR_OK);
    return r;
}

// The engine's own checks are what is tested: a plan that took too much would abort. At rate 1 a
// job runs its work and a restart for every stop, no more and no less.
static void test_wild_plans(void **state) {
    (void)state;
    JobList       l = jobs_of(1, JOBS);
    ClusterResult r = run(&l, 1);
    uint64_t      stopped = 0;
    for (uint32_t i = 0; i < r.n; i++) {
        const ClusterEnd *e = &r.ends[i];
        TimeNs            restart = (l.at[i].gpus > 8 ? 9 : 5) * CLUSTER_SECOND * e->preemptions;
        assert_int_equal(e->finish - l.at[i].submit, e->waited + l.at[i].work + restart);
        stopped += e->preemptions;
    }
    assert_true(stopped > 0 && stopped == r.preemptions);
    assert_true(r.levels > 0 && steps > JOBS);
    assert_true(r.use.gpus > 0 && r.use.gpus <= 1);
}

static void test_same_seed_same_run(void **state) {
    (void)state;
    JobList       l = jobs_of(2, 300);
    ClusterResult a = run(&l, 5), b = run(&l, 5), c = run(&l, 6);
    assert_memory_equal(a.ends, b.ends, a.n * sizeof *a.ends);
    assert_memory_not_equal(a.ends, c.ends, a.n * sizeof *a.ends);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wild_plans),
        cmocka_unit_test(test_same_seed_same_run),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
