// Rounding of floats to 16 and 8 bits: every number against the definition, in double; the error
// against the numbers; blocks of zeros, of the least floats, and sizes that do not fill the last.
#include "kernel/narrow_rounding.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fp.h"
#include "base/rng.h"
#include "tests/kernel/arrays.h"
#include "tests/runner.h"

static void blocks_are_equal_and_whole_words(void **state) {
    (void)state;
    for (uint32_t k = 1; k < 2000; k++) {
        uint32_t b = narrow_block_size(k), blocks = ceil_div(k, b);
        assert_true(b % 4 == 0 && b >= 4 && b <= 128);
        assert_true(blocks == ceil_div(k, 128) && b * blocks < k + 4 * blocks);
    }
}

static GemmShape shape_of(uint32_t n, uint32_t k, GemmWeights kind) {
    GemmShape s = gemm_shape(1, n, k);
    s.weights = kind;
    s.block = kind == GEMM_U8 ? narrow_block_size(k) : 0;
    return s;
}

static size_t index_of(const GemmShape *s, const FloatWeights *w, uint32_t j, uint32_t i) {
    return w->transposed ? (size_t)j * s->k + i : (size_t)i * s->n + j;
}

static double block_most(const GemmShape *s, const FloatWeights *w, uint32_t j, uint32_t i) {
    double most = 0;
    for (uint32_t at = i / s->block * s->block; at < s->k && at / s->block == i / s->block; at++)
        most = fmax(most, fabs((double)(w->at[index_of(s, w, j, at)] * w->alpha)));
    return most;
}

static double check_byte(const GemmShape *s, const FloatWeights *w, const RoundedWeights *r,
                         uint32_t j, uint32_t i) {
    double x = (double)(w->at[index_of(s, w, j, i)] * w->alpha), most = block_most(s, w, j, i);
    double scale = (double)r->scales[(size_t)j * narrow_blocks(s) + i / s->block];
    int    q = r->bytes[(size_t)j * narrow_depth(s) + i] - 128;
    assert_true(fabs(scale - most / 127) <= 1e-6 * most + 1e-44);
    assert_true(q >= -127 && q <= 127);
    if (most > FLT_MIN * 1000) assert_true(fabs(q * scale - x) <= 0.5001 * scale);
    return q * scale - x;
}

static double check_half(const GemmShape *s, const FloatWeights *w, const RoundedWeights *r,
                         uint32_t j, uint32_t i) {
    size_t at = index_of(s, w, j, i);
    float  x = w->at[at] * w->alpha;
    assert_int_equal(r->half[at], half_from_f32(x));
    return (double)half_to_f32(r->half[at]) - (double)x;
}

static void check_all(const GemmShape *s, const FloatWeights *w, Arena *a) {
    RoundedWeights r = narrow_round(s, w, a);
    double         most = 0, off = 0, sum = 0, sum_off = 0;
    for (uint32_t j = 0; j < s->n; j++)
        for (uint32_t i = 0; i < s->k; i++) {
            double x = (double)(w->at[index_of(s, w, j, i)] * w->alpha);
            double d =
                s->weights == GEMM_U8 ? check_byte(s, w, &r, j, i) : check_half(s, w, &r, j, i);
            most = fmax(most, fabs(x));
            off = fmax(off, fabs(d));
            sum += x * x;
            sum_off += d * d;
        }
    for (uint32_t j = 0; s->weights == GEMM_U8 && j < s->n; j++)
        for (size_t i = s->k; i < narrow_depth(s); i++)
            assert_int_equal(r.bytes[j * narrow_depth(s) + i], 128);
    NarrowError e = narrow_error(s, w, &r);
    assert_true(fabs(e.max * most - off) <= 1e-9 * most);
    assert_true(fabs(e.rms * sqrt(sum) - sqrt(sum_off)) <= 1e-9 * sqrt(sum));
    assert_true(narrow_largest(w, (size_t)s->n * s->k) == (float)most);
}

static void numbers_are_rounded_to_nearest(void **state) {
    (void)state;
    static const uint32_t sizes[][2] = {{1, 1}, {3, 5}, {17, 130}, {33, 257}, {8, 128}};
    Rng                   rng = {5};
    for (size_t i = 0; i < COUNT(sizes) * 8; i++) {
        const uint32_t *size = sizes[i / 8];
        size_t          count = (size_t)size[0] * size[1];
        Arena           a;
        float          *x = exact_bytes(count * sizeof *x);
        for (size_t k = 0; k < count; k++)
            x[k] = (2 * rng_unit(&rng) - 1) * ldexpf(1, (int)rng_below(&rng, 12) - 8);
        FloatWeights w = {x, i % 2 == 0, i % 4 < 2 ? 1 : -0.3f};
        GemmShape    s = shape_of(size[0], size[1], i % 8 < 4 ? GEMM_U8 : GEMM_F16);
        assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
        check_all(&s, &w, &a);
        arena_finish(&a);
        free(x);
    }
}

static void zeros_and_least_numbers(void **state) {
    (void)state;
    float        x[300] = {0};
    Arena        a;
    GemmShape    s = shape_of(1, COUNT(x), GEMM_U8);
    FloatWeights w = {x, true, 1};
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    x[110] = FLT_TRUE_MIN;  // of the second block; the first one stays zero
    x[299] = -FLT_MAX;
    RoundedWeights r = narrow_round(&s, &w, &a);
    assert_int_equal(r.bytes[0], 128);
    assert_int_equal(r.bytes[299], 1);
    NarrowError e = narrow_error(&s, &w, &r);
    assert_true(e.max < 1e-6 && e.rms < 1e-6);
    memset(x, 0, sizeof x);
    r = narrow_round(&s, &w, &a);
    e = narrow_error(&s, &w, &r);
    assert_true(e.max == 0 && e.rms == 0);
    arena_finish(&a);
}

static void largest_finds_what_is_not_finite(void **state) {
    (void)state;
    float        x[] = {1, -3, 2};
    FloatWeights w = {x, false, 2};
    assert_true(narrow_largest(&w, 3) == 6);
    x[1] = NAN;
    assert_true(isnan(narrow_largest(&w, 3)));
    x[1] = -FLT_MAX;
    assert_true(isinf(narrow_largest(&w, 3)));
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_equal_and_whole_words),
        cmocka_unit_test(numbers_are_rounded_to_nearest),
        cmocka_unit_test(zeros_and_least_numbers),
        cmocka_unit_test(largest_finds_what_is_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
