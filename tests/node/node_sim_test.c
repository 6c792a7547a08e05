#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/node/sim_fixture.h"
#include "tests/runner.h"

static NodeResult simulate(SimFixture *s, const NodeRun *run) {
    NodeResult r;
    assert_int_equal(node_sim(run, &s->spec, &s->arena, &r), ERR_OK);
    return r;
}

// All requests come at once, on a machine without jitter.
static NodeRun together(SimFixture *s, const PlainSettings *p, uint32_t n) {
    NodeRun run = sim_fixture_run(s, p, 100, n, 1);
    s->spec.jitter = 0;
    for (uint32_t i = 0; i < n; i++) run.arrivals.at[i].at = 1000;
    return run;
}

static double took(const NodeResult *r, uint32_t i) {
    return (double)(r->answers[i].finish - r->answers[i].arrival);
}

static double table_ns(const SimFixture *s, uint32_t tenant, uint32_t cores) {
    const NodeModel *m = &s->models[tenant];
    return (double)node_rest(m, m->rest_best, 0, node_count_index(m, cores), 0);
}

static void test_alone_as_in_the_table(void **state) {
    (void)state;
    SimFixture s;
    sim_fixture_open(&s, "server64");
    sim_fixture_add(&s, "resnet50", 15, 1);
    sim_fixture_add(&s, "bert_large", 130, 1);
    for (uint32_t t = 0; t < 2; t++)
        for (int cores = 1; cores <= 16; cores *= 4) {
            PlainSettings p = {.cores = cores};
            NodeRun       run = together(&s, &p, 1);
            run.arrivals.at[0].tenant = t;
            NodeResult r = simulate(&s, &run);
            double     want = table_ns(&s, t, (uint32_t)cores);
            double     slack = machine_dispatch_ns(&s.spec, (uint32_t)cores) + s.models[t].n_layers;
            assert_true(took(&r, 0) >= want * 0.9999 && took(&r, 0) <= want * 1.0001 + slack);
            assert_int_equal(r.blocks, 1);
        }
    sim_fixture_close(&s);
}

// Separate cache slices, shared memory: slower together, never faster than alone.
static void test_neighbours_slow_each_other(void **state) {
    (void)state;
    SimFixture s;
    sim_fixture_open(&s, "server64");
    sim_fixture_add(&s, "resnet50", 15, 1);
    PlainSettings p = {.cores = 8};
    NodeRun       run = together(&s, &p, 1);
    NodeResult    one = simulate(&s, &run);
    run = together(&s, &p, 7);
    NodeResult all = simulate(&s, &run);
    for (uint32_t i = 0; i < 7; i++) assert_true(took(&all, i) > 1.05 * took(&one, 0));
    print_message("resnet50 on 8 cores: alone %.2f ms, with six others %.2f\n", took(&one, 0) / 1e6,
                  took(&all, 0) / 1e6);
    p.cores = 6;  // every second slice is shared by two blocks
    run = together(&s, &p, 1);
    one = simulate(&s, &run);
    run = together(&s, &p, 10);
    all = simulate(&s, &run);
    print_message("on 6 cores: alone %.2f ms, with nine others %.2f\n", took(&one, 0) / 1e6,
                  took(&all, 0) / 1e6);
    assert_true(took(&all, 0) > 1.05 * took(&one, 0));
    sim_fixture_close(&s);
}

static void mixed(SimFixture *s) {
    sim_fixture_open(s, "server64");
    sim_fixture_add(s, "mobilenet_v2", 10, 4);
    sim_fixture_add(s, "resnet50", 15, 2);
    sim_fixture_add(s, "googlenet", 15, 2);
}

static void assert_same_records(const RecordList *a, const RecordList *b) {
    assert_int_equal(a->n, b->n);
    for (uint32_t i = 0; i < a->n; i++) {
        char  *x = NULL, *y = NULL;
        size_t nx = 0, ny = 0;
        FILE  *f = open_memstream(&x, &nx), *g = open_memstream(&y, &ny);
        assert_int_equal(record_write(f, &a->at[i]), ERR_OK);
        assert_int_equal(record_write(g, &b->at[i]), ERR_OK);
        (void)fclose(f);
        (void)fclose(g);
        assert_string_equal(x, y);
        free(x);
        free(y);
    }
}

