#include "tests/kernel/arrays.h"

#include "kernel/ref/ref_train.h"
#include "tests/runner.h"

static const float value[] = {1, -2}, slope[] = {0.5f, 0}, past[] = {1, 0}, square[] = {0.25f, 0};

static float x_new[2], past_new[2], square_new[2];

static void step(void (*rule)(const RefOptimizer *, const RefParameter *), RefOptimizer s) {
    Tensor       x = ARRAY(DT_F32, value, 2), g = ARRAY(DT_F32, slope, 2);
    Tensor       v = ARRAY(DT_F32, past, 2), h = ARRAY(DT_F32, square, 2);
    Tensor       a = ARRAY(DT_F32, x_new, 2), b = ARRAY(DT_F32, past_new, 2);
    Tensor       c = ARRAY(DT_F32, square_new, 2);
    RefParameter var = {&x, &g, {&v, &h}, &a, {&b, &c}};
    rule(&s, &var);
}

static void rules_follow_their_definitions(void **state) {
    (void)state;
    step(ref_momentum, (RefOptimizer){.rate = 0.1, .alpha = 0.5, .beta = 2, .decay = 0.5});
    ASSERT_REALS(past_new, ((float[]){2.5f, -2}));  // gradients with decay are 1 and -1
    ASSERT_REALS(x_new, ((float[]){0.75f, -1.8f}));
    step(ref_momentum, (RefOptimizer){.rate = 0.1, .alpha = 0.5, .beta = 2, .nesterov = true});
    ASSERT_REALS(x_new, ((float[]){0.875f, -2}));
    step(ref_adagrad, (RefOptimizer){.rate = 0.1, .epsilon = 1});
    ASSERT_REALS(past_new, ((float[]){1.25f, 0}));
    ASSERT_REALS(x_new, ((float[]){0.976393202f, -2}));
    step(ref_adam,
         (RefOptimizer){.rate = 1, .alpha = 0.5, .beta = 0.5, .epsilon = 0.5, .after = 0.5});
    ASSERT_REALS(past_new, ((float[]){0.75f, 0}));
    ASSERT_REALS(square_new, ((float[]){0.25f, 0}));
    ASSERT_REALS(x_new, ((float[]){0.125f, -1}));
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rules_follow_their_definitions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
