// Gradients of dense layers, layer norm and attention with masks and partial lengths.
#include "tests/learn/gradient.h"

#include "base/arena.h"
#include "learn/transformer.h"
#include "learn/dense.h"
#include "tests/runner.h"

enum { ROWS = 5 };

typedef struct Case {
    Dense              dense;
    LayerNorm          norm;
    MultiHeadAttention attend;
    AttentionShape     size;
    size_t             rows, n_out;
    float             *w, *gw, *x, *dx, *y, *dy, *out, *pull, *cache;
    bool               own;  // self-attention
} Case;

static double sum_of(const Case *c) {
    double sum = 0;
    for (size_t i = 0; i < c->n_out; i++) sum += (double)c->out[i] * (double)c->pull[i];
    return sum;
}

static void case_init(Case *c, Arena *a, Rng *rng, size_t params, size_t n_x, size_t n_y,
                      size_t n_out, size_t cache) {
    c->w = float_vec_new(a, params).at;
    c->gw = float_vec_new(a, params).at;
    c->x = float_vec_new(a, n_x).at;
    c->dx = float_vec_new(a, n_x).at;
    c->y = float_vec_new(a, n_y).at;
    c->dy = float_vec_new(a, n_y).at;
    c->out = float_vec_new(a, n_out).at;
    c->pull = float_vec_new(a, n_out).at;
    c->cache = float_vec_new(a, cache).at;
    c->n_out = n_out;
    gradient_fill(rng, c->w, params, 0.8f);
    gradient_fill(rng, c->x, n_x, 1);
    gradient_fill(rng, c->y, n_y, 1);
    gradient_fill(rng, c->pull, n_out, 1);
}

static double dense_loss(void *ctx) {
    Case *c = ctx;
    dense_forward(c->dense, c->w, c->rows, mat(c->x, c->dense.in), mat_out(c->out, c->dense.out));
    return sum_of(c);
}

static void test_dense(void **state) {
    (void)state;
    static const Dense dense[] = {{1, 1}, {7, 3}, {16, 33}};
    for (size_t i = 0; i < 3; i++)
        for (size_t rows = 1; rows <= ROWS; rows += 4) {
            Arena a;
            Rng   rng = {i + 1};
            Dense d = dense[i];
            Case  c = {.dense = d, .rows = rows};
            assert_int_equal(arena_init(&a, (size_t)1 << 22), ERR_OK);
            case_init(&c, &a, &rng, dense_params(d), rows * d.in, 0, rows * d.out, 0);
            dense_backward(d, c.w, c.gw, rows, mat(c.x, d.in), mat(c.pull, d.out),
                           mat_out(c.dx, d.in));
            gradient_check("w", dense_loss, &c, c.w, c.gw, dense_params(d), 100, &rng);
            gradient_check("x", dense_loss, &c, c.x, c.dx, rows * d.in, 100, &rng);
            arena_finish(&a);
        }
}

static double norm_loss(void *ctx) {
    Case *c = ctx;
    layer_norm_forward(c->norm, c->w, c->rows, c->x, c->out, c->cache);
    return sum_of(c);
}

static void test_norm(void **state) {
    (void)state;
    for (uint32_t n = 1; n < 40; n += 6) {
        Arena     a;
        Rng       rng = {n};
        LayerNorm l = {n};
        size_t    all = ROWS * (size_t)n;
        Case      c = {.norm = l, .rows = ROWS};
        assert_int_equal(arena_init(&a, (size_t)1 << 22), ERR_OK);
        case_init(&c, &a, &rng, layer_norm_params(l), all, 0, all, layer_norm_cache_size(l, ROWS));
        norm_loss(&c);
        layer_norm_backward(l, c.w, c.gw, ROWS, c.pull, c.dx, c.cache);
        gradient_check("w", norm_loss, &c, c.w, c.gw, layer_norm_params(l), 100, &rng);
        gradient_check("x", norm_loss, &c, c.x, c.dx, all, 100, &rng);
        layer_norm_init(l, c.w);
        norm_loss(&c);
        double mean = 0;
        for (uint32_t i = 0; i < n; i++) mean += (double)c.out[i];
        assert_true(fabs(mean) < 1e-5 * n);
        arena_finish(&a);
    }
}

static double attend_loss(void *ctx) {
    Case *c = ctx;
    mha_forward(c->attend, c->w, &c->size, c->x, c->own ? c->x : c->y, c->out, c->cache);
    return sum_of(c);
}

static void check_attend(MultiHeadAttention t, AttentionShape size, bool own, uint64_t seed) {
    Arena  a;
    Rng    rng = {seed};
    size_t queries = (size_t)size.batch * size.queries * t.width;
    size_t keys = (size_t)size.batch * size.keys * t.width;
    Case   c = {.attend = t, .size = size, .own = own};
    assert_int_equal(arena_init(&a, (size_t)1 << 24), ERR_OK);
    case_init(&c, &a, &rng, mha_params(t), queries, keys, queries, mha_cache_size(t, &size));
    attend_loss(&c);
    mha_backward(t, c.w, c.gw, &size, c.x, own ? c.x : c.y, c.pull, c.dx, own ? c.dx : c.dy,
                 c.cache);
    gradient_check("w", attend_loss, &c, c.w, c.gw, mha_params(t), 200, &rng);
    gradient_check("x", attend_loss, &c, c.x, c.dx, queries, 60, &rng);
    if (!own) gradient_check("y", attend_loss, &c, c.y, c.dy, keys, 60, &rng);
    arena_finish(&a);
}

