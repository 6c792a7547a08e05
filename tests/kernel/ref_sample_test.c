// Sampling by hand: padding, grids, regions, extreme coordinates; deformable convolution; einsum.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "kernel/ref/ref_conv.h"
#include "kernel/ref/ref_matmul.h"
#include "kernel/ref/ref_sample.h"
#include "tests/runner.h"

static float ramp[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static Tensor image(int64_t h, int64_t w, float *v) {
    return tensor_of(DT_F32, 4, (int64_t[]){1, 1, h, w}, v);
}

static float sample(RefGridSample p, float x, float y) {
    float  grid[2] = {x, y}, out = -1;
    Tensor tx = image(4, 4, ramp), ty = image(1, 1, &out);
    Tensor tg = tensor_of(DT_F32, 4, (int64_t[]){1, 1, 1, 2}, grid);
    ref_grid_sample(&p, &tx, &tg, &ty);
    return out;
}

static void grid_modes(void **state) {
    (void)state;
    RefGridSample p = {.mode = REF_SAMPLE_LINEAR};
    assert_true(sample(p, 0, 0) == 7.5F);
    assert_true(sample(p, -1, -1) == 0);  // a quarter of pixel 0
    p.align_corners = true;
    assert_true(sample(p, 1, -1) == 3 && sample(p, -1, 1) == 12);
    p.mode = REF_SAMPLE_NEAREST;
    assert_true(sample(p, 0, 0) == 10);  // 1.5 to the even 2, both ways
    p.mode = REF_SAMPLE_CUBIC;
    assert_true(fabs((double)sample(p, 0, 0) - 7.5) < 1e-6);
}

static void grid_padding(void **state) {
    (void)state;
    RefGridSample p = {.mode = REF_SAMPLE_NEAREST, .padding = REF_SAMPLE_ZEROS};
    assert_true(sample(p, -3, 0.25F) == 0);
    p.padding = REF_SAMPLE_BORDER;
    assert_true(sample(p, -3, 0.25F) == 8);
    p.padding = REF_SAMPLE_REFLECTION;  // x -3 is pixel -4.5, rounded to -4, mirrored to 3
    assert_true(sample(p, -3, 0.25F) == 11);
    p.mode = REF_SAMPLE_LINEAR;
    p.align_corners = true;  // pixel -1.5 mirrored at 0
    assert_true(sample(p, -2, -1) == 1.5F);
}

static void grid_wild(void **state) {
    (void)state;
    static const float wild[] = {NAN, INFINITY, -INFINITY, 1e30F, -1e30F, 3e38F};
    for (int mode = 0; mode < 3; mode++)
        for (int padding = 0; padding < 3; padding++)
            for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
                RefGridSample p = {(RefSampleMode)mode, (RefSamplePadding)padding, i % 2 == 0};
                float         v = sample(p, wild[i], 0.1F);
                if (padding == REF_SAMPLE_ZEROS) assert_true(v == 0);
                assert_true(v >= -3 && v <= 18);
            }
}

static void affine(void **state) {
    (void)state;
    float  theta[6] = {1, 0, 0.5F, 0, -1, 0}, y[12];  // moved right, flipped
    Tensor tt = tensor_of(DT_F32, 3, (int64_t[]){1, 2, 3}, theta);
    Tensor ty = tensor_of(DT_F32, 4, (int64_t[]){1, 2, 3, 2}, y);
    ref_affine_grid(true, &tt, &ty);
    assert_true(y[0] == -0.5F && y[1] == 1 && y[10] == 1.5F && y[11] == -1);
    ref_affine_grid(false, &tt, &ty);
    assert_true(fabs((double)y[0] - (-2.0 / 3 + 0.5)) < 1e-6 && y[1] == 0.5F);
}

static void regions(void **state) {
    (void)state;
    float       box[4] = {0, 0, 4, 4}, out[4];
    int64_t     which = 0;
    Tensor      tx = image(4, 4, ramp), ty = image(2, 2, out);
    Tensor      tb = tensor_of(DT_F32, 2, (int64_t[]){1, 4}, box);
    Tensor      ti = tensor_of(DT_I64, 1, (int64_t[]){1}, &which);
    RefRoiAlign p = {.half_pixel = true, .sampling = 2, .scale = 1};
    assert_int_equal(ref_roi_align(&p, &tx, &tb, &ti, &ty), ERR_OK);
    assert_true(out[0] == 2.5F && out[3] == 12.5F);  // means of 2x2 pixels
    p.max = true;
    assert_int_equal(ref_roi_align(&p, &tx, &tb, &ti, &ty), ERR_OK);
    assert_true(out[0] == 5 && out[3] == 15);
    p.sampling = 0;
    static const float wild[] = {NAN, INFINITY, -INFINITY, 1e30F};
    for (size_t i = 0; i < 4; i++) {
        box[2] = wild[i];
        Err e = ref_roi_align(&p, &tx, &tb, &ti, &ty);
        assert_true(e == ERR_INVALID || wild[i] < 0);
    }
    box[2] = 4;
    which = 1;
    assert_int_equal(ref_roi_align(&p, &tx, &tb, &ti, &ty), ERR_INVALID);
    which = -1;
    assert_int_equal(ref_roi_align(&p, &tx, &tb, &ti, &ty), ERR_INVALID);
}

