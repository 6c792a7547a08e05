// Convolutions against their definition, written out as one sum per output.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "base/arena.h"
#include "base/tensor.h"
#include "base/rng.h"
#include "kernel/ref/ref_conv.h"
#include "kernel/ref/ref_int.h"
#include "tests/runner.h"

typedef struct Case {
    int64_t   batch, channels, outputs;
    RefWindow w;
    int64_t   group;
} Case;

// rank, in, out, kernel, stride, dilation, pad: odd sizes, every parameter off its default once.
static const Case cases[] = {
    {1, 3, 5, {2, {7, 9}, {7, 9}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}}, 1},
    {2, 4, 6, {2, {7, 5}, {4, 3}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}}, 2},
    {1, 2, 2, {1, {33}, {19}, {4}, {2}, {3}, {5}, {3}}, 2},
    {1, 1, 3, {2, {3, 40}, {2, 33}, {4, 3}, {2, 1}, {1, 4}, {3, 1}, {0, 0}}, 1},
    {1, 2, 2, {3, {3, 4, 5}, {2, 4, 3}, {2, 3, 1}, {1, 1, 2}, {1, 1, 1}, {0, 1, 0}, {0, 1, 0}}, 1},
};

static Tensor tensor_new(Arena *a, DType t, int64_t batch, int64_t channels, int32_t rank,
                         const int64_t *dims) {
    Tensor x = {.dtype = t, .rank = rank + 2, .dims = {batch, channels}};
    for (int32_t i = 0; i < rank; i++) x.dims[i + 2] = dims[i];
    x.data = arena_alloc(a, (size_t)tensor_count(&x), dtype_size(t), 64);
    return x;
}

static void tensor_random(Tensor *t, Rng *r) {
    for (int64_t i = 0; i < tensor_count(t); i++) tensor_set(t, i, (double)rng_below(r, 100) - 50);
}

// The sum that defines y[n, m, o] of a convolution or a transposed convolution.
static double naive(const Case *c, const Tensor *x, const Tensor *w, double x_zero, double w_zero,
                    int64_t n, int64_t m, const int64_t *o) {
    int64_t each = c->channels / c->group, first = m / (c->outputs / c->group) * each;
    int64_t taps = ref_product(c->w.kernel, c->w.rank);
    double  sum = 0;
    for (int64_t k = 0; k < each; k++) {
        int64_t tap[REF_WINDOW_MAX] = {0}, at_tap = 0;
        do {
            int64_t at = n * c->channels + first + k;
            bool    inside = true;
            for (int32_t d = 0; d < c->w.rank; d++) {
                int64_t i = o[d] * c->w.stride[d] + tap[d] * c->w.dilation[d] - c->w.pad[d];
                inside = inside && i >= 0 && i < c->w.in[d];
                at = at * c->w.in[d] + i;
            }
            double weight = tensor_get_f64(w, (m * each + k) * taps + at_tap++) - w_zero;
            if (inside) sum += (tensor_get_f64(x, at) - x_zero) * weight;
        } while (ref_window_next(c->w.rank, c->w.kernel, tap));
    }
    return sum;
}

static void conv_case(const Case *c, DType t, DType result, double x_zero, const Tensor *w_zero) {
    Arena a, scratch;
    Rng   r = {7};
    assert_int_equal(arena_init(&a, 1 << 24), ERR_OK);
    assert_int_equal(arena_init(&scratch, 1 << 24), ERR_OK);
    Tensor  x = tensor_new(&a, t, c->batch, c->channels, c->w.rank, c->w.in);
    Tensor  w = tensor_new(&a, t, c->outputs, c->channels / c->group, c->w.rank, c->w.kernel);
    Tensor  y = tensor_new(&a, result, c->batch, c->outputs, c->w.rank, c->w.out);
    Tensor  bias = tensor_of(result, 1, &c->outputs, arena_new(&a, double, 16));
    RefConv p = {.window = c->w, .group = c->group, .x_zero = x_zero, .w_zero = w_zero};
    tensor_random(&x, &r);
    tensor_random(&w, &r);
    tensor_random(&bias, &r);
    assert_int_equal(ref_conv(&p, &x, &w, &bias, &y, &scratch), ERR_OK);
    int64_t o[REF_WINDOW_MAX] = {0}, size = ref_product(c->w.out, c->w.rank);
    for (int64_t i = 0; i < tensor_count(&y); i++) {
        int64_t m = i / size % c->outputs;
        double  zero = w_zero != NULL ? tensor_get_f64(w_zero, w_zero->rank == 0 ? 0 : m) : 0;
        double  want = naive(c, &x, &w, x_zero, zero, i / size / c->outputs, m, o);
        assert_true(tensor_get_f64(&y, i) == want + tensor_get_f64(&bias, m));
        (void)ref_window_next(c->w.rank, c->w.out, o);
    }
    arena_finish(&scratch);
    arena_finish(&a);
}

