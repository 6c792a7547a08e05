// BeliefContext: cached encodings equal a full one bit for bit, runs repeat, the choice of context
// jobs, records, and the work left from a mixture.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "estimator/belief_context.h"
#include "tests/runner.h"

enum { SLOTS = 40, EVENTS = 1500 };

static void random_event(BeliefContext *c, Rng *r) {
    uint32_t     slot = (uint32_t)rng_below(r, SLOTS);
    double       work = exp(10 * rng_unit64(r));
    BeliefRecord x = {0.3f + 2 * rng_unit(r), 1, 0, 0.2f + rng_unit(r)};
    JobTraits    t = {1 + rng_below(r, 3), rng_below(r, 3), 1 + (uint32_t)rng_below(r, 4)};
    switch (rng_below(r, 4)) {
    case 0:
        if (c->position[slot] == 0) belief_context_arrive(c, slot, &t, work);
        break;
    case 1: belief_context_work(c, slot, work); break;
    case 2: belief_context_record(c, slot, &x); break;
    default:
        if (c->position[slot] == 0) break;
        belief_context_end(c, slot, work);
        belief_context_arrive(c, slot, &t, work);
    }
}

static float *weights(Arena *a) {
    Rng    r = {7};
    float *w = float_vec_new(a, belief_net_params()).at;
    belief_net_init(w, &r);
    for (size_t i = 0; i < belief_net_params(); i++) w[i] += 0.05f * (2 * rng_unit(&r) - 1);
    return w;
}

static void test_cached_encodings_equal_a_full_one(void **state) {
    (void)state;
    Arena         a;
    BeliefContext c;
    Rng           r = {3};
    assert_int_equal(arena_init(&a, (size_t)1 << 28), ERR_OK);
    assert_int_equal(belief_context_init(&c, weights(&a), SLOTS, &a), ERR_OK);
    for (uint32_t i = 0; i < EVENTS; i++) {
        BeliefOutput cached, full;
        uint32_t     slot = (uint32_t)rng_below(&r, SLOTS);
        random_event(&c, &r);
        belief_context_ask(&c, slot, NULL, &cached);
        if (i % 8 == 0) {
            memset(c.encoded, 0, (BELIEF_ENDED + SLOTS) * sizeof *c.encoded);
            belief_context_ask(&c, slot, NULL, &full);
            assert_memory_equal(&cached, &full, sizeof full);
        }
        for (uint32_t k = 0; k < BELIEF_MIX; k++) assert_true(isfinite(cached.mean[k]));
    }
    assert_true(c.ended > 2 && c.n_active > 0);
    arena_finish(&a);
}

static void test_a_batch_equals_single_jobs(void **state) {
    (void)state;
    enum { N = 9 };
    Arena        a;
    Rng          r = {5};
    float        features[N * BELIEF_JOB], records[N * BELIEF_RECORDS * BELIEF_RECORD];
    uint8_t      n_records[N];
    float        all[N * BELIEF_KV], one[BELIEF_KV];
    BeliefTokens t = {features, records, n_records, N};
    assert_int_equal(arena_init(&a, (size_t)1 << 28), ERR_OK);
    float *w = weights(&a);
    float *cache = float_vec_new(&a, belief_jobs_cache(N)).at;
    for (size_t i = 0; i < sizeof features / sizeof *features; i++) features[i] = rng_unit(&r);
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) records[i] = rng_unit(&r);
    for (uint32_t i = 0; i < N; i++) n_records[i] = (uint8_t)(i % (BELIEF_RECORDS + 1));
    belief_net_encode(w, &t, all, cache);
    for (uint32_t i = 0; i < N; i++) {
        BeliefTokens x = {features + (size_t)i * BELIEF_JOB,
                          records + (size_t)i * BELIEF_RECORDS * BELIEF_RECORD, n_records + i, 1};
        belief_net_encode(w, &x, one, cache);
        assert_memory_equal(one, all + (size_t)i * BELIEF_KV, sizeof one);
    }
    arena_finish(&a);
}

static void test_similar_jobs_are_chosen(void **state) {
    (void)state;
    enum { N = 200 };
    BeliefJob        jobs[N] = {{.ended = true}}, query = {.traits = {7, 0, 2}, .serial = N};
    uint32_t         rows[N], chosen[BELIEF_CONTEXT], alike = 0;
    float            pair[BELIEF_CONTEXT * BELIEF_PAIR];
    BeliefCandidates c = {jobs, rows, N};
    for (uint32_t i = 0; i < N; i++) {
        rows[i] = i;
        jobs[i] = (BeliefJob){
            .traits = {i % 20 == 19 ? 7 : 1 + i % 5, 0, 1}, .serial = N - 1 - i, .ended = true};
    }
    assert_int_equal(belief_select(&c, &query, chosen, pair), BELIEF_CONTEXT);
    for (uint32_t i = 0; i < BELIEF_CONTEXT; i++) alike += jobs[chosen[i]].traits.tenant == 7;
    assert_int_equal(alike, N / 20);
    assert_int_equal(chosen[0], 19);  // the newest of the tenant
    assert_true(pair[0] == 1 && pair[1] == 0 && pair[2] == 0);
    c.n = 3;
    assert_int_equal(belief_select(&c, &query, chosen, pair), 3);
}

static void test_records(void **state) {
    (void)state;
    BeliefJob j = {.n_records = 0};
    for (uint32_t i = 0; i < 5; i++)
        belief_job_record(&j, &(BeliefRecord){1 + (float)i, 1, 0, 0.5f});
    assert_int_equal(j.n_records, BELIEF_RECORDS);
    assert_true(j.records[0].cores == 3 && j.records[2].cores == 5);
    belief_job_record(&j, &(BeliefRecord){4, 1, 0, 0.9f});
    assert_true(j.records[1].rate == 0.9f && j.n_records == BELIEF_RECORDS);
}

static void test_work_left(void **state) {
    (void)state;
    BeliefOutput     x = {.weight = {1, 0, 0}, .mean = {7, 0, 0}, .sd = {0.5f, 1, 1}};
    DurationEstimate e = belief_left(&x, 0, 0, 0);
    assert_true(fabs(log(e.left_s) - 7) < 0.05 && fabs(e.log_sd - 0.5) < 0.05);
    assert_true(fabs(log(e.low_s) - (7 - 0.82)) < 0.1 && fabs(log(e.high_s) - (7 + 0.82)) < 0.1);
    DurationEstimate told = belief_left(&x, 0, exp(8), 0.5);
    assert_true(fabs(log(told.left_s) - 7.5) < 0.05 && told.log_sd < 0.4);
    DurationEstimate apart = belief_left(&x, 0, 1, 0.01);  // what was told is far from the mixture
    assert_true(isfinite(apart.left_s) && apart.left_s >= 1);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cached_encodings_equal_a_full_one),
        cmocka_unit_test(test_a_batch_equals_single_jobs),
        cmocka_unit_test(test_similar_jobs_are_chosen),
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_work_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