// Without offsets and mask it is a convolution; offsets shift each tap, the mask weights it.
static void deformed(void **state) {
    (void)state;
    Arena         a;
    float         w[4] = {1, 2, 3, 4}, offset[72] = {0}, mask[36], y[9], want[9];
    Tensor        tx = image(4, 4, ramp), tw = image(2, 2, w), ty = image(3, 3, y);
    Tensor        twant = image(3, 3, want);
    Tensor        to = tensor_of(DT_F32, 4, (int64_t[]){1, 8, 3, 3}, offset);
    Tensor        tm = tensor_of(DT_F32, 4, (int64_t[]){1, 4, 3, 3}, mask);
    RefConvDeform p = {
        .conv = {.window = {2, {4, 4}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {0}, {0}}, .group = 1},
        .offset_group = 1,
        .offset = &to};
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    assert_int_equal(ref_conv(&p.conv, &tx, &tw, NULL, &twant, &a), ERR_OK);
    assert_int_equal(ref_conv_deform(&p, &tx, &tw, NULL, &ty, &a), ERR_OK);
    assert_memory_equal(y, want, sizeof y);
    for (int i = 0; i < 36; i++) mask[i] = 0.5F;
    p.mask = &tm;
    offset[0] = 0.5F;  // tap (0, 0) of output (0, 0) half a row down: pixel 0 becomes 2
    assert_int_equal(ref_conv_deform(&p, &tx, &tw, NULL, &ty, &a), ERR_OK);
    assert_true(y[0] == (want[0] + 2) / 2 && y[8] == want[8] / 2);
    offset[0] = NAN;
    offset[9] = -1e30F;
    assert_int_equal(ref_conv_deform(&p, &tx, &tw, NULL, &ty, &a), ERR_OK);
    arena_finish(&a);
}

static void columns_to_image(void **state) {
    (void)state;
    Arena     a;
    float     x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[5];
    Tensor    tx = tensor_of(DT_F32, 3, (int64_t[]){1, 2, 4}, x);
    Tensor    ty = tensor_of(DT_F32, 3, (int64_t[]){1, 1, 5}, y);
    RefWindow w = {1, {5}, {4}, {2}, {1}, {1}, {0}, {0}};
    assert_int_equal(arena_init(&a, 1 << 16), ERR_OK);
    assert_int_equal(ref_col2im(&w, &tx, &ty, &a), ERR_OK);
    assert_true(y[0] == 1 && y[1] == 7 && y[2] == 9 && y[3] == 11 && y[4] == 8);
    arena_finish(&a);
}

static void einsum(void **state) {
    (void)state;
    Arena  a;
    float  x[6] = {1, 2, 3, 4, 5, 6}, v[2] = {10, 1}, y[3];
    int8_t b[2] = {100, 100}, s = 0;
    Tensor tx = tensor_of(DT_F32, 2, (int64_t[]){2, 3}, x),
           tv = tensor_of(DT_F32, 1, (int64_t[]){2}, v);
    Tensor    ty = tensor_of(DT_F32, 1, (int64_t[]){3}, y);
    Tensor    tb = tensor_of(DT_I8, 1, (int64_t[]){2}, b), ts = {.dtype = DT_I8, .data = &s};
    RefEinsum p = {2, 1, 2, {3, 2}, {&tx, &tv}, {{1, 3}, {0, 1}}};  // ij,i->j
    assert_int_equal(arena_init(&a, 1 << 16), ERR_OK);
    assert_int_equal(ref_einsum(&p, &ty, &a), ERR_OK);
    assert_true(y[0] == 14 && y[1] == 25 && y[2] == 36);
    RefEinsum q = {1, 0, 1, {2}, {&tb}, {{1}}};  // i->, which wraps
    assert_int_equal(ref_einsum(&q, &ts, &a), ERR_OK);
    assert_int_equal(s, -56);
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grid_modes), cmocka_unit_test(grid_padding),
        cmocka_unit_test(grid_wild),  cmocka_unit_test(affine),
        cmocka_unit_test(regions),    cmocka_unit_test(deformed),
        cmocka_unit_test(einsum),     cmocka_unit_test(columns_to_image),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
