#include "tests/kernel/arrays.h"

#include <math.h>

#include "base/fp.h"
#include "kernel/ref/ref_elementwise.h"
#include "tests/runner.h"

static void shapes_broadcast_from_either_side(void **state) {
    (void)state;
    const float column[] = {10, 20}, row[] = {1, 2, 3}, one[] = {5};
    float       out[6], three[3];
    Tensor      a = ARRAY(DT_F32, column, 2, 1), b = ARRAY(DT_F32, row, 3);
    Tensor      s = tensor_of(DT_F32, 0, NULL, (void *)(uintptr_t)one);
    Tensor      y = ARRAY(DT_F32, out, 2, 3), z = ARRAY(DT_F32, three, 3);
    ref_binary(REF_SUB, &a, &b, &y);
    ASSERT_REALS(out, ((float[]){9, 8, 7, 19, 18, 17}));
    ref_binary(REF_SUB, &b, &a, &y);
    ASSERT_REALS(out, ((float[]){-9, -8, -7, -19, -18, -17}));
    ref_binary(REF_DIV, &s, &b, &z);
    ASSERT_REALS(three, ((float[]){5, 2.5f, 5.0f / 3}));
}

// Against an index computed here, for every pattern of broadcast dimensions.
static void every_pattern_of_rank_three_agrees_with_plain_indexing(void **state) {
    (void)state;
    enum { D = 3 };
    float in[D * D * D], out[D * D * D];
    for (int i = 0; i < D * D * D; i++) in[i] = (float)(i * i % 17);
    for (int pattern = 0; pattern < 64; pattern++) {
        int64_t da[3], db[3], dy[3], sa[3], sb[3];
        for (int i = 0; i < 3; i++) {
            da[i] = pattern >> i & 1 ? D : 1;
            db[i] = pattern >> (i + 3) & 1 ? D : 1;
            dy[i] = da[i] > db[i] ? da[i] : db[i];
        }
        sa[2] = da[2] > 1, sa[1] = da[1] > 1 ? da[2] : 0, sa[0] = da[0] > 1 ? da[1] * da[2] : 0;
        sb[2] = db[2] > 1, sb[1] = db[1] > 1 ? db[2] : 0, sb[0] = db[0] > 1 ? db[1] * db[2] : 0;
        Tensor a = tensor_of(DT_F32, 3, da, in), b = tensor_of(DT_F32, 3, db, in);
        Tensor y = tensor_of(DT_F32, 3, dy, out);
        ref_binary(REF_SUB, &a, &b, &y);
        int64_t at = 0;
        for (int64_t i = 0; i < dy[0]; i++)
            for (int64_t j = 0; j < dy[1]; j++)
                for (int64_t k = 0; k < dy[2]; k++, at++)
                    assert_true(out[at] == in[i * sa[0] + j * sa[1] + k * sa[2]] -
                                               in[i * sb[0] + j * sb[1] + k * sb[2]]);
    }
}

static void integers_never_trap(void **state) {
    (void)state;
    const int32_t a[] = {INT32_MIN, INT32_MIN, 7, INT32_MAX}, b[] = {-1, 0, -2, 1};
    const int64_t c[] = {INT64_MIN, 5, -5}, d[] = {-1, 0, 3};
    int32_t       out[4];
    int64_t       wide[3];
    Tensor        x = ARRAY(DT_I32, a, 4), y = ARRAY(DT_I32, b, 4), z = ARRAY(DT_I32, out, 4);
    Tensor        u = ARRAY(DT_I64, c, 3), v = ARRAY(DT_I64, d, 3), w = ARRAY(DT_I64, wide, 3);
    ref_binary(REF_DIV, &x, &y, &z);
    ASSERT_INTS(out, ((int32_t[]){INT32_MIN, 0, -3, INT32_MAX}));
    ref_binary(REF_ADD, &x, &y, &z);
    ASSERT_INTS(out, ((int32_t[]){INT32_MAX, INT32_MIN, 5, INT32_MIN}));
    ref_binary(REF_DIV, &u, &v, &w);
    ASSERT_INTS(wide, ((int64_t[]){INT64_MIN, 0, -1}));
    ref_binary(REF_MUL, &u, &v, &w);
    ASSERT_INTS(wide, ((int64_t[]){INT64_MIN, 0, -15}));
    ref_binary(REF_MOD, &u, &v, &w);
    ASSERT_INTS(wide, ((int64_t[]){0, 0, 1}));
    ref_binary(REF_FMOD, &u, &v, &w);
    ASSERT_INTS(wide, ((int64_t[]){0, 0, -2}));
}