static void conv_types(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        conv_case(&cases[i], DT_F32, DT_F32, 0, NULL);
        conv_case(&cases[i], DT_F64, DT_F64, 0, NULL);
        conv_case(&cases[i], DT_BF16, DT_F32, 0, NULL);
    }
}

static void conv_zero_points(void **state) {
    (void)state;
    int8_t zeros[6] = {3, -2, 0, 1, 7, 9};
    Tensor one = {.dtype = DT_I8, .rank = 0, .data = zeros};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Tensor each = {.dtype = DT_I8, .rank = 1, .dims = {cases[i].outputs}, .data = zeros};
        conv_case(&cases[i], DT_I8, DT_I32, 5, &one);
        conv_case(&cases[i], DT_U8, DT_I32, -4, &each);
    }
}

// A transposed convolution is the adjoint: <y, conv x> == <transposed y, x>.
static void transpose_is_adjoint(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Case *c = &cases[i];
        Arena       a, scratch;
        Rng         r = {9};
        assert_int_equal(arena_init(&a, 1 << 24), ERR_OK);
        assert_int_equal(arena_init(&scratch, 1 << 24), ERR_OK);
        Tensor x = tensor_new(&a, DT_F64, c->batch, c->channels, c->w.rank, c->w.in);
        Tensor w =
            tensor_new(&a, DT_F64, c->outputs, c->channels / c->group, c->w.rank, c->w.kernel);
        Tensor cx = tensor_new(&a, DT_F64, c->batch, c->outputs, c->w.rank, c->w.out);
        Tensor y = cx, ty = x;
        y.data = arena_alloc(&a, (size_t)tensor_count(&y), sizeof(double), 64);
        ty.data = arena_alloc(&a, (size_t)tensor_count(&ty), sizeof(double), 64);
        tensor_random(&x, &r);
        tensor_random(&w, &r);
        tensor_random(&y, &r);
        RefConv p = {.window = c->w, .group = c->group};
        assert_int_equal(ref_conv(&p, &x, &w, NULL, &cx, &scratch), ERR_OK);
        assert_int_equal(ref_conv_transpose(&p, &y, &w, NULL, &ty, &scratch), ERR_OK);
        double left = 0, right = 0;
        for (int64_t k = 0; k < tensor_count(&y); k++)
            left += tensor_get_f64(&y, k) * tensor_get_f64(&cx, k);
        for (int64_t k = 0; k < tensor_count(&x); k++)
            right += tensor_get_f64(&ty, k) * tensor_get_f64(&x, k);
        assert_true(left != 0 && left == right);
        arena_finish(&scratch);
        arena_finish(&a);
    }
}

static void no_room(void **state) {
    (void)state;
    Arena a;
    float x[4] = {0}, w[4] = {0}, y[1] = {0};
    assert_int_equal(arena_init(&a, 64), ERR_OK);
    Tensor  tx = tensor_of(DT_F32, 3, (int64_t[]){1, 1, 4}, x);
    Tensor  tw = tensor_of(DT_F32, 3, (int64_t[]){1, 1, 4}, w);
    Tensor  ty = tensor_of(DT_F32, 3, (int64_t[]){1, 1, 1}, y);
    RefConv p = {.window = {1, {4}, {1}, {4}, {1}, {1}, {0}, {0}}, .group = 1};
    assert_int_equal(ref_conv(&p, &tx, &tw, NULL, &ty, &a), ERR_LIMIT);
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv_types),
        cmocka_unit_test(conv_zero_points),
        cmocka_unit_test(transpose_is_adjoint),
        cmocka_unit_test(no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
