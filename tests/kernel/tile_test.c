// Register tiles against scalar sums: every size, depths with remainders, bias, add and clip.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/rng.h"
#include "kernel/tile.h"
#include "tests/kernel/isas.h"
#include "tests/runner.h"

enum { TERM_STEP = 40, MAX_LANES = 16 };

typedef struct Case {
    uint32_t n_terms, depth;
    bool     terms, bias, add, accumulate, last, clip;
    uint32_t n_tails, tail_depth;
} Case;

static const Case cases[] = {
    {1, 1, false, false, false, false, false, false, 0, 0},
    {1, 4, false, true, false, false, true, false, 0, 0},
    {1, 37, false, true, true, false, true, true, 0, 0},
    {3, 8, true, false, true, true, true, true, 0, 0},
    {2, 27, true, true, true, true, false, true, 3, 5},
    {5, 3, true, true, false, false, true, true, 1, 6},
    {0, 8, true, true, true, false, true, true, 0, 0},
    {0, 0, true, true, true, false, true, true, 2, 7},
};

static size_t total_depth(const Case *c) {
    return c->n_terms * c->depth + c->n_tails * c->tail_depth;
}

// Exactly sized buffers, so that the sanitizer catches an access past the end.
typedef struct Buffers {
    float       *x, *w, *bias, *add, *out, *want;
    const float *rows[TILE_MAX_ROWS];
    int32_t      terms[8];
    size_t       row_stride, vec_stride, n_out;
} Buffers;

static float *numbers(Rng *r, size_t n) {
    float *x = malloc(n * sizeof *x + (n == 0));
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) x[i] = rng_unit(r) - 0.5F;
    return x;
}

static Buffers buffers_new(const Case *c, uint32_t lanes, uint32_t rows, uint32_t vecs, Rng *r) {
    size_t  terms = c->n_terms + c->n_tails, n_x = c->terms ? terms * TERM_STEP : c->depth;
    Buffers b = {.row_stride = lanes + 3, .vec_stride = rows * (lanes + 3) + 1};
    b.n_out = (rows - 1) * b.row_stride + (vecs - 1) * b.vec_stride + lanes;
    b.x = numbers(r, rows * n_x);
    b.w = numbers(r, vecs * total_depth(c) * lanes);
    b.bias = numbers(r, (size_t)vecs * lanes);
    b.add = numbers(r, b.n_out);
    b.out = numbers(r, b.n_out);
    b.want = malloc(b.n_out * sizeof(float));
    assert_non_null(b.want);
    for (uint32_t i = 0; i < rows; i++) b.rows[i] = b.x + (rows - 1 - i) * n_x;
    for (uint32_t i = 0; i < terms; i++) b.terms[i] = (int32_t)((i * 2 + 1) % terms * TERM_STEP);
    return b;
}

static void buffers_free(Buffers *b) {
    float *all[] = {b->x, b->w, b->bias, b->add, b->out, b->want};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static double wanted(const Tile *t, uint32_t r, uint32_t v, uint32_t lane, uint32_t lanes) {
    size_t       at = r * t->row_stride + v * t->vec_stride + lane;
    double       sum = t->accumulate     ? (double)t->out[at]
                       : t->bias != NULL ? (double)t->bias[v * lanes + lane]
                                         : 0;
    const float *w = t->weights + v * t->weight_stride + lane;
    for (uint32_t i = 0; i < t->n_terms + t->n_tails; i++) {
        const float *x = t->rows[r] + (t->terms != NULL ? t->terms[i] : 0);
        uint32_t     depth = i < t->n_terms ? t->depth : t->tail_depth;
        for (uint32_t k = 0; k < depth; k++, w += lanes) sum += (double)x[k] * (double)*w;
    }
    if (!t->last) return sum;
    if (t->add != NULL) sum += (double)t->add[at];
    return fmin(fmax(sum, (double)t->lo), (double)t->hi);
}

static void check_tile(const Isa *isa, const Case *c, uint32_t rows, uint32_t vecs, Rng *r) {
    uint32_t lanes = isa->lanes;
    Buffers  b = buffers_new(c, lanes, rows, vecs, r);
    Tile     t = {.rows = b.rows,
                  .terms = c->terms ? b.terms : NULL,
                  .n_terms = c->n_terms,
                  .depth = c->depth,
                  .n_tails = c->n_tails,
                  .tail_depth = c->tail_depth,
                  .weights = b.w,
                  .weight_stride = total_depth(c) * lanes,
                  .out = b.out,
                  .row_stride = b.row_stride,
                  .vec_stride = b.vec_stride,
                  .bias = c->bias ? b.bias : NULL,
                  .add = c->add ? b.add : NULL,
                  .lo = c->clip ? -0.25F : -INFINITY,
                  .hi = c->clip ? 0.5F : INFINITY,
                  .accumulate = c->accumulate,
                  .last = c->last};
    for (size_t i = 0; i < b.n_out; i++) b.want[i] = b.out[i];
    for (uint32_t i = 0; i < rows * vecs * lanes; i++) {
        uint32_t row = i / (vecs * lanes), v = i / lanes % vecs, lane = i % lanes;
        b.want[row * b.row_stride + v * b.vec_stride + lane] =
            (float)wanted(&t, row, v, lane, lanes);
    }
    isa->tile(&t, rows, vecs);
    for (size_t i = 0; i < b.n_out; i++)
        if (!(fabsf(b.out[i] - b.want[i]) < 1e-5F))
            fail_msg("%s %ux%u depth %ux%u: number %zu is %g, not %g", isa->name, rows, vecs,
                     c->n_terms, c->depth, i, (double)b.out[i], (double)b.want[i]);
    buffers_free(&b);
}

static void test_sizes(void **state) {
    (void)state;
    const Isa *isas[3];
    Rng        r = {1};
    size_t     n = isas_here(isas);
    for (size_t i = 0; i < n; i++)
        for (uint32_t vecs = 1; vecs <= TILE_MAX_VECS; vecs++)
            for (uint32_t rows = 1; rows <= tile_most_rows(isas[i]->registers, vecs); rows++)
                for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
                    check_tile(isas[i], &cases[c], rows, vecs, &r);
}

// The clip propagates NaN.
static void test_nan(void **state) {
    (void)state;
    const Isa   *isas[3];
    size_t       n = isas_here(isas);
    float        x = NAN, w[MAX_LANES] = {1}, out[MAX_LANES];
    const float *rows[] = {&x};
    for (size_t i = 0; i < n; i++) {
        Tile t = {
            .rows = rows, .n_terms = 1, .depth = 1, .weights = w, .out = out, .hi = 6, .last = 1};
        isas[i]->tile(&t, 1, 1);
        assert_true(isnan(out[0]));
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes), cmocka_unit_test(test_nan)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
