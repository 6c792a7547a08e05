// The division of GPUs against the best of all divisions: exact where it is small, near in steps.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "policy/cluster/common/gpu_split.h"
#include "tests/runner.h"

enum { JOBS = 6, CASES = 400 };

// Values as of pollux and optimus: concave, less after a restart, some jobs with one number only.
static void draw(GpuSplitItem *i, Rng *r) {
    uint32_t most = 1 + (uint32_t)rng_below(r, 8);
    double   weight = exp(2 * rng_normal(r)), power = 0.4 + 0.6 * rng_unit64(r);
    bool     rigid = rng_below(r, 4) == 0;
    *i = (GpuSplitItem){.n = 1, .held = rng_below(r, 2) == 0 ? 0 : most / 2};
    for (uint32_t g = rigid ? most : 1; g <= most; g++) {
        double kept = i->held > 0 && g != i->held ? 0.8 : 1;
        i->options[i->n++] = (GpuOption){g, weight * pow(g, power) * kept};
    }
}

static double best(const GpuSplitItem *i, uint32_t n, uint32_t left) {
    double most = 0;
    for (uint32_t k = 0; n > 0 && k < i->n; k++) {
        if (i->options[k].gpus > left) continue;
        most = fmax(most, i->options[k].value + best(i + 1, n - 1, left - i->options[k].gpus));
    }
    return most;
}

static double value_of(const GpuSplit *x, uint32_t gpus) {
    uint32_t used = 0;
    double   sum = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        used += x->items[i].options[x->items[i].at].gpus;
        sum += x->items[i].options[x->items[i].at].value;
    }
    assert_true(used <= gpus);
    return sum;
}

static void test_near_the_best(void **state) {
    (void)state;
    GpuSplitItem items[JOBS];
    uint8_t      choice[JOBS][GPU_SPLIT_EXACT_GPUS + 1];
    GpuSplit     x = {.items = items, .n = JOBS, .choice = choice};
    Rng          r = {1};
    double       sum = 0, worst = 1;
    for (uint32_t c = 0; c < CASES; c++) {
        uint32_t gpus = 1 + (uint32_t)rng_below(&r, 24);
        for (uint32_t i = 0; i < JOBS; i++) draw(&items[i], &r);
        double most = best(items, JOBS, gpus);
        gpu_split_run(&x, gpus);
        assert_true(fabs(value_of(&x, gpus) - most) <= 1e-9 * most);
        gpu_split_steps(&x, gpus);
        double part = value_of(&x, gpus) / most;
        sum += part;
        worst = fmin(worst, part);
    }
    print_message("steps: %.4f of the best value on average, %.3f at worst\n", sum / CASES, worst);
    assert_true(sum / CASES > 0.98 && worst > 0.6);
}

// Equal concave jobs share equally; what is left goes to the first.
static void test_equal_shares(void **state) {
    (void)state;
    GpuSplitItem items[4];
    GpuSplit     x = {.items = items, .n = 4};
    for (uint32_t i = 0; i < 4; i++) {
        items[i] = (GpuSplitItem){.n = 1};
        for (uint32_t g = 1; g <= 8; g++) items[i].options[items[i].n++] = (GpuOption){g, sqrt(g)};
    }
    gpu_split_steps(&x, 13);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(items[i].options[items[i].at].gpus, i == 0 ? 4 : 3);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_near_the_best),
                                       cmocka_unit_test(test_equal_shares)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
