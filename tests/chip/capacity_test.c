#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/rng.h"
#include "chip/chip_scenario.h"
#include "tests/chip/test_package.h"
#include "tests/runner.h"

enum { RESOURCES_MAX = CHIP_KINDS + 1 };

static double capacity(const CapacityCase *c) {
    double x = 0;
    assert_int_equal(capacity_find(c, &x), ERR_OK);
    return x;
}

static CapacityCase case_of(const TestPackage *y, const double *share) {
    return (CapacityCase){.models = y->models,
                          .share = share,
                          .n = y->run.setup.n_tenants,
                          .kinds = y->kinds,
                          .n_kinds = y->run.setup.n_kinds,
                          .bytes_ns = (double)y->run.setup.bytes_ns};
}

static void test_by_hand(void **state) {
    (void)state;
    static const double one[] = {1};
    TestPackage         y;
    // 2 units, 100 ns a request: 20 per microsecond; 200 bytes at 8 per nanosecond: 40
    test_package_open(&y, 1, (uint32_t[]){2}, 8);
    test_package_tenant(&y, 1, (ChipCost[]){{100, 2, 0}});
    CapacityCase c = case_of(&y, one);
    assert_true(fabs(capacity(&c) - 2e7) < 1);
    c.bytes_ns = 0.5;
    assert_true(fabs(capacity(&c) - 2.5e6) < 1);
    c.bytes_ns = 8;
    c.dispatch_ns = 100;
    assert_true(fabs(capacity(&c) - 1e7) < 1);
    test_package_close(&y);
    // a layer of 100 ns on one kind and 300 on the other: three quarters on the first, 75 ns each
    test_package_open(&y, 2, (uint32_t[]){1, 1}, 8);
    test_package_tenant(&y, 1, (ChipCost[]){{100, 0, 0}, {300, 0, 0}});
    c = case_of(&y, one);
    assert_true(fabs(capacity(&c) - 1e9 / 75) < 1);
    test_package_close(&y);
}

static void test_refuses(void **state) {
    (void)state;
    static const double one[] = {1}, none[] = {0};
    TestPackage         y;
    double              x;
    test_package_open(&y, 2, (uint32_t[]){0, 1}, 8);
    test_package_tenant(&y, 1, (ChipCost[]){{100, 0, 0}, {INFINITY, 0, 0}});
    CapacityCase c = case_of(&y, one);
    assert_int_equal(capacity_find(&c, &x), ERR_ARG);
    c.share = none;
    assert_int_equal(capacity_find(&c, &x), ERR_ARG);
    test_package_close(&y);
}

// Weak duality: at prices that sum to 1 the cheapest assignment costs no more than the optimal
// load. Fills in the load of that assignment on each resource.
static double bound_at(const CapacityCase *c, const double *price, double *load) {
    double sum = 0;
    memset(load, 0, (c->n_kinds + 1) * sizeof *load);
    for (uint32_t i = 0; i < c->n; i++)
        for (uint32_t l = 0; l < c->models[i].n_layers; l++) {
            double   least = INFINITY, unit = 0, bytes = 0;
            uint32_t at = 0;
            for (uint32_t k = 0; k < c->n_kinds; k++) {
                const ChipCost *x = chip_cost(&c->models[i], l, k);
                double          u = (double)x->ns / c->kinds[k].n_units;
                double          b = (double)x->ns * (double)x->bytes_ns / c->bytes_ns;
                if (!isfinite(u) || price[k] * u + price[c->n_kinds] * b >= least) continue;
                least = price[k] * u + price[c->n_kinds] * b;
                unit = u;
                bytes = b;
                at = k;
            }
            load[at] += c->share[i] * unit;
            load[c->n_kinds] += c->share[i] * bytes;
            sum += c->share[i] * least;
        }
    return sum;
}

static double best_bound(const CapacityCase *c) {
    double best = 0, load[3];
    for (int i = 0; i <= 400; i++)
        for (int j = 0; i + j <= 400; j++)
            best = fmax(best,
                        bound_at(c, (double[]){i / 400.0, j / 400.0, (400 - i - j) / 400.0}, load));
    return best;
}

