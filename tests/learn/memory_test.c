// An LSTM learns to remember the mark of the first step for two steps.
#include "tests/learn/gradient.h"

#include "learn/activation.h"
#include "learn/adam.h"
#include "learn/dense.h"
#include "learn/lstm.h"
#include "tests/runner.h"

enum { SEQS = 32, STEPS = 3, IN = 2, HIDDEN = 8, ROUNDS = 400 };

static const Lstm  lstm = {IN, HIDDEN, false};
static const Dense dense = {HIDDEN, 1};

typedef struct Net {
    Arena    arena;
    FloatVec w, g, m, v;
    Ragged   r;
    float   *x, *h, *dh, *cache, answer[SEQS];
} Net;

static void net_init(Net *n, Rng *rng) {
    uint32_t len[SEQS];
    Arena   *a = &n->arena;
    assert_int_equal(arena_init(a, (size_t)1 << 20), ERR_OK);
    size_t size = lstm_params(lstm) + dense_params(dense);
    n->w = float_vec_new(a, size);
    n->g = float_vec_new(a, size);
    n->m = float_vec_new(a, size);
    n->v = float_vec_new(a, size);
    lstm_init(lstm, n->w.at, rng);
    dense_init(dense, n->w.at + lstm_params(lstm), 1, rng);
    n->r = (Ragged){.start = arena_new(a, uint32_t, STEPS + 1),
                    .rank = arena_new(a, uint32_t, SEQS),
                    .len = arena_new(a, uint32_t, SEQS)};
    for (uint32_t i = 0; i < SEQS; i++) len[i] = STEPS;
    ragged_make(&n->r, len, SEQS);
    n->x = arena_new(a, float, SEQS *STEPS *IN);
    n->h = arena_new(a, float, SEQS *STEPS *HIDDEN);
    n->dh = arena_new(a, float, SEQS *STEPS *HIDDEN);
    n->cache = arena_new(a, float, lstm_cache_size(lstm, SEQS * STEPS, SEQS));
}

// The mark is visible in the first step only; other steps are flagged noise.
static void draw(Net *n, Rng *rng) {
    for (uint32_t i = 0; i < SEQS; i++)
        for (uint32_t t = 0; t < STEPS; t++) {
            float *x = n->x + ragged_row(&n->r, i, t) * IN;
            x[0] = 2 * rng_unit(rng) - 1;
            x[1] = t == 0 ? 1 : 0;
            if (t == 0) n->answer[n->r.rank[i]] = x[0] > 0 ? 1 : -1;
        }
}

static uint32_t forward(Net *n, float *y) {
    uint32_t right = 0;
    size_t   last = n->r.start[STEPS - 1];
    lstm_forward(lstm, n->w.at, &n->r, mat(n->x, IN), NULL, mat_out(n->h, HIDDEN), NULL, n->cache);
    dense_forward(dense, n->w.at + lstm_params(lstm), SEQS, mat(n->h + last * HIDDEN, HIDDEN),
                  mat_out(y, 1));
    activation_forward(ACTIVATION_TANH, SEQS, y, y);
    for (uint32_t i = 0; i < SEQS; i++) right += y[i] * n->answer[i] > 0;
    return right;
}

static void backward(Net *n, const float *y, uint64_t round) {
    float       dy[SEQS];
    size_t      last = n->r.start[STEPS - 1], at = lstm_params(lstm);
    AdamOptions adam = adam_defaults(0.02f);
    for (uint32_t i = 0; i < SEQS; i++) dy[i] = (y[i] - n->answer[i]) / SEQS;
    activation_backward(ACTIVATION_TANH, SEQS, y, dy, dy);
    float_vec_zero(n->g);
    memset(n->dh, 0, sizeof(float) * SEQS * STEPS * HIDDEN);
    dense_backward(dense, n->w.at + at, n->g.at + at, SEQS, mat(n->h + last * HIDDEN, HIDDEN),
                   mat(dy, 1), mat_out(n->dh + last * HIDDEN, HIDDEN));
    lstm_backward(lstm, n->w.at, n->g.at, &n->r, mat(n->x, IN), NULL, mat(n->dh, HIDDEN), NULL,
                  mat_out(NULL, 0), NULL, n->cache);
    float_vec_clip(n->g, 1);
    adam_step(&adam, round, n->w, n->g, n->m, n->v);
}

static void test_remembers(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        Net      n;
        Rng      rng = {seed};
        float    y[SEQS];
        uint32_t before = 0, after = 0;
        net_init(&n, &rng);
        for (uint32_t i = 0; i < 20; i++) {
            draw(&n, &rng);
            before += forward(&n, y);
        }
        for (uint64_t i = 1; i <= ROUNDS; i++) {
            draw(&n, &rng);
            forward(&n, y);
            backward(&n, y, i);
        }
        for (uint32_t i = 0; i < 20; i++) {
            draw(&n, &rng);
            after += forward(&n, y);
        }
        assert_true(before < 20 * SEQS * 8 / 10);
        assert_true(after > 20 * SEQS * 95 / 100);
        arena_finish(&n.arena);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_remembers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