static void remainders_take_the_sign_they_should(void **state) {
    (void)state;
    const int8_t a[] = {-4, 7, 5, 4, -7, 8}, b[] = {2, -3, 8, -2, 3, 5};
    const double c[] = {-4.3, 7.2, 5}, d[] = {2.1, -3.4, 8};
    int8_t       out[6];
    double       real[3];
    Tensor       x = ARRAY(DT_I8, a, 6), y = ARRAY(DT_I8, b, 6), z = ARRAY(DT_I8, out, 6);
    Tensor       u = ARRAY(DT_F64, c, 3), v = ARRAY(DT_F64, d, 3), w = ARRAY(DT_F64, real, 3);
    ref_binary(REF_MOD, &x, &y, &z);
    ASSERT_INTS(out, ((int8_t[]){0, -2, 5, 0, 2, 3}));
    ref_binary(REF_FMOD, &x, &y, &z);
    ASSERT_INTS(out, ((int8_t[]){0, 1, 5, 0, -1, 3}));
    ref_binary(REF_FMOD, &u, &v, &w);
    ASSERT_REALS(real, ((double[]){-0.1, 0.4, 5}));
}

static void shifts_past_the_width_give_zero(void **state) {
    (void)state;
    const uint8_t  a[] = {255, 1, 128}, b[] = {4, 8, 200};
    const uint64_t c[] = {1, 1}, d[] = {63, 64};
    uint8_t        out[3];
    uint64_t       wide[2];
    Tensor         x = ARRAY(DT_U8, a, 3), y = ARRAY(DT_U8, b, 3), z = ARRAY(DT_U8, out, 3);
    Tensor         u = ARRAY(DT_U64, c, 2), v = ARRAY(DT_U64, d, 2), w = ARRAY(DT_U64, wide, 2);
    ref_binary(REF_SHL, &x, &y, &z);
    ASSERT_INTS(out, ((uint8_t[]){240, 0, 0}));
    ref_binary(REF_SHR, &x, &y, &z);
    ASSERT_INTS(out, ((uint8_t[]){15, 0, 0}));
    ref_binary(REF_SHL, &u, &v, &w);
    ASSERT_INTS(wide, ((uint64_t[]){UINT64_C(1) << 63, 0}));
}

static void powers_mix_types(void **state) {
    (void)state;
    const int32_t base[] = {2, -3, -1, 7}, whole[] = {10, 3, -3, -1};
    const float   real[] = {0.5f, 2, 3, 1};
    int32_t       out[4];
    float         out_real[4];
    Tensor a = ARRAY(DT_I32, base, 4), b = ARRAY(DT_I32, whole, 4), y = ARRAY(DT_I32, out, 4);
    Tensor c = ARRAY(DT_F32, real, 4), z = ARRAY(DT_F32, out_real, 4);
    ref_binary(REF_POW, &a, &b, &y);
    ASSERT_INTS(out, ((int32_t[]){1024, -27, -1, 0}));
    ref_binary(REF_POW, &a, &c, &y);
    ASSERT_INTS(out, ((int32_t[]){1, 9, -1, 7}));
    ref_binary(REF_POW, &c, &b, &z);
    ASSERT_REALS(out_real, ((float[]){0x1p-10f, 8, 1.0f / 27, 1}));
}