// All assignments of layers to the two kinds in tenths.
static double best_of_all(const CapacityCase *c, uint32_t n) {
    const ChipModel *m = c->models;
    double           best = INFINITY;
    uint32_t         ways = 1;
    for (uint32_t l = 0; l < n; l++) ways *= 11;
    for (uint32_t w = 0; w < ways; w++) {
        double load[3] = {0};
        for (uint32_t l = 0, x = w; l < n; l++, x /= 11)
            for (uint32_t k = 0; k < 2; k++) {
                double part = (k == 0 ? x % 11 : 10 - x % 11) / 10.0;
                double ns = part > 0 ? part * (double)chip_cost(m, l, k)->ns : 0;
                load[k] += ns / c->kinds[k].n_units;
                if (part > 0) load[2] += ns * (double)chip_cost(m, l, k)->bytes_ns / c->bytes_ns;
            }
        best = fmin(best, fmax(load[0], fmax(load[1], load[2])));
    }
    return best;
}

static void test_between_a_bound_and_all_ways(void **state) {
    (void)state;
    Rng                 rng = {7};
    static const double one[] = {1};
    for (int round = 0; round < 30; round++) {
        TestPackage y;
        ChipCost    costs[8];
        uint32_t    n = 1 + (uint32_t)rng_below(&rng, 4);
        test_package_open(&y, 2, (uint32_t[]){1 + (uint32_t)rng_below(&rng, 3), 1}, 4);
        for (uint32_t i = 0; i < 2 * n; i++)
            costs[i] = (ChipCost){10 + 90 * rng_unit(&rng), 8 * rng_unit(&rng), 0};
        if (round % 3 == 0) costs[1].ns = INFINITY;
        test_package_tenant(&y, n, costs);
        CapacityCase c = case_of(&y, one);
        double       ns = 1e9 / capacity(&c), bound = best_bound(&c);
        assert_true(ns >= bound * (1 - 1e-9) && ns <= bound * 1.01);
        if (n <= 3) assert_true(ns <= best_of_all(&c, n) * (1 + 1e-9));
        test_package_close(&y);
    }
}

// Multiplicative weights: prices rise with the load and converge to the optimum.
static double climbed_bound(const CapacityCase *c) {
    uint32_t n = c->n_kinds + 1;
    double   price[RESOURCES_MAX], load[RESOURCES_MAX], best = 0;
    for (uint32_t r = 0; r < n; r++) price[r] = 1.0 / n;
    for (int i = 1; i <= 3000; i++) {
        double sum = 0, bound = bound_at(c, price, load);
        best = fmax(best, bound);
        for (uint32_t r = 0; r < n; r++) sum += price[r] *= exp(load[r] / bound / sqrt(i));
        for (uint32_t r = 0; r < n; r++) price[r] /= sum;
    }
    return best;
}

static void test_large(void **state) {
    (void)state;
    Rng      rng = {9};
    Arena    a;
    uint32_t n_layers = 300, n_kinds = 6;
    assert_int_equal(arena_init(&a, (size_t)1 << 26), ERR_OK);
    ChipCost *costs = arena_new(&a, ChipCost, (size_t)n_layers * n_kinds);
    ChipKind  kinds[6];
    for (uint32_t k = 0; k < n_kinds; k++) kinds[k] = (ChipKind){"kind", 1 + k % 3};
    for (uint32_t i = 0; i < n_layers * n_kinds; i++)
        costs[i] = (ChipCost){1 + 99 * rng_unit(&rng), 8 * rng_unit(&rng), 0};
    ChipModel           m = {.n_layers = n_layers, .n_kinds = n_kinds, .costs = costs};
    static const double two[] = {2};
    CapacityCase c = {.models = &m, .share = two, .n = 1, .kinds = kinds, .n_kinds = n_kinds};
    double       best[2];
    for (int wide = 0; wide < 2; wide++) {
        c.bytes_ns = wide ? 1e9 : 4;
        double ns = 2e9 / capacity(&c), bound = climbed_bound(&c);
        assert_true(ns >= bound * (1 - 1e-9) && ns < bound * 1.02);
        best[wide] = ns;
    }
    assert_true(best[1] < best[0]);
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_between_a_bound_and_all_ways),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
