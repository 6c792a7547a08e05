// Demoted blocks: they pause while another block has the core, compute on idle cores and in a small
// share, end when they are stopped, and their threads are used again.
#include "node/live/live_int.h"
#include "tests/node/endless.h"
#include "tests/node/live_fixture.h"
#include "tests/runner.h"

enum { ROUNDS = 100000, PAUSE_US = 100 };

typedef struct Bed {
    NodeLive    *live;
    NodeMachine  machine;
    FifoSettings rule;
    TestTenant   endless;
    uint32_t     first, second;  // tenants, both with the endless loop
} Bed;

static void bed_open(Bed *b, uint32_t cores) {
    NodeLiveOptions o = {.cores = cores, .fixed = true, .watchdog_ns = INT64_C(3600000000000)};
    *b = (Bed){.rule = {.cores = 1}};
    endless_build(&b->endless);
    LiveTenant t = live_tenant_of(&b->endless);
    tenant_check(node_live_create(&b->live, &o));
    b->machine = test_machine(b->live);
    tenant_check(node_live_join(b->live, &t, &b->first));
    tenant_check(node_live_join(b->live, &t, &b->second));
    tenant_check(node_live_set_policy(b->live, &fifo_policy, &b->rule, &b->machine));
}

static void bed_close(Bed *b) {
    node_live_destroy(b->live);
    tenant_finish(&b->endless);
}

// The state of a tenant's only running request; false: none runs.
static bool peek(const Bed *b, uint32_t tenant, LiveRequest *out) {
    NodeLive *l = b->live;
    bool      found = false;
    sched_lock(l);
    for (uint32_t k = 0; k < l->queue.n_running && !found; k++) {
        uint32_t i = l->queue.running[k];
        found = l->queue.requests[i].tenant == tenant;
        if (found) *out = l->beside[i];
    }
    sched_unlock(l);
    return found;
}

typedef bool Wanted(const LiveRequest *x);

static bool pauses(const LiveRequest *x) { return x->demoted && !x->on_turn && x->heeded; }
static bool has_share(const LiveRequest *x) { return x->demoted && x->on_turn && x->shares; }
static bool has_core(const LiveRequest *x) { return x->demoted && x->on_turn && !x->shares; }
static bool is_lowered(const LiveRequest *x) { return x->demoted && x->lowered; }

static void wait_until(const Bed *b, uint32_t tenant, Wanted *wanted, const char *what) {
    LiveRequest x = {0};
    for (uint32_t i = 0; i < ROUNDS; i++) {
        if (peek(b, tenant, &x) && wanted(&x)) return;
        (void)usleep(PAUSE_US);
    }
    fail_msg("tenant %u: %s", tenant, what);
}

static bool is_in_loop(const Bed *b, const LiveRequest *x, uint32_t tenant) {
    return atomic_load(&b->live->blocks[x->slot].at) == b->live->models[tenant].n_layers;
}

// Until then its block could still yield between two layers.
static void wait_for_loop(const Bed *b, uint32_t tenant) {
    LiveRequest x = {0};
    for (uint32_t i = 0; i < ROUNDS; i++) {
        if (peek(b, tenant, &x) && !x.demoted && is_in_loop(b, &x, tenant)) return;
        (void)usleep(PAUSE_US);
    }
    fail_msg("tenant %u: does not reach its loop", tenant);
}

static void submit(const Bed *b, TestRequest *s, uint32_t tenant, TimeNs expire) {
    test_request_submit(b->live, s, (EngineRequest){.tenant = tenant, .expire = expire});
}

static void cancel(const Bed *b, TestRequest *s) {
    atomic_store(&s->cancelled, true);
    node_live_cancel(b->live);
    assert_int_equal(test_request_wait(s)->end, LIVE_CANCELLED);
}

// The first request has lost its core to the second, which keeps it.
static void demote_first(Bed *b, TestRequest s[2], TimeNs expire) {
    bed_open(b, 1);
    submit(b, &s[0], b->first, expire);
    wait_for_loop(b, b->first);
    submit(b, &s[1], b->second, 0);
    wait_for_loop(b, b->second);
}

static void demoted_blocks_pause_and_have_a_share(void **state) {
    (void)state;
    Bed         b;
    TestRequest s[2] = {0};
    demote_first(&b, s, 0);
    for (uint32_t i = 0; i < 3; i++) {
        wait_until(&b, b.first, pauses, "does not pause");
        wait_until(&b, b.first, has_share, "has no share");
    }
    assert_int_equal(atomic_load(&s[0].answers), 0);
    cancel(&b, &s[1]);
    wait_until(&b, b.first, has_core, "is not resumed on an idle core");
    cancel(&b, &s[0]);
    assert_int_equal(s[0].answer.timing.demotions, 1);
    assert_true(s[0].answer.timing.paused_ns > 0);
    bed_close(&b);
}

