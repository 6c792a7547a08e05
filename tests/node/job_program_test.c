// Jobs in the live engine: slices of a coroutine as layers, between other tenants' blocks.
#include "node/job_program.h"
#include "tests/node/live_fixture.h"
#include "tests/runner.h"

enum { POINTS = 1000 };

static TestTenant tiny;

static int build(void **state) {
    (void)state;
    tenant_build(&tiny, NULL, 1);
    return 0;
}

static int finish(void **state) {
    (void)state;
    tenant_finish(&tiny);
    return 0;
}

typedef struct CountJob {  // counts to `most`; `stop` ends it
    EngineJob    job;
    uint32_t     n, most, work;
    _Atomic bool go;
} CountJob;

static void count(void *self) {
    CountJob *c = self;
    for (; c->n < c->most; c->n++) coroutine_point(c->work);
    while (!atomic_load(&c->go)) coroutine_point(c->work);
}

static void count_begin(CountJob *c, bool go) {
    *c = (CountJob){.most = POINTS, .work = 100000};
    atomic_store(&c->go, go);
    tenant_check(coroutine_create(&c->job.coroutine));
    coroutine_begin(c->job.coroutine, count, c);
}

typedef struct Bed {
    NodeLive    *live;
    NodeMachine  machine;
    FifoSettings rule;
    uint32_t     tenant, job_tenant;
} Bed;

static void bed_open(Bed *b, uint32_t layers) {
    NodeTenant      t = {.name = "jobs", .qos_ns = 10000000, .priority = 1};
    LiveTenant      other = live_tenant_of(&tiny);
    NodeLiveOptions o = {.fixed = true, .cores = 1};
    tenant_check(node_live_create(&b->live, &o));
    b->machine = test_machine(b->live);
    b->rule.layers = layers;
    tenant_check(node_live_join_jobs(b->live, &t, &b->job_tenant));
    tenant_check(node_live_join(b->live, &other, &b->tenant));
    tenant_check(node_live_set_policy(b->live, &fifo_policy, &b->rule, &b->machine));
}

static void submit(Bed *b, TestRequest *r, const Tensor *input, uint32_t first) {
    test_request_submit(b->live, r,
                        (EngineRequest){.tenant = b->job_tenant,
                                        .job = true,
                                        .first = first,
                                        .deadline = INT64_C(100000000000),
                                        .inputs = input});
}

static void ends_with_its_function(void **state) {
    (void)state;
    static const uint32_t firsts[] = {0, JOB_LAYERS / 2, JOB_LAYERS - 1};
    Bed                   b = {0};
    bed_open(&b, 1);
    for (uint32_t i = 0; i < 3; i++) {
        TestRequest r = {0};
        CountJob    c;
        count_begin(&c, true);
        Tensor input = job_input(&c.job);
        submit(&b, &r, &input, firsts[i]);
        assert_int_equal(test_request_wait(&r)->end, LIVE_DONE);
        assert_int_equal(r.answer.timing.cores_most, 1);
        assert_true(c.job.done);
        assert_int_equal(c.n, POINTS);
        coroutine_destroy(c.job.coroutine);
    }
    node_live_destroy(b.live);
}

// A job that never ends shares the only core with another tenant, slice by slice, and is
// submitted again after its last layer.
static void others_run_between_slices(void **state) {
    (void)state;
    Bed         b = {0};
    CountJob    c;
    TestRequest r = {0};
    bed_open(&b, 1);
    count_begin(&c, false);
    Tensor input = job_input(&c.job);
    submit(&b, &r, &input, 0);
    for (uint32_t i = 0; i < 5; i++) {
        TestRequest other = {.of = &tiny};
        test_request_submit(b.live, &other, (EngineRequest){.tenant = b.tenant});
        assert_int_equal(test_request_wait(&other)->end, LIVE_DONE);
        assert_true(other.right);
    }
    assert_int_equal(test_request_wait(&r)->end, LIVE_DONE);
    assert_false(c.job.done);
    atomic_store(&c.go, true);
    TestRequest again = {0};
    submit(&b, &again, &input, JOB_LAYERS - 2);
    assert_int_equal(test_request_wait(&again)->end, LIVE_DONE);
    assert_true(c.job.done);
    node_live_destroy(b.live);
    coroutine_destroy(c.job.coroutine);
}

static void is_cancelled_between_slices(void **state) {
    (void)state;
    Bed         b = {0};
    CountJob    c;
    TestRequest r = {0};
    bed_open(&b, 1);
    count_begin(&c, false);
    Tensor input = job_input(&c.job);
    submit(&b, &r, &input, 0);
    atomic_store(&r.cancelled, true);
    node_live_cancel(b.live);
    LiveEnd end = test_request_wait(&r)->end;
    assert_true(end == LIVE_CANCELLED || end == LIVE_DONE);
    assert_false(c.job.done);
    node_live_destroy(b.live);
    coroutine_destroy(c.job.coroutine);
}

static void first_layer_by_time(void **state) {
    (void)state;
    assert_int_equal(job_first_layer(0), JOB_LAYERS - 1);
    assert_int_equal(job_first_layer(JOB_SLICE_NS + 1), JOB_LAYERS - 2);
    assert_int_equal(job_first_layer(INT64_MAX), 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_with_its_function),
        cmocka_unit_test(others_run_between_slices),
        cmocka_unit_test(is_cancelled_between_slices),
        cmocka_unit_test(first_layer_by_time),
    };
    return cmocka_run_group_tests(tests, build, finish);
}
