// Gradients of an LSTM over ragged batches, states carried in and out, and both directions.
#include "tests/learn/gradient.h"

#include "base/arena.h"
#include "learn/lstm.h"
#include "tests/runner.h"

enum { SEQS = 5, STEPS = 7 };

typedef struct Case {
    Arena     arena;
    Lstm      l;
    Ragged    r;
    size_t    n_params;
    bool      carried;
    float    *w, *gw, *x, *dx, *h, *pull, *cache, *dh;
    LstmState first, dfirst, last, dlast;
} Case;

static LstmState state_new(Arena *a, size_t n) {
    return (LstmState){arena_new(a, float, n), arena_new(a, float, n)};
}

static void case_init(Case *c, Lstm l, const uint32_t *len, uint32_t n, bool carried, Rng *rng) {
    assert_int_equal(arena_init(&c->arena, (size_t)1 << 24), ERR_OK);
    Arena *a = &c->arena;
    c->l = l;
    c->carried = carried;
    c->r = (Ragged){.start = arena_new(a, uint32_t, STEPS + 1),
                    .rank = arena_new(a, uint32_t, n),
                    .len = arena_new(a, uint32_t, n)};
    ragged_make(&c->r, len, n);
    size_t rows = c->r.n_rows, out = rows * l.hidden, state = (size_t)n * l.hidden;
    c->n_params = lstm_params(l);
    c->w = arena_new(a, float, c->n_params);
    c->gw = arena_new(a, float, c->n_params);
    c->x = arena_new(a, float, rows *l.in);
    c->dx = arena_new(a, float, rows *l.in);
    c->h = arena_new(a, float, out);
    c->pull = arena_new(a, float, out);
    c->cache = arena_new(a, float, lstm_cache_size(l, rows, n));
    c->first = state_new(a, state);
    c->dfirst = state_new(a, state);
    c->last = state_new(a, state);
    c->dlast = state_new(a, state);
    lstm_init(l, c->w, rng);
    gradient_fill(rng, c->w + c->n_params - 4 * (size_t)l.hidden, 4 * (size_t)l.hidden, 1);
    gradient_fill(rng, c->x, rows * l.in, 1);
    gradient_fill(rng, c->pull, out, 1);
    gradient_fill(rng, c->first.h, state, 1);
    gradient_fill(rng, c->first.c, state, 1);
    gradient_fill(rng, c->dlast.h, state, 1);
    gradient_fill(rng, c->dlast.c, state, 1);
}

static void forward(Case *c) {
    lstm_forward(c->l, c->w, &c->r, mat(c->x, c->l.in), c->carried ? &c->first : NULL,
                 mat_out(c->h, c->l.hidden), c->carried ? &c->last : NULL, c->cache);
}

static double loss(void *ctx) {
    Case  *c = ctx;
    double sum = 0;
    forward(c);
    for (size_t i = 0; i < (size_t)c->r.n_rows * c->l.hidden; i++)
        sum += (double)c->h[i] * (double)c->pull[i];
    for (size_t i = 0; c->carried && i < (size_t)c->r.n_seqs * c->l.hidden; i++)
        sum += (double)c->last.h[i] * (double)c->dlast.h[i] +
               (double)c->last.c[i] * (double)c->dlast.c[i];
    return sum;
}

static void check_case(Lstm l, const uint32_t *len, uint32_t n, bool carried, uint64_t seed) {
    Case c = {0};
    Rng  rng = {seed};
    case_init(&c, l, len, n, carried, &rng);
    forward(&c);
    lstm_backward(l, c.w, c.gw, &c.r, mat(c.x, l.in), carried ? &c.first : NULL,
                  mat(c.pull, l.hidden), carried ? &c.dlast : NULL, mat_out(c.dx, l.in), &c.dfirst,
                  c.cache);
    size_t state = (size_t)n * l.hidden;
    gradient_check("w", loss, &c, c.w, c.gw, c.n_params, 150, &rng);
    gradient_check("x", loss, &c, c.x, c.dx, (size_t)c.r.n_rows * l.in, 100, &rng);
    if (carried) {
        gradient_check("first h", loss, &c, c.first.h, c.dfirst.h, state, 40, &rng);
        gradient_check("first c", loss, &c, c.first.c, c.dfirst.c, state, 40, &rng);
    }
    arena_finish(&c.arena);
}

static void test_gradients(void **state) {
    (void)state;
    static const uint32_t lens[][SEQS] = {
        {1}, {7}, {3, 7, 1, 0, 5}, {4, 4, 4, 4, 4}, {1, 1, 1, 1, 1}, {0, 0, 2, 0, 0}};
    static const uint32_t counts[] = {1, 1, 5, 5, 5, 5};
    for (uint32_t i = 0; i < 6; i++)
        for (uint32_t way = 0; way < 2; way++)
            for (uint32_t carried = 0; carried < 2; carried++) {
                check_case((Lstm){3, 5, way}, lens[i], counts[i], carried, 1 + i);
                check_case((Lstm){9, 16, way}, lens[i], counts[i], carried, 100 + i);
            }
}

// A sequence does not depend on the others of its batch; reading in reverse equals reading the
// reversed sequence.
static void test_alone_and_turned(void **state) {
    (void)state;
    static const uint32_t len[SEQS] = {3, 7, 1, 0, 5};
    Case                  all = {0};
    Rng                   rng = {7};
    Lstm                  l = {4, 8, false};
    case_init(&all, l, len, SEQS, true, &rng);
    forward(&all);
    for (uint32_t s = 0; s < SEQS; s++) {
        Case one = {0};
        Rng  other = {8};
        case_init(&one, (Lstm){4, 8, true}, &len[s], 1, true, &other);
        memcpy(one.w, all.w, one.n_params * sizeof(float));
        uint32_t rank = all.r.rank[s];
        memcpy(one.first.h, all.first.h + (size_t)rank * 8, 8 * sizeof(float));
        memcpy(one.first.c, all.first.c + (size_t)rank * 8, 8 * sizeof(float));
        for (uint32_t t = 0; t < len[s]; t++)
            memcpy(one.x + (size_t)(len[s] - 1 - t) * 4, all.x + ragged_row(&all.r, s, t) * 4,
                   4 * sizeof(float));
        forward(&one);
        for (uint32_t t = 0; t < len[s]; t++)
            for (uint32_t k = 0; k < 8; k++)
                assert_float_equal(one.h[(size_t)(len[s] - 1 - t) * 8 + k],
                                   all.h[ragged_row(&all.r, s, t) * 8 + k], 1e-6);
        for (uint32_t k = 0; k < 8; k++)
            assert_float_equal(one.last.c[k], all.last.c[(size_t)rank * 8 + k], 1e-6);
        arena_finish(&one.arena);
    }
    arena_finish(&all.arena);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradients),
                                       cmocka_unit_test(test_alone_and_turned)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