static void paused_blocks_are_stopped(void **state) {
    (void)state;
    Bed         b;
    TestRequest s[2] = {0}, next = {0};
    LiveRequest x = {0};
    demote_first(&b, s, 0);
    wait_until(&b, b.first, pauses, "does not pause");
    cancel(&b, &s[0]);
    assert_true(peek(&b, b.second, &x) && !x.demoted);
    assert_int_equal(atomic_load(&s[1].answers), 0);
    submit(&b, &next, b.first, 200000000);  // demotes the second, is demoted by none
    assert_int_equal(test_request_wait(&next)->end, LIVE_EXPIRED);
    cancel(&b, &s[1]);
    bed_close(&b);
}

static void paused_blocks_expire(void **state) {
    (void)state;
    Bed         b;
    TestRequest s[2] = {0};
    demote_first(&b, s, 300000000);
    assert_int_equal(test_request_wait(&s[0])->end, LIVE_EXPIRED);
    assert_int_equal(atomic_load(&s[1].answers), 0);
    cancel(&b, &s[1]);
    bed_close(&b);
}

static uint32_t spares_of(const Bed *b) { return workers_spares(b->live->workers); }

// Demoting again and again needs a fixed number of threads: two that compute, the spare ones that
// are kept ready, and the last one of a round that has not become a spare one yet.
static void threads_are_used_again(void **state) {
    (void)state;
    Bed b;
    bed_open(&b, 1);
    for (uint32_t i = 0; i < 16; i++) {
        TestRequest s[2] = {0};
        submit(&b, &s[0], b.first, 0);
        wait_for_loop(&b, b.first);
        submit(&b, &s[1], b.second, 0);
        wait_for_loop(&b, b.second);
        assert_true(spares_of(&b) <= 5);
        cancel(&b, &s[0]);
        cancel(&b, &s[1]);
        LiveRequest x = {0};
        while (peek(&b, b.first, &x) || peek(&b, b.second, &x)) (void)usleep(PAUSE_US);
        assert_true(spares_of(&b) > 0);
    }
    bed_close(&b);
}

// More demoted blocks than idle cores: they take turns.
static void demoted_blocks_take_turns(void **state) {
    (void)state;
    Bed         b;
    TestRequest s[2] = {0}, third = {0};
    demote_first(&b, s, 0);
    submit(&b, &third, b.first, 0);  // demotes the second
    LiveRequest x = {0};
    for (uint32_t i = 0; i < ROUNDS && !(peek(&b, b.second, &x) && x.demoted); i++)
        (void)usleep(PAUSE_US);
    cancel(&b, &third);
    for (uint32_t i = 0; i < 2; i++) {
        wait_until(&b, b.first, has_core, "has no turn");
        wait_until(&b, b.second, has_core, "has no turn");
    }
    cancel(&b, &s[0]);
    cancel(&b, &s[1]);
    bed_close(&b);
}

typedef struct Stubborn {
    EngineJob    job;
    Tensor       input;
    _Atomic bool begun, go;
} Stubborn;

static void compute_on(void *self) {
    Stubborn *s = self;
    atomic_store(&s->begun, true);
    while (!atomic_load(&s->go)) continue;
}

// Work without stop points keeps computing, at a lower priority.
static void work_that_does_not_pause_is_lowered(void **state) {
    (void)state;
    Bed         b;
    Stubborn    job = {0};
    NodeTenant  t = {.name = "jobs", .qos_ns = 20000000, .priority = 1};
    TestRequest s = {0}, other = {0};
    uint32_t    jobs = 0;
    bed_open(&b, 1);
    tenant_check(node_live_join_jobs(b.live, &t, &jobs));
    tenant_check(node_live_set_policy(b.live, &fifo_policy, &b.rule, &b.machine));
    tenant_check(coroutine_create(&job.job.coroutine));
    coroutine_begin(job.job.coroutine, compute_on, &job);
    job.input = job_input(&job.job);
    test_request_submit(
        b.live, &s,
        (EngineRequest){
            .tenant = jobs, .job = true, .inputs = &job.input, .first = JOB_LAYERS - 1});
    while (!atomic_load(&job.begun)) (void)usleep(PAUSE_US);
    submit(&b, &other, b.first, 0);
    wait_until(&b, jobs, is_lowered, "is not lowered");
    uint32_t spares = spares_of(&b);
    cancel(&b, &other);
    atomic_store(&job.go, true);
    assert_int_equal(test_request_wait(&s)->end, LIVE_DONE);
    LiveRequest x = {0};
    while (peek(&b, jobs, &x)) (void)usleep(PAUSE_US);
    assert_true(spares_of(&b) <= spares);
    coroutine_destroy(job.job.coroutine);
    bed_close(&b);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(demoted_blocks_pause_and_have_a_share),
        cmocka_unit_test(paused_blocks_are_stopped),
        cmocka_unit_test(paused_blocks_expire),
        cmocka_unit_test(threads_are_used_again),
        cmocka_unit_test(demoted_blocks_take_turns),
        cmocka_unit_test(work_that_does_not_pause_is_lowered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
