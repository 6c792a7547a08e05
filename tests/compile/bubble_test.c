#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>
#include <unistd.h>

#include "compile/tune/bubble.h"
#include "compile/tune/sweep.h"
#include "tests/runner.h"

static void await_work(const Bubble *b) {
    uint64_t before = bubble_moved(b);
    while (bubble_moved(b) == before) (void)usleep(100);
}

static void test_orders(void **state) {
    (void)state;
    Bubble *b = NULL;
    assert_int_equal(bubble_create(&b, &isa_baseline, BUBBLE_ANYWHERE, 1 << 20), ERR_OK);
    assert_int_equal(bubble_moved(b), 0);
    for (size_t bytes = 1; bytes <= (size_t)4 << 20; bytes *= 8) {
        bubble_set(b, bytes, 0);
        await_work(b);
        bubble_set(b, bytes, 0.5);
        await_work(b);
        bubble_set(b, 0, 0);
    }
    bubble_destroy(b);
    bubble_destroy(NULL);
}

static void test_refused(void **state) {
    (void)state;
    Bubble *b = NULL;
    assert_int_equal(bubble_create(&b, &isa_baseline, BUBBLE_ANYWHERE, SIZE_MAX / 2), ERR_LIMIT);
    assert_null(b);
}

static void run(void *self, const Version *v, Part part) {
    (void)self, (void)part;
    volatile uint32_t spin = 0;
    for (uint32_t i = 0; i < 1000u * v->depth; i++) spin = spin + 1;
}

static void test_sweep(void **state) {
    (void)state;
    static const Pressure m = {
        .l3_bytes = 1 << 20, .l3_one = 80, .l3_all = 160, .dram_one = 35, .dram_all = 70};
    Candidate c[] = {
        {.version = {.depth = 1}, .tasks = 1, .traffic = {1 << 20, 1 << 20}, .time_ns = {10000}},
        {.version = {.depth = 2}, .tasks = 1, .traffic = {0, 0}, .time_ns = {20000}},
    };
    LayerProfile p = {.n_counts = 1, .counts = {1}, .n_kept = 2, .kept = {0, 1}, .n = 2};
    TuneLayer    l = {.key = "a", .run = run};
    TuneOptions  o = {.n_counts = 1, .counts = {1}, .pressure = &m};
    Bubble      *b = NULL;
    SweepLevel   levels[PRESSURE_LEVELS];
    p.candidates = c;
    assert_int_equal(team_create(&o.team, 1, NULL), ERR_OK);
    assert_int_equal(bubble_create(&b, &isa_baseline, BUBBLE_ANYWHERE, 2 << 20), ERR_OK);
    assert_int_equal(sweep_layer(&l, &o, &p, 0, b, 0.005, levels), ERR_OK);
    for (uint32_t i = 0; i < PRESSURE_LEVELS; i++) {
        assert_int_equal(levels[i].bubble_bytes, (size_t)i * (2 << 20) / 9);
        assert_true(levels[i].model_ns[1] == 20000);
        if (levels[i].samples[0] > 0) assert_true(levels[i].time_ns[0] > 0);
        if (i > 0) assert_true(levels[i].model_ns[0] >= levels[0].model_ns[0]);
    }
    assert_true(levels[0].bubble_gbs == 0);
    bubble_destroy(b);
    team_destroy(o.team);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
