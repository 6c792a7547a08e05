// Signals and random tensors: properties of their definitions.
#include "tests/kernel/arrays.h"

#include <math.h>

#include "base/tensor.h"
#include "kernel/ref/ref_random.h"
#include "kernel/ref/ref_feature.h"
#include "tests/runner.h"

static Arena scratch;

static int setup(void **state) {
    (void)state;
    return arena_init(&scratch, 1 << 20) == ERR_OK ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    arena_finish(&scratch);
    return 0;
}

static void transforms_undo_each_other(void **state) {
    (void)state;
    double in[2 * 7 * 3 * 2], mid[COUNT(in)], out[COUNT(in)];
    Rng    rng = {3};
    Tensor x = ARRAY(DT_F64, in, 2, 7, 3, 2), m = ARRAY(DT_F64, mid, 2, 7, 3, 2);
    Tensor y = ARRAY(DT_F64, out, 2, 7, 3, 2);
    ref_normal(rng, 0, 1, &x);
    assert_int_equal(ref_dft(&(RefDft){1, 7, 7, false}, &x, &scratch, &m), ERR_OK);
    assert_int_equal(ref_dft(&(RefDft){1, 7, 7, true}, &m, &scratch, &y), ERR_OK);
    ASSERT_REALS(out, in);
}

static void short_signals_are_padded(void **state) {
    (void)state;
    float  in[] = {1, 2}, out[2 * 3];
    Tensor x = ARRAY(DT_F32, in, 1, 2, 1), y = ARRAY(DT_F32, out, 1, 3, 2);
    assert_int_equal(ref_dft(&(RefDft){1, 4, 3, false}, &x, &scratch, &y), ERR_OK);
    ASSERT_REALS(out, ((float[]){3, 0, 1, -2, -1, 0}));
}

static void frames_are_windowed(void **state) {
    (void)state;
    float  in[] = {1, 2, 3, 4}, w[] = {1, 0.5f}, out[2 * 2 * 2];
    Tensor x = ARRAY(DT_F32, in, 1, 4, 1), win = ARRAY(DT_F32, w, 2),
           y = ARRAY(DT_F32, out, 1, 2, 2, 2);
    assert_int_equal(ref_stft(&(RefStft){2, 2, 2, 2}, &x, &win, &scratch, &y), ERR_OK);
    ASSERT_REALS(out, ((float[]){2, 0, 0, 0, 5, 0, 1, 0}));
}

static void windows_peak_in_the_middle(void **state) {
    (void)state;
    static const double hann[3] = {0.5, 0.5, 0};
    double              five[5], four[4], one[1];
    Tensor s = ARRAY(DT_F64, five, 5), p = ARRAY(DT_F64, four, 4), o = ARRAY(DT_F64, one, 1);
    ref_window(hann, false, &s);
    ASSERT_REALS(five, ((double[]){0, 0.5, 1, 0.5, 0}));
    ref_window(hann, true, &p);
    ASSERT_REALS(four, ((double[]){0, 0.5, 1, 0.5}));
    ref_window(hann, false, &o);
    ASSERT_REALS(one, ((double[]){1}));
}

// Edges beyond half the sample rate stay inside the matrix.
static void filters_stay_inside(void **state) {
    (void)state;
    float  out[5 * 4] = {0}, sum = 0;
    Tensor y = ARRAY(DT_F32, out, 5, 4);
    ref_mel(&(RefMel){.points = 8, .rate = 1000, .low = 0, .high = 1e300}, &y);
    for (size_t i = 0; i < COUNT(out); i++) {
        assert_true(out[i] >= 0 && out[i] <= 1);
        sum += out[i];
    }
    assert_true(sum > 0);
}

static void seeds_repeat(void **state) {
    (void)state;
    float  a[4000], b[4000], p[4000];
    double sum = 0, squares = 0, ones = 0;
    Tensor x = ARRAY(DT_F32, a, 4000), y = ARRAY(DT_F32, b, 4000), q = ARRAY(DT_F32, p, 4000);
    ref_normal((Rng){1}, 3, 2, &x);
    ref_normal((Rng){1}, 3, 2, &y);
    ASSERT_REALS(a, b);
    for (int i = 0; i < 4000; i++) {
        sum += (double)a[i];
        squares += ((double)a[i] - 3) * ((double)a[i] - 3);
        p[i] = 0.25f;
    }
    assert_true(fabs(sum / 4000 - 3) < 0.1 && fabs(squares / 4000 - 4) < 0.4);
    ref_bernoulli((Rng){5}, &q, &y);
    for (int i = 0; i < 4000; i++) ones += (double)b[i];
    assert_true(fabs(ones / 4000 - 0.25) < 0.03);
    ref_uniform((Rng){2}, -1, 1, &x);
    for (int i = 0; i < 4000; i++) assert_true(a[i] >= -1 && a[i] <= 1);
}

static void classes_follow_their_weights(void **state) {
    (void)state;
    float   logs[] = {-INFINITY, 1000, 1000, -INFINITY, -INFINITY, -INFINITY};
    int32_t got[2 * 1000], count[3] = {0};
    Tensor  x = ARRAY(DT_F32, logs, 2, 3), y = ARRAY(DT_I32, got, 2, 1000);
    ref_multinomial((Rng){4}, &x, &y);
    for (int i = 0; i < 1000; i++) count[got[i]]++;
    assert_int_equal(count[0], 0);
    assert_true(count[1] > 400 && count[2] > 400);
    for (int i = 1000; i < 2000; i++) assert_in_range(got[i], 0, 2);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transforms_undo_each_other),
        cmocka_unit_test(short_signals_are_padded),
        cmocka_unit_test(frames_are_windowed),
        cmocka_unit_test(windows_peak_in_the_middle),
        cmocka_unit_test(filters_stay_inside),
        cmocka_unit_test(seeds_repeat),
        cmocka_unit_test(classes_follow_their_weights),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
