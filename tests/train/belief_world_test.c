// Beliefs by attention: gradients of the whole network and its losses, samples and their labels,
// and that learning on them pays.
#include "tests/learn/gradient.h"

#include "base/arena.h"
#include "learn/adam.h"
#include "train/belief_world.h"
#include "tests/runner.h"

typedef struct Fit {
    BeliefBatch batch;
    FloatVec    w, g;
    float      *kv, *d_kv, *raw, *d_raw, *jobs_cache, *query_cache;
} Fit;

static Fit fit_new(uint64_t seed, Arena *a) {
    Rng rng = {seed};
    Fit f = {.batch = belief_world_sample(rng_fork(rng, 1), NULL, a)};
    f.w = float_vec_new(a, belief_net_params());
    f.g = float_vec_new(a, f.w.n);
    f.kv = float_vec_new(a, (size_t)BELIEF_WORLD_JOBS * BELIEF_KV).at;
    f.d_kv = float_vec_new(a, (size_t)BELIEF_WORLD_JOBS * BELIEF_KV).at;
    f.raw = float_vec_new(a, (size_t)BELIEF_WORLD_QUERIES * BELIEF_OUT).at;
    f.d_raw = float_vec_new(a, (size_t)BELIEF_WORLD_QUERIES * BELIEF_OUT).at;
    f.jobs_cache = float_vec_new(a, belief_jobs_cache(BELIEF_WORLD_JOBS)).at;
    f.query_cache = float_vec_new(a, belief_queries_cache(BELIEF_WORLD_QUERIES)).at;
    belief_net_init(f.w.at, &rng);
    return f;
}

static double fit_loss(void *ctx) {
    Fit *f = ctx;
    belief_net_encode(f->w.at, &f->batch.jobs, f->kv, f->jobs_cache);
    belief_net_query(f->w.at, &f->batch.queries, f->kv, f->raw, f->query_cache);
    BeliefLoss l = belief_loss(&f->batch, f->raw, f->d_raw);
    return l.left + l.speed;
}

static double fit_back(Fit *f) {
    double loss = fit_loss(f);
    float_vec_zero(f->g);
    memset(f->d_kv, 0, (size_t)BELIEF_WORLD_JOBS * BELIEF_KV * sizeof *f->d_kv);
    belief_net_query_back(f->w.at, f->g.at, &f->batch.queries, f->kv, f->d_raw, f->d_kv,
                          f->query_cache);
    belief_net_encode_back(f->w.at, f->g.at, &f->batch.jobs, f->d_kv, f->jobs_cache);
    return loss;
}

static void test_gradient(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < 4; seed++) {
        Arena a;
        Rng   rng = {seed};
        assert_int_equal(arena_init(&a, (size_t)1 << 28), ERR_OK);
        Fit f = fit_new(seed, &a);
        (void)fit_back(&f);
        gradient_check("w", fit_loss, &f, f.w.at, f.g.at, f.w.n, 400, &rng);
        arena_finish(&a);
    }
}

static void test_samples(void **state) {
    (void)state;
    uint32_t queries = 0, running = 0, recorded = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        Arena a;
        assert_int_equal(arena_init(&a, (size_t)1 << 28), ERR_OK);
        BeliefBatch b = belief_world_sample((Rng){seed}, NULL, &a);
        BeliefBatch same = belief_world_sample((Rng){seed}, NULL, &a);
        queries += b.queries.tokens.n;
        for (uint32_t i = 0; i < b.queries.tokens.n; i++) {
            assert_true(b.queries.len[i] <= BELIEF_CONTEXT);
            assert_true(b.log_left[i] == same.log_left[i]);
            assert_true(isfinite(b.log_left[i]) && b.log_left[i] >= 0);
            for (uint32_t l = 0; l < BELIEF_SPEEDS; l++) assert_true(isfinite(b.speeds[i][l]));
            running += b.queries.tokens.features[(size_t)i * BELIEF_QUERY + 1] == 0;
            recorded += b.queries.tokens.n_records[i] > 0;
        }
        arena_finish(&a);
    }
    assert_true(queries > 200 && running > queries / 5 && recorded > 20);
}

static void test_learns(void **state) {
    (void)state;
    Arena a;
    assert_int_equal(arena_init(&a, (size_t)1 << 28), ERR_OK);
    Fit         f = fit_new(1, &a);
    FloatVec    m = float_vec_new(&a, f.w.n), v = float_vec_new(&a, f.w.n);
    AdamOptions o = adam_defaults(3e-3f);
    double      first = fit_back(&f), last = first;
    for (uint64_t i = 1; i <= 60; i++) {
        adam_step(&o, i, f.w, f.g, m, v);
        last = fit_back(&f);
    }
    assert_true(last < first - 0.5);
    arena_finish(&a);
}

static void test_profile(void **state) {
    (void)state;
    Rng rng = {1};
    for (uint32_t i = 0; i < 200; i++) {
        BeliefProfile p = belief_profile_draw(&rng);
        assert_true(fabs(belief_profile_speed(&p, 1, 1) - 1) < 1e-9);
        assert_true(belief_profile_speed(&p, 0.5, 1) <= 1);
        assert_true(belief_profile_speed(&p, 2, 2) >= 1);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient), cmocka_unit_test(test_samples),
        cmocka_unit_test(test_learns), cmocka_unit_test(test_profile)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
