#include "tests/kernel/arrays.h"

#include <math.h>

#include "kernel/ref/ref_matmul.h"
#include "kernel/ref/ref_train.h"
#include "tests/runner.h"

static const float log_prob[] = {-1, -2, -3, -4, -5, -6, -7, -8};  // 2 x 2 x 2

static void losses_are_weighted_and_ignored(void **state) {
    (void)state;
    const int64_t target[] = {0, 1, 1, 5};
    const float   weights[] = {0.5f, 2};
    float         each[4], one[1];
    Tensor        x = ARRAY(DT_F32, log_prob, 2, 2, 2), t = ARRAY(DT_I64, target, 2, 2);
    Tensor        w = ARRAY(DT_F32, weights, 2), y = ARRAY(DT_F32, each, 2, 2);
    Tensor        s = tensor_of(DT_F32, 0, NULL, one);
    RefLoss       p = {.reduction = REF_LOSS_NONE, .ignores = true, .ignored = 5, .weight = &w};
    assert_int_equal(ref_loss(&p, &x, &t, &y), ERR_OK);
    ASSERT_REALS(each, ((float[]){0.5f, 8, 14, 0}));
    p.reduction = REF_LOSS_SUM;
    assert_int_equal(ref_loss(&p, &x, &t, &s), ERR_OK);
    ASSERT_REALS(one, ((float[]){22.5f}));
    p.reduction = REF_LOSS_MEAN;
    assert_int_equal(ref_loss(&p, &x, &t, &s), ERR_OK);
    ASSERT_REALS(one, ((float[]){5}));
    p.weight = NULL;
    assert_int_equal(ref_loss(&p, &x, &t, &s), ERR_OK);
    ASSERT_REALS(one, ((float[]){4}));
}

static void targets_beyond_the_classes_are_refused(void **state) {
    (void)state;
    int32_t target[] = {0, 1, 1, 2};
    float   one[1];
    Tensor  x = ARRAY(DT_F32, log_prob, 2, 2, 2), t = ARRAY(DT_I32, target, 2, 2);
    Tensor  y = tensor_of(DT_F32, 0, NULL, one);
    RefLoss p = {.reduction = REF_LOSS_SUM};
    assert_int_equal(ref_loss(&p, &x, &t, &y), ERR_INVALID);
    target[3] = INT32_MIN;
    assert_int_equal(ref_loss(&p, &x, &t, &y), ERR_INVALID);
}

static void determinants_pivot(void **state) {
    (void)state;
    const float in[] = {0, 1, 2, 0, 1, 2, 2, 4};
    const float large[] = {2, -1, 0, -1, 2, -1, 0, -1, 2};
    float       out[2], one[1];
    double      room[9];
    Tensor      x = ARRAY(DT_F32, in, 2, 2, 2), y = ARRAY(DT_F32, out, 2);
    Tensor      u = ARRAY(DT_F32, large, 3, 3), v = tensor_of(DT_F32, 0, NULL, one);
    ref_det(&x, &y, room);
    ASSERT_REALS(out, ((float[]){-2, 0}));
    ref_det(&u, &v, room);
    ASSERT_REALS(one, ((float[]){4}));
    Tensor none = ARRAY(DT_F32, NULL, 0, 0);
    ref_det(&none, &v, room);
    ASSERT_REALS(one, ((float[]){1}));
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_weighted_and_ignored),
        cmocka_unit_test(targets_beyond_the_classes_are_refused),
        cmocka_unit_test(determinants_pivot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