static void test_same_seed_same_records(void **state) {
    (void)state;
    SimFixture    s;
    PlainSettings p = {.cores = 6, .layers = 7, .grow = 4};
    mixed(&s);
    NodeRun run = sim_fixture_run(&s, &p, 600, 300, 9);
    (void)simulate(&s, &run);
    RecordList first = s.records;
    s.records = (RecordList){.arena = &s.arena};
    run = sim_fixture_run(&s, &p, 600, 300, 9);
    (void)simulate(&s, &run);
    assert_same_records(&first, &s.records);
    s.records = (RecordList){.arena = &s.arena};
    run.seed = 10;  // the same arrivals with other noise of the machine
    run.records = record_list(&s.records);
    (void)simulate(&s, &run);
    bool differ = first.n != s.records.n;
    for (uint32_t i = 0; i < first.n && !differ; i++) differ = first.at[i].at != s.records.at[i].at;
    assert_true(differ);
    sim_fixture_close(&s);
}

// Checks the records: each core runs one block at a time, each request arrives and ends once.
static void check_records(const SimFixture *s, const NodeRun *run, const NodeResult *r) {
    Cores    busy = {0};
    uint32_t arrived = 0, outcomes[OUTCOMES] = {0};
    TimeNs   now = 0;
    for (uint32_t i = 0; i < s->records.n; i++) {
        const Record *x = &s->records.at[i];
        assert_true(x->at >= now);
        now = x->at;
        arrived += x->kind == RECORD_ARRIVE;
        if (x->kind == RECORD_START || x->kind == RECORD_GROW) {
            Cores both = cores_intersection(x->cores, &busy);
            assert_int_equal(cores_count(&both), 0);
            busy = cores_union(busy, &x->cores);
        }
        if (x->kind == RECORD_END) {
            assert_true(cores_is_subset(&x->cores, &busy));
            busy = cores_difference(busy, &x->cores);
        }
        if (x->kind == RECORD_FINISH || x->kind == RECORD_REJECT) {
            outcomes[x->outcome]++;
            assert_int_equal(x->why == NULL, x->outcome == OUTCOME_MET);
        }
    }
    assert_int_equal(arrived, run->arrivals.n);
    assert_int_equal(cores_count(&busy), 0);
    NodeSummary m;
    Arena       a;
    assert_int_equal(arena_init(&a, 1 << 24), ERR_OK);
    assert_int_equal(node_summary(run, r, NODE_ALL, &a, &m), ERR_OK);
    arena_finish(&a);
    assert_int_equal(m.n, m.met + m.late + m.rejected);
    assert_int_equal(m.met, outcomes[OUTCOME_MET]);
    assert_int_equal(m.late, outcomes[OUTCOME_LATE]);
    assert_int_equal(m.rejected, outcomes[OUTCOME_REJECTED]);
}

static void test_nothing_is_lost(void **state) {
    (void)state;
    static const double rates[] = {100, 700, 3000};
    for (uint32_t i = 0; i < 12; i++) {
        SimFixture    s;
        PlainSettings p = {.cores = i % 2 ? 5 : 8,
                           .layers = i % 3 ? 0 : 6,
                           .grow = i % 4 == 3 ? 3 : 0,
                           .reject = i % 2 == 1};
        mixed(&s);
        NodeRun    run = sim_fixture_run(&s, &p, rates[i / 4], 400, i);
        NodeResult r = simulate(&s, &run);
        check_records(&s, &run, &r);
        assert_false(r.gave_up);
        sim_fixture_close(&s);
    }
}

static void test_growth(void **state) {
    (void)state;
    SimFixture s;
    sim_fixture_open(&s, "server64");
    sim_fixture_add(&s, "resnet50", 15, 1);
    PlainSettings p = {.cores = 8};
    NodeRun       run = together(&s, &p, 2);
    run.arrivals.at[1].at = 2000000;  // its arrival is the first one's chance to grow
    NodeResult plain = simulate(&s, &run);
    p.grow = 8;
    run = together(&s, &p, 2);
    run.arrivals.at[1].at = 2000000;
    NodeResult grown = simulate(&s, &run);
    assert_int_equal(plain.grown, 0);
    assert_true(grown.grown >= 1);
    assert_true(took(&grown, 0) < 0.85 * took(&plain, 0));
    assert_true(took(&grown, 0) > table_ns(&s, 0, 16));
    sim_fixture_close(&s);
}

