// Quantising by hand: rounding, saturation, and which scale an element has.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "kernel/ref/ref_cast.h"
#include "tests/runner.h"

static Tensor list(DType t, int64_t n, void *data) { return tensor_of(t, 1, &n, data); }

static void rounds_half_to_even(void **state) {
    (void)state;
    float    x[8] = {1, 3, 5, -1, -3, 1e30F, -INFINITY, NAN}, s[1] = {2};
    int8_t   y[8], z[1] = {1};
    Tensor   tx = list(DT_F32, 8, x), ty = list(DT_I8, 8, y);
    Tensor   ts = list(DT_F32, 1, s), tz = list(DT_I8, 1, z);
    RefQuant p = {.outer = 1, .axis = 1, .inner = 8, .scale = &ts, .zero = &tz};
    ref_quantize(&p, &tx, &ty);
    static const int8_t want[8] = {1, 3, 3, 1, -1, 127, -128, 0};
    assert_memory_equal(y, want, sizeof want);
}

static void per_axis(void **state) {
    (void)state;
    float    x[12], s[3] = {1, 2, 4};
    uint8_t  q[12], z[3] = {0, 1, 2};
    Tensor   tx = list(DT_F32, 12, x), tq = list(DT_U8, 12, q);
    Tensor   ts = list(DT_F32, 3, s), tz = list(DT_U8, 3, z);
    RefQuant p = {.outer = 2, .axis = 3, .inner = 2, .block = -1, .scale = &ts, .zero = &tz};
    for (int i = 0; i < 12; i++) q[i] = (uint8_t)(i + 5);
    ref_dequantize(&p, &tq, &tx);
    for (int i = 0; i < 12; i++) assert_true(x[i] == (float)(q[i] - z[i / 2 % 3]) * s[i / 2 % 3]);
    uint8_t again[12];
    Tensor  ta = list(DT_U8, 12, again);
    ref_quantize(&p, &tx, &ta);
    assert_memory_equal(q, again, sizeof q);
}

// Blocks of 2 along an axis of 3: the second block is short.
static void blocks(void **state) {
    (void)state;
    float    x[6] = {0}, s[4] = {1, 10, 100, 1000};
    int16_t  q[6] = {1, 2, 3, 4, 5, 6};
    Tensor   tx = list(DT_F32, 6, x), tq = list(DT_I16, 6, q), ts = list(DT_F32, 4, s);
    RefQuant p = {.outer = 1, .axis = 3, .inner = 2, .block = 2, .scale = &ts};
    ref_dequantize(&p, &tq, &tx);
    static const float want[6] = {1, 20, 3, 40, 500, 6000};
    assert_memory_equal(x, want, sizeof want);
}

static void long_rows(void **state) {
    (void)state;
    float    s[1] = {0.5F};
    float    x[600];
    int32_t  q[600];
    Tensor   tx = list(DT_F32, 600, x), tq = list(DT_I32, 600, q), ts = list(DT_F32, 1, s);
    RefQuant p = {.outer = 1, .axis = 1, .inner = 600, .scale = &ts};
    for (int i = 0; i < 600; i++) q[i] = i;
    ref_dequantize(&p, &tq, &tx);
    for (int i = 0; i < 600; i++) assert_true(x[i] == (float)i / 2);
}

static void dynamic_range(void **state) {
    (void)state;
    float   x[3] = {-1, 0, 254}, scale;
    uint8_t y[3], zero;
    Tensor  tx = list(DT_F32, 3, x), ty = list(DT_U8, 3, y);
    ref_quantize_dynamic(&tx, &ty, &scale, &zero);
    assert_true(scale == 1 && zero == 1);
    assert_true(y[0] == 0 && y[1] == 1 && y[2] == 255);
    memset(x, 0, sizeof x);
    ref_quantize_dynamic(&tx, &ty, &scale, &zero);
    assert_true(zero == 0 && y[0] == 0 && scale > 0);
    x[0] = INFINITY;
    ref_quantize_dynamic(&tx, &ty, &scale, &zero);
}

static void requantize(void **state) {
    (void)state;
    double  sum[4] = {10, -10, 1000, 6};
    float   a[1] = {0.5F}, b[2] = {1, 2}, s[1] = {2};
    uint8_t z[1] = {3}, y[4];
    Tensor  tsum = tensor_of(DT_F64, 2, (int64_t[]){2, 2}, sum), tb = list(DT_F32, 2, b);
    Tensor  ta = {.dtype = DT_F32, .data = a}, ts = {.dtype = DT_F32, .data = s};
    Tensor  tz = {.dtype = DT_U8, .data = z}, ty = tsum;
    ty.dtype = DT_U8;
    ty.data = y;
    ref_requantize(&tsum, &ta, &tb, &ts, &tz, &ty);
    assert_true(y[0] == 5);    // 2.5 to even, plus 3
    assert_true(y[1] == 0);    // -5 + 3
    assert_true(y[2] == 253);  // 250 + 3
    assert_true(y[3] == 6);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_half_to_even),
        cmocka_unit_test(per_axis),
        cmocka_unit_test(blocks),
        cmocka_unit_test(long_rows),
        cmocka_unit_test(dynamic_range),
        cmocka_unit_test(requantize),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
