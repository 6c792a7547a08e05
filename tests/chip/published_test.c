// The published measurements of the Eyeriss chip (JSSC 2017, tables V and VI, 200 MHz core, 60 MHz
// link).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "chip/cost/cost.h"
#include "tests/runner.h"

static Arena arena;

static int open_arena(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 30) == ERR_OK ? 0 : -1;
}

static int close_arena(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

typedef struct Row {
    double total_ms, processing_ms, buffer_mb;  // MB of 2^20 bytes
} Row;

static const Row alexnet[] = {
    // four images
    {20.9, 16.5, 18.5}, {41.9, 39.2, 77.6}, {23.6, 21.8, 50.2},
    {18.4, 16.0, 37.4}, {10.5, 10.0, 24.9},
};

static const Row vgg16[] = {
    // three images
    {76.2, 38.0, 112.6},   {910.3, 810.6, 2402.8}, {470.3, 405.3, 1201.4}, {894.3, 810.8, 2402.8},
    {241.1, 204.0, 607.4}, {460.9, 408.1, 1214.8}, {457.7, 408.1, 1214.8}, {135.8, 105.1, 321.8},
    {254.8, 210.0, 643.7}, {246.3, 210.0, 643.7},  {54.3, 48.3, 90.0},     {53.7, 48.5, 90.0},
    {53.7, 48.5, 90.0},
};

typedef struct Near {
    uint32_t total, processing, buffer, rows;
} Near;

static bool near(double ours, double theirs) { return fabs(ours / theirs - 1) <= 0.15; }

static void compare(const char *network, int64_t batch, const Row *rows, uint32_t n, Near *out) {
    UnitSpec u;
    Shape   *s = NULL;
    uint32_t layers = 0;
    assert_int_equal(unit_spec_load("eyeriss_chip", &arena, &u), ERR_OK);
    assert_int_equal(shape_list(network, batch, &arena, &s, &layers), ERR_OK);
    assert_true(layers >= n);
    for (uint32_t i = 0; i < n; i++) {
        Cost   c = cost_of(&s[i], &u);
        double ms = u.clock_mhz * 1e3, processing = fmax(c.array_cycles, c.buffer_cycles) / ms;
        out->total += near(c.cycles / ms, rows[i].total_ms);
        out->processing += near(processing, rows[i].processing_ms);
        out->buffer += near(c.buffer_bytes / (1 << 20), rows[i].buffer_mb);
        out->rows++;
    }
}

static void test_measured_times(void **state) {
    (void)state;
    Near near_ones = {0};
    compare("alexnet_2012", 4, alexnet, 5, &near_ones);
    compare("vgg16", 3, vgg16, 13, &near_ones);
    assert_int_equal(near_ones.rows, 18);
    assert_in_range(near_ones.processing, 18, 18);
    assert_in_range(near_ones.total, 17, 18);
    assert_in_range(near_ones.buffer, 11, 18);
}

static void test_time_follows_work(void **state) {
    (void)state;
    UnitSpec u;
    Shape   *s = NULL;
    uint32_t n = 0;
    assert_int_equal(unit_spec_load("eyeriss_chip", &arena, &u), ERR_OK);
    assert_int_equal(shape_list("vgg16", 3, &arena, &s, &n), ERR_OK);
    for (uint32_t i = 0; i < 13; i++) {
        Shape twice = s[i];
        twice.n *= 2;
        double a = cost_of(&s[i], &u).cycles, b = cost_of(&twice, &u).cycles;
        assert_true(b <= 2 * a * (1 + 1e-12) && b > 1.5 * a);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measured_times),
        cmocka_unit_test(test_time_follows_work),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