static void test_gives_up_when_hopeless(void **state) {
    (void)state;
    SimFixture    s;
    PlainSettings p = {.cores = 8};
    sim_fixture_open(&s, "server64");
    sim_fixture_add(&s, "resnet50", 15, 1);
    NodeRun run = sim_fixture_run(&s, &p, 2000, 4000, 3);
    run.give_up = 0.2;
    NodeResult r = simulate(&s, &run);
    assert_true(r.gave_up);
    assert_int_equal(r.n, 4000);
    assert_true(r.blocks < 3000);
    run = sim_fixture_run(&s, &p, 100, 1000, 3);
    run.give_up = 0.2;
    r = simulate(&s, &run);
    assert_false(r.gave_up);
    sim_fixture_close(&s);
}

static uint32_t decide_badly(void *state, const NodeView *v, NodeAction *out, uint32_t max) {
    (void)max;
    PlainSettings p = {.cores = 8};
    memcpy(&p, state, sizeof p);
    uint32_t n = plain_decide(&p, v, out, max);
    if (n > 0) out[0].cores = cores_all(70);  // more than there are
    return n;
}

static void test_illegal_plan_ends_the_run(void **state) {
    (void)state;
    SimFixture    s;
    PlainSettings p = {.cores = 8};
    NodePolicy    bad = plain_policy;
    sim_fixture_open(&s, "server64");
    sim_fixture_add(&s, "mobilenet_v2", 10, 1);
    bad.decide = decide_badly;
    NodeRun run = sim_fixture_run(&s, &p, 100, 5, 1);
    run.policy = &bad;
    pid_t child = fork();
    if (child == 0) {
        if (freopen("/dev/null", "w", stderr) == NULL) _exit(1);
        NodeResult r;
        (void)!node_sim(&run, &s.spec, &s.arena, &r);
        _exit(0);
    }
    int status = 0;
    assert_true(waitpid(child, &status, 0) == child);
    assert_true(WIFSIGNALED(status));
    sim_fixture_close(&s);
}

// Requests answered in time, per second.
static double goodput(SimFixture *s, double rate, bool admit) {
    PlainSettings p = {.cores = 8};
    NodeResult    r;
    NodeSummary   sum;
    NodeRun       run = sim_fixture_run(s, &p, rate, (uint32_t)(1.2 * rate), 1);
    run.records = (RecordSink){0};
    run.skip = run.arrivals.n / 2;
    run.admit = admit;
    assert_int_equal(node_sim(&run, &s->spec, &s->arena, &r), ERR_OK);
    assert_int_equal(node_summary(&run, &r, NODE_ALL, &s->arena, &sum), ERR_OK);
    return sum.hit_rate * rate;
}

// FIFO collapses under overload, unless admission limits the load.
static void test_admission_keeps_overload_off(void **state) {
    (void)state;
    SimFixture s;
    double     peak = 0, most = 1600;
    sim_fixture_open(&s, "server64");
    sim_fixture_add(&s, "mobilenet_v2", 10, 1);
    sim_fixture_add(&s, "tiny_yolo_v2", 20, 1);
    for (uint32_t i = 3; i <= 5; i++) peak = fmax(peak, goodput(&s, most * i / 6, false));

    for (double x = 0.5; x < 20; x *= 1.5) assert_true(goodput(&s, 3 * most, false) < 0.2 * peak);
    assert_true(goodput(&s, 3 * most, true) > 0.9 * peak);
    assert_true(goodput(&s, 6 * most, true) > 0.9 * peak);
    sim_fixture_close(&s);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone_as_in_the_table),
        cmocka_unit_test(test_neighbours_slow_each_other),
        cmocka_unit_test(test_same_seed_same_records),
        cmocka_unit_test(test_nothing_is_lost),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_gives_up_when_hopeless),
        cmocka_unit_test(test_admission_keeps_overload_off),
        cmocka_unit_test(test_illegal_plan_ends_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