static void test_attend(void **state) {
    (void)state;
    static const uint32_t len[] = {4, 1, 0};
    static const uint8_t  hide[16] = {0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0};
    for (uint64_t seed = 1; seed < 4; seed++) {
        check_attend((MultiHeadAttention){1, 1},
                     (AttentionShape){.batch = 1, .queries = 1, .keys = 1}, true, seed);
        check_attend((MultiHeadAttention){8, 2},
                     (AttentionShape){.batch = 3, .queries = 4, .keys = 4}, true, seed);
        check_attend((MultiHeadAttention){8, 2},
                     (AttentionShape){.batch = 3, .queries = 4, .keys = 4, .len = len}, true, seed);
        check_attend(
            (MultiHeadAttention){12, 4},
            (AttentionShape){.batch = 3, .queries = 4, .keys = 4, .len = len, .hide = hide}, false,
            seed);
        check_attend((MultiHeadAttention){6, 3},
                     (AttentionShape){.batch = 2, .queries = 5, .keys = 2}, false, seed);
        check_attend((MultiHeadAttention){6, 1},
                     (AttentionShape){.batch = 2, .queries = 1, .keys = 7}, false, seed);
    }
}

// Keys that share a row of y: the same bits as with a copy each.
static void test_shared_rows(void **state) {
    (void)state;
    enum { QUERIES = 9, KEYS = 21, SHARED = 4, WIDTH = 8 };
    static const MultiHeadAttention t = {WIDTH, 2};
    static float                    x[QUERIES * WIDTH], rows[SHARED * WIDTH], y[KEYS * WIDTH];
    static float                    w[4 * WIDTH * (WIDTH + 1)], cache[4096];
    static float                    out[QUERIES * WIDTH], same[QUERIES * WIDTH];
    uint32_t                        row_of[KEYS];
    Rng                             rng = {8};
    AttentionShape                  size = {.batch = 1, .queries = QUERIES, .keys = KEYS};
    MatBackend                      was = mat_set_backend(MAT_REPRODUCIBLE);
    assert_true(mha_params(t) <= sizeof w / sizeof *w);
    assert_true(mha_cache_size(t, &size) <= sizeof cache / sizeof *cache);
    gradient_fill(&rng, x, QUERIES * WIDTH, 1);
    gradient_fill(&rng, rows, SHARED * WIDTH, 1);
    gradient_fill(&rng, w, mha_params(t), 1);
    for (uint32_t j = 0; j < KEYS; j++) {
        row_of[j] = (uint32_t)rng_below(&rng, SHARED);
        memcpy(y + (size_t)j * WIDTH, rows + (size_t)row_of[j] * WIDTH, WIDTH * sizeof *y);
    }
    mha_forward(t, w, &size, x, y, same, cache);
    size.row_of = row_of;
    size.rows = SHARED;
    mha_forward(t, w, &size, x, rows, out, cache);
    assert_memory_equal(out, same, sizeof out);
    mat_set_backend(was);
}

// Masked and absent keys have no influence and zero weight.
static void test_unheard(void **state) {
    (void)state;
    static const uint32_t len[] = {2};
    static const uint8_t  hide[6] = {1, 0, 0, 0, 1, 1};
    MultiHeadAttention    t = {8, 2};
    AttentionShape        size = {.batch = 1, .queries = 2, .keys = 3, .len = len, .hide = hide};
    Arena                 a;
    Rng                   rng = {5};
    Case                  c = {.attend = t, .size = size};
    assert_int_equal(arena_init(&a, (size_t)1 << 20), ERR_OK);
    case_init(&c, &a, &rng, mha_params(t), 16, 24, 16, mha_cache_size(t, &size));
    double before = attend_loss(&c);
    assert_true(mha_weights(t, &size, c.cache, 0, 1, 0)[0] == 0);
    assert_true(mha_weights(t, &size, c.cache, 0, 1, 0)[1] == 1);
    assert_true(mha_weights(t, &size, c.cache, 0, 0, 1)[2] == 0);
    gradient_fill(&rng, c.y + 16, 8, 100);
    assert_true(attend_loss(&c) == before);
    float row[8];
    memcpy(row, c.out, sizeof row);
    gradient_fill(&rng, c.y, 8, 100);  // visible to the second row only
    assert_true(attend_loss(&c) != before);
    assert_memory_equal(row, c.out, sizeof row);
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense), cmocka_unit_test(test_norm), cmocka_unit_test(test_attend),
        cmocka_unit_test(test_shared_rows), cmocka_unit_test(test_unheard)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
