#include "tests/kernel/arrays.h"

#include <string.h>

#include "kernel/ref/ref_copy.h"
#include "tests/runner.h"

static void sides_stride_both_ways(void **state) {
    (void)state;
    int32_t in[12], out[6];
    for (int i = 0; i < 12; i++) in[i] = i;
    Tensor     x = ARRAY(DT_I32, in, 3, 4), y = ARRAY(DT_I32, out, 2, 3);
    RefStrided from = {.data = in, .start = 11, .stride = {-8, -1}};  // rows 2 and 0, columns 3 2 1
    ref_copy(2, y.dims, sizeof *in, ref_strided(&y), from);
    ASSERT_INTS(out, ((int[]){11, 10, 9, 3, 2, 1}));
    memset(out, 0, sizeof out);
    RefStrided column = ref_strided(&x);
    column.start = 1;
    ref_copy(2, (const int64_t[]){3, 1}, sizeof *in, (RefStrided){.data = out, .stride = {2, 1}},
             column);
    ASSERT_INTS(out, ((int[]){1, 0, 5, 0, 9, 0}));
}

// Sizes without a specialised loop take the general path.
static void elements_of_any_size_move(void **state) {
    (void)state;
    char in[] = "abcdefghi", out[10] = "";
    ref_copy(1, (const int64_t[]){3}, 3, (RefStrided){.data = out, .stride = {1}},
             (RefStrided){.data = in, .start = 2, .stride = {-1}});
    assert_string_equal(out, "ghidefabc");
    ref_copy(2, (const int64_t[]){2, 0}, 3, (RefStrided){.data = out}, (RefStrided){.data = in});
    assert_string_equal(out, "ghidefabc");
    ref_copy(0, NULL, 1, (RefStrided){.data = out}, (RefStrided){.data = in});
    assert_string_equal(out, "ahidefabc");
}

#define PICKS(mode, begin, drop, kept, ...)                                                        \
    do {                                                                                           \
        int64_t want[] = {__VA_ARGS__}, got[COUNT(want)];                                          \
        ref_take_pad(mode, (RefPadAxis){begin, drop, kept}, got, COUNT(want));                     \
        ASSERT_INTS(got, want);                                                                    \
    } while (0)

static void padding_looks_inside(void **state) {
    (void)state;
    PICKS(REF_PAD_CONSTANT, 2, 0, 2, -1, -1, 0, 1, -1);
    PICKS(REF_PAD_EDGE, 2, 1, 2, 1, 1, 1, 2, 2);
    PICKS(REF_PAD_REFLECT, 4, 0, 3, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2);  // longer than the data
    PICKS(REF_PAD_REFLECT, 1, 2, 1, 2, 2, 2);
    PICKS(REF_PAD_WRAP, 2, 0, 3, 1, 2, 0, 1, 2, 0, 1);
    PICKS(REF_PAD_WRAP, 3, 5, 2, 6, 5, 6, 5, 6, 5);
}

static void picks_fill_what_is_outside(void **state) {
    (void)state;
    int16_t in[] = {1, 2, 3, 4}, out[6], fill = 9;
    int64_t rows[] = {1, -1}, cols[] = {0, -1, 1}, *pick[] = {rows, cols};
    Tensor  x = ARRAY(DT_I16, in, 2, 2), y = ARRAY(DT_I16, out, 2, 3);
    ref_take(&x, pick, &fill, &y);
    ASSERT_INTS(out, ((int[]){3, 9, 4, 9, 9, 9}));
}

static void sequences_reverse(void **state) {
    (void)state;
    float   in[] = {0, 1, 2, 3, 4, 5}, out[6];
    int64_t lens[] = {3, 1}, wrong[] = {4, 1};
    Tensor  x = ARRAY(DT_F32, in, 2, 3), y = ARRAY(DT_F32, out, 2, 3);
    Tensor  l = ARRAY(DT_I64, lens, 2), bad = ARRAY(DT_I64, wrong, 2);
    assert_int_equal(ref_reverse(&x, &l, true, &y), ERR_OK);
    ASSERT_REALS(out, ((float[]){2, 1, 0, 3, 4, 5}));
    assert_int_equal(ref_reverse(&x, &bad, true, &y), ERR_INVALID);
    wrong[0] = INT64_MIN;
    assert_int_equal(ref_reverse(&x, &bad, true, &y), ERR_INVALID);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sides_stride_both_ways), cmocka_unit_test(elements_of_any_size_move),
        cmocka_unit_test(padding_looks_inside),   cmocka_unit_test(picks_fill_what_is_outside),
        cmocka_unit_test(sequences_reverse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