static void not_a_number_wins_and_never_compares(void **state) {
    (void)state;
    const float a[] = {NAN, 1, 3}, b[] = {1, NAN, 2};
    float       out[3];
    uint8_t     truth[3];
    Tensor      x = ARRAY(DT_F32, a, 3), y = ARRAY(DT_F32, b, 3), z = ARRAY(DT_F32, out, 3);
    Tensor      t = ARRAY(DT_BOOL, truth, 3);
    ref_binary(REF_MAX, &x, &y, &z);
    ASSERT_REALS(out, ((float[]){NAN, NAN, 3}));
    ref_binary(REF_MIN, &x, &y, &z);
    ASSERT_REALS(out, ((float[]){NAN, NAN, 2}));
    ref_binary(REF_EQUAL, &x, &x, &t);
    ASSERT_INTS(truth, ((uint8_t[]){0, 1, 1}));
    ref_binary(REF_GREATER_EQ, &x, &y, &t);
    ASSERT_INTS(truth, ((uint8_t[]){0, 0, 1}));
}

static void large_integers_compare_exactly(void **state) {
    (void)state;
    const int64_t a[] = {(INT64_C(1) << 60) + 1, -1}, b[] = {INT64_C(1) << 60, 1};
    uint8_t       truth[2];
    Tensor        x = ARRAY(DT_I64, a, 2), y = ARRAY(DT_I64, b, 2), t = ARRAY(DT_BOOL, truth, 2);
    ref_binary(REF_GREATER, &x, &y, &t);
    ASSERT_INTS(truth, ((uint8_t[]){1, 0}));
    ref_binary(REF_EQUAL, &x, &y, &t);
    ASSERT_INTS(truth, ((uint8_t[]){0, 0}));
}

static void logic_takes_any_byte_for_true(void **state) {
    (void)state;
    const uint8_t a[] = {0, 2, 4, 0}, b[] = {0, 1, 0, 255};
    uint8_t       out[4];
    Tensor        x = ARRAY(DT_BOOL, a, 4), y = ARRAY(DT_BOOL, b, 4), z = ARRAY(DT_BOOL, out, 4);
    ref_binary(REF_AND, &x, &y, &z);
    ASSERT_INTS(out, ((uint8_t[]){0, 1, 0, 0}));
    ref_binary(REF_OR, &x, &y, &z);
    ASSERT_INTS(out, ((uint8_t[]){0, 1, 1, 1}));
    ref_binary(REF_XOR, &x, &y, &z);
    ASSERT_INTS(out, ((uint8_t[]){0, 0, 1, 1}));
}

static void nothing_is_done_for_nothing(void **state) {
    (void)state;
    Tensor a = ARRAY(DT_F32, NULL, (int64_t)1 << 40, 0), y = a;
    ref_binary(REF_ADD, &a, &a, &y);
    assert_null(y.data);
}

static void where_picks_strings_too(void **state) {
    (void)state;
    const uint8_t pick[] = {1, 0};
    const Str     a[] = {{"yes", 3}}, b[] = {{"no", 2}, {"never", 5}};
    Str           out[2];
    uint8_t       same[2];
    Tensor        p = ARRAY(DT_BOOL, pick, 2), x = ARRAY(DT_STR, a, 1), y = ARRAY(DT_STR, b, 2);
    Tensor        z = ARRAY(DT_STR, out, 2), t = ARRAY(DT_BOOL, same, 2);
    ref_where(&p, &x, &y, &z);
    assert_string_equal(out[0].at, "yes");
    assert_string_equal(out[1].at, "never");
    ref_equal_str(&z, &y, &t);
    ASSERT_INTS(same, ((uint8_t[]){0, 1}));
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_broadcast_from_either_side),
        cmocka_unit_test(every_pattern_of_rank_three_agrees_with_plain_indexing),
        cmocka_unit_test(integers_never_trap),
        cmocka_unit_test(remainders_take_the_sign_they_should),
        cmocka_unit_test(shifts_past_the_width_give_zero),
        cmocka_unit_test(powers_mix_types),
        cmocka_unit_test(not_a_number_wins_and_never_compares),
        cmocka_unit_test(large_integers_compare_exactly),
        cmocka_unit_test(logic_takes_any_byte_for_true),
        cmocka_unit_test(nothing_is_done_for_nothing),
        cmocka_unit_test(where_picks_strings_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
