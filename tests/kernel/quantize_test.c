// Quantisation kernels against the reference, bit for bit.
#include "kernel/int8_conv.h"
#include "kernel/quantize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernel/arrays.h"
#include "base/rng.h"
#include "kernel/ref/ref_cast.h"
#include "tests/kernel/isas.h"
#include "tests/runner.h"

enum { MOST = 20000 };

static const size_t sizes[] = {1, 7, 8, 31, 1000, MOST};

static void fill(Rng *r, float *x, size_t n) {
    for (size_t i = 0; i < n; i++) x[i] = ((float)rng_below(r, 100001) - 40000) / 7000;
    if (n > 4) x[1] = 1e30f, x[2] = -1e30f, x[3] = INFINITY;
    for (size_t i = 5; i < n; i += 9) x[i] = ((float)rng_below(r, 200) - 90 + 0.5f) * 0.05f;
}

static Tensor vector(DType t, size_t n, void *data) {
    return (Tensor){.dtype = t, .rank = 1, .dims = {(int64_t)n}, .data = data};
}

static void expect_quantize(const Isa *isa, const float *x, size_t n, const ByteScale *to) {
    uint8_t *want = malloc(n), *got = malloc(n), *twice = malloc(n);
    float   *back = malloc(n * sizeof *back), *real = malloc(n * sizeof *real);
    float    scale = to->scale;
    int8_t   zero = (int8_t)to->zero;
    DType    t = to->is_signed ? DT_I8 : DT_U8;
    Tensor   tx = vector(DT_F32, n, (void *)(uintptr_t)x), ty = vector(t, n, want);
    Tensor   ts = {.dtype = DT_F32, .data = &scale}, tz = {.dtype = t, .data = &zero};
    Tensor   tb = vector(DT_F32, n, real);
    RefQuant p = {.outer = 1, .axis = 1, .inner = (int64_t)n, .scale = &ts, .zero = &tz};
    ref_quantize(&p, &tx, &ty);
    ref_dequantize(&p, &ty, &tb);
    for (uint32_t i = 0; i < 3; i++) {
        Quantize   q = {.x = x, .y = got, .count = n, .to = *to};
        Dequantize d = {.x = want, .y = back, .count = n, .from = *to};
        isa->quantize(&q, (Part){i, 3, NULL});
        isa->dequantize(&d, (Part){i, 3, NULL});
    }
    assert_memory_equal(got, want, n);
    assert_memory_equal(back, real, n * sizeof *back);
    ElementwiseProgram sum = {.n_steps = 1, .n_args = 3};
    sum.steps[0] = (ElementwiseStep){.op = EWISE_ADD, .a = EWISE_ARG, .b = EWISE_ARG + 1};
    ByteElementwise e = {.program = &sum, .y = twice, .to = *to, .count = n};
    e.in[0].at = want, e.in[0].from = *to;
    e.in[1].at = x, e.in[1].kind = BYTE_ARG_FLOATS;
    e.in[2].at = &scale, e.in[2].kind = BYTE_ARG_SCALAR;
    e.floats = back;
    for (uint32_t i = 0; i < 2; i++) isa->byte_elementwise(&e, (Part){i, 2, NULL});
    for (size_t i = 0; i < n; i++) real[i] += x[i];
    ref_quantize(&p, &tb, &ty);
    assert_memory_equal(back, real, n * sizeof *back);
    assert_memory_equal(twice, want, n);
    free(want), free(got), free(twice), free(back), free(real);
}

static void bytes_equal_the_reference(void **state) {
    (void)state;
    static const ByteScale scales[] = {{0.05f, 0, false}, {0.05f, 131, false}, {0.013f, -5, true}};
    static float           x[MOST];
    const Isa             *isas[3];
    size_t                 n = isas_here(isas);
    Rng                    r = {3};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        fill(&r, x, sizes[i]);
        for (size_t k = 0; k < n; k++)
            for (size_t s = 0; s < sizeof scales / sizeof *scales; s++)
                expect_quantize(isas[k], x, sizes[i], &scales[s]);
    }
}

// The sum of two byte arrays has its own loop: equal to the general one, with and without a clip.
static void sums_equal_expressions(void **state) {
    (void)state;
    enum { COUNT = 70001 };
    static uint8_t a[COUNT], b[COUNT], got[COUNT], want[COUNT];
    static float   floats[COUNT];
    const Isa     *isas[3];
    size_t         n = isas_here(isas);
    Rng            r = {12};
    // scales of which many quotients are halves, of any size, and such that have no inverse
    static const ByteScale cases[][3] = {
        {{0.0231f, -11, true}, {0.0317f, 97, false}, {0.0437f, 60, false}},
        {{0.0231f, 11, false}, {0.0317f, 97, false}, {0.0437f, -60, true}},
        {{0.5f, 0, true}, {1.5f, 3, true}, {2, 128, false}},
        {{0.1f, 7, false}, {0.3f, -9, true}, {0.2f, 0, false}},
        {{1e-30f, 7, false}, {3e-30f, 9, false}, {1e-39f, 5, false}},
        {{1e38f, 7, false}, {3e38f, 9, false}, {1e37f, 5, true}},
    };
    for (size_t i = 0; i < COUNT; i++)
        a[i] = (uint8_t)rng_below(&r, 256), b[i] = (uint8_t)rng_below(&r, 256);
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
            const ByteScale   *c = cases[i / 2];
            ElementwiseProgram sum = {.n_steps = i % 2 + 1, .n_args = 2};
            sum.steps[0] = (ElementwiseStep){.op = EWISE_ADD, .a = EWISE_ARG, .b = EWISE_ARG + 1};
            sum.steps[1] = (ElementwiseStep){.op = EWISE_CLIP, .p = 0, .q = 6};
            ByteElementwise e = {.program = &sum, .y = want, .count = COUNT, .floats = floats};
            e.to = c[2];
            e.in[0].at = a, e.in[0].from = c[0];
            e.in[1].at = b, e.in[1].from = c[1];
            isas[k]->byte_elementwise(&e, (Part){0, 1, NULL});
            e.y = got;
            e.floats = NULL;
            for (uint32_t p = 0; p < 2; p++) isas[k]->byte_elementwise(&e, (Part){p, 2, NULL});
            assert_memory_equal(got, want, COUNT);
        }
}

static void range_equals_the_reference(void **state) {
    (void)state;
    static float   x[MOST];
    static uint8_t y[MOST];
    const Isa     *isas[3];
    size_t         n = isas_here(isas);
    Rng            r = {4};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int sign = -1; sign <= 2; sign++) {
            float   scale;
            uint8_t zero;
            fill(&r, x, sizes[i]);
            for (size_t j = 0; j < sizes[i]; j++)
                x[j] = sign == 2   ? 0
                       : sign == 0 ? fmodf(x[j], 9)
                                   : (float)sign * fabsf(fmodf(x[j], 9));
            for (size_t j = 0; j < sizes[i]; j++)
                if (isnan(x[j])) x[j] = 1;
            Tensor tx = vector(DT_F32, sizes[i], x), ty = vector(DT_U8, sizes[i], y);
            ref_quantize_dynamic(&tx, &ty, &scale, &zero);
            for (size_t k = 0; k < n; k++) {
                ByteScale got;
                isas[k]->byte_range(x, sizes[i], &got);
                assert_true(got.scale == scale);
                assert_int_equal(got.zero, zero);
            }
        }
}

static void pixels_hold_the_same_bytes(void **state) {
    (void)state;
    static const uint32_t channels[] = {1, 3, 4, 5, 16, 21};
    const Isa            *isas[3];
    size_t                n = isas_here(isas), pixels = 37;
    Rng                   r = {8};
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        uint32_t c = channels[i], pitch = c <= 4 ? 4 : (c + 7) / 8 * 8;
        size_t   count = 2 * c * pixels;
        float   *x = malloc(count * sizeof *x);
        uint8_t *plain = malloc(count), *packed = malloc(2 * pixels * pitch);
        fill(&r, x, count);
        for (size_t k = 0; k < n; k++) {
            Quantize q = {.x = x, .y = plain, .count = count, .to = {0.05f, 100, false}};
            isas[k]->quantize(&q, (Part){0, 1, NULL});
            q = (Quantize){x, packed, count, q.to, 2, c, pitch, pixels, false};
            for (uint32_t p = 0; p < 2; p++) isas[k]->quantize(&q, (Part){p, 2, NULL});
            for (size_t j = 0; j < count; j++) {
                size_t image = j / pixels / c, channel = j / pixels % c;
                assert_int_equal(packed[(image * pixels + j % pixels) * pitch + channel], plain[j]);
            }
        }
        free(x), free(plain), free(packed);
    }
}

// [n][blocks][pixels][lanes]; lanes beyond the last channel are NaN.
static float *blocked(const float *x, size_t n, size_t channels, size_t pixels, size_t lanes) {
    size_t blocks = (channels + lanes - 1) / lanes, count = n * blocks * pixels * lanes;
    float *out = malloc(count * sizeof *out);
    for (size_t i = 0; i < count; i++) {
        size_t c = i / lanes / pixels % blocks * lanes + i % lanes, p = i / lanes % pixels;
        size_t image = i / lanes / pixels / blocks;
        out[i] = c < channels ? x[(image * channels + c) * pixels + p] : NAN;
    }
    return out;
}

static void check_blocks(const Isa *isa, const float *x, uint32_t c, size_t pixels) {
    uint32_t pitch = int8_pitch(c, isa->lanes);
    size_t   blocks = (c + isa->lanes - 1) / isa->lanes, count = 2 * c * pixels;
    size_t   room = 2 * blocks * pixels * isa->lanes;
    float   *from = blocked(x, 2, c, pixels, isa->lanes), *back = malloc(room * sizeof *back);
    uint8_t *plain = malloc(count), *packed = calloc(2 * pixels, pitch);
    Quantize q = {.x = x, .y = plain, .count = count, .to = {0.05f, 100, false}};
    isa->quantize(&q, (Part){0, 1, NULL});
    q = (Quantize){from, packed, count, q.to, 2, c, pitch, pixels, true};
    for (uint32_t p = 0; p < 3; p++) isa->quantize(&q, (Part){p, 3, NULL});
    Dequantize d = {packed, back, count, q.to, 2, pitch, pixels};
    for (uint32_t p = 0; p < 3 && pitch > INT8_QUAD; p++) isa->dequantize(&d, (Part){p, 3, NULL});
    for (size_t j = 0; j < count; j++) {
        size_t image = j / pixels / c, channel = j / pixels % c, pixel = j % pixels;
        size_t at = ((image * blocks + channel / isa->lanes) * pixels + pixel) * isa->lanes;
        float  want = ((float)plain[j] - 100) * 0.05f;
        assert_int_equal(packed[(image * pixels + pixel) * pitch + channel], plain[j]);
        if (pitch > INT8_QUAD) assert_true(back[at + channel % isa->lanes] == want);
    }
    free(from), free(back), free(plain), free(packed);
}

static void blocks_hold_the_same_bytes(void **state) {
    (void)state;
    static const uint32_t channels[] = {1, 4, 5, 16, 21, 64};
    const Isa            *isas[3];
    size_t                n = isas_here(isas), pixels = 301;
    Rng                   r = {9};
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        size_t count = 2 * channels[i] * pixels;
        float *x = malloc(count * sizeof *x);
        fill(&r, x, count);
        for (size_t k = 0; k < n; k++) check_blocks(isas[k], x, channels[i], pixels);
        free(x);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_equal_the_reference),  cmocka_unit_test(sums_equal_expressions),
        cmocka_unit_test(range_equals_the_reference), cmocka_unit_test(pixels_hold_the_same_bytes),
        cmocka_unit_test(blocks_hold_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
