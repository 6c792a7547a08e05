// actor_infer against actor_forward with BLAS, and against recorded bits.
#include "tests/learn/gradient.h"

#include "learn/actor_critic.h"
#include "learn/ddpg.h"
#include "tests/runner.h"

static float between(Actor a, uint32_t items, uint64_t seed) {
    Arena    arena;
    Rng      rng = {seed};
    uint32_t rank, len;
    float    most = 0;
    assert_int_equal(arena_init(&arena, (size_t)1 << 24), ERR_OK);
    Ragged   r = {.start = arena_new(&arena, uint32_t, items + 1), .rank = &rank, .len = &len};
    FloatVec w = float_vec_new(&arena, actor_params(a));
    size_t   n = (size_t)items * a.actions;
    float   *x = float_vec_new(&arena, (size_t)items * a.trunk.in).at;
    float   *out = float_vec_new(&arena, n).at, *plain = float_vec_new(&arena, n).at;
    actor_init(a, w.at, &rng);
    for (size_t i = 0; i < w.n; i++) w.at[i] += 0.1f * (2 * rng_unit(&rng) - 1);
    gradient_fill(&rng, x, (size_t)items * a.trunk.in, 1);
    ragged_make(&r, &items, 1);
    actor_forward(a, w.at, &r, x, out, float_vec_new(&arena, actor_cache_size(a, items, 1)).at);
    size_t size = actor_infer_scratch(a, items);
    float *scratch = float_vec_new(&arena, size + 1).at;
    gradient_fill(&rng, scratch, size, 9);  // initial contents must not matter
    scratch[size] = 42;
    actor_infer(a, w.at, items, x, plain, scratch);
    assert_true(scratch[size] == 42);
    for (size_t i = 0; i < n; i++) most = fmaxf(most, fabsf(out[i] - plain[i]));
    for (size_t i = 0; i < n; i++) assert_true(isfinite(plain[i]) && fabsf(plain[i]) <= 1);
    arena_finish(&arena);
    return most;
}

static void test_same_as_blas(void **state) {
    (void)state;
    static const uint32_t items[] = {1, 2, 3, 5, 16, 64}, hidden[] = {1, 5, 16, 40, 64, 128};
    for (uint32_t i = 0; i < 6; i++)
        for (uint32_t h = 0; h < 6; h++)
            for (uint32_t kind = 0; kind < 4; kind++) {
                Trunk trunk = {7 + i, kind & 1 ? 9 + h : 0, hidden[h], kind & 2};
                assert_true(between((Actor){trunk, 1 + i}, items[i], h + 1) < 1e-5f);
            }
    Actor usual = {{32, 64, 64, true}, 3};
    for (uint64_t seed = 1; seed < 6; seed++) assert_true(between(usual, 64, seed) < 1e-5f);
}

static uint64_t hash(const float *x, size_t n) {
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        h = (h ^ bits) * 1099511628211u;
    }
    return h;
}

// Ten reproducible updates, then the actor's output. The recorded numbers must be the same on every
// machine and with every compiler.
static void test_same_bits(void **state) {
    (void)state;
    enum { ITEMS = 9, FEATURES = 5, ACTIONS = 3, BATCH = 6 };
    Arena          arena;
    Rng            rng = {77};
    Actor          a = {{FEATURES, 12, 20, true}, ACTIONS};
    Critic         c = {FEATURES, ACTIONS, 8, 11, true};
    DdpgOptions    o = ddpg_defaults(a, c);
    DdpgReport     report;
    DdpgTransition steps[BATCH];
    float          x[BATCH][ITEMS * FEATURES], act[BATCH][ITEMS * ACTIONS], out[ITEMS * ACTIONS];
    assert_int_equal(arena_init(&arena, (size_t)1 << 26), ERR_OK);
    o.batch = BATCH;
    o.items = ITEMS;
    o.shards = 2;
    o.reproducible = true;
    Ddpg *d = ddpg_create(&arena, o, 3);
    for (uint32_t i = 0; i < BATCH; i++) {
        gradient_fill(&rng, x[i], ITEMS * FEATURES, 1);
        gradient_fill(&rng, act[i], ITEMS * ACTIONS, 1);
        steps[i] = (DdpgTransition){.x = x[i],
                                    .next_x = x[i],
                                    .action = act[i],
                                    .n = 1 + i,
                                    .next_n = ITEMS - i,
                                    .reward = rng_unit(&rng),
                                    .discount = 0.9f,
                                    .weight = 1};
    }
    for (uint32_t i = 0; i < 10; i++) ddpg_train(d, NULL, steps, BATCH, &report);
    actor_infer(a, ddpg_actor(d), ITEMS, x[0], out,
                float_vec_new(&arena, actor_infer_scratch(a, ITEMS)).at);
    uint64_t said = hash(out, ITEMS * ACTIONS), learned = hash(ddpg_state(d).at, ddpg_state(d).n);
    if (said != 0x9a3f7f8194beb913 || learned != 0xfc422e6ab7e05df5)
        fail_msg("actions 0x%016llx, state 0x%016llx", (unsigned long long)said,
                 (unsigned long long)learned);
    arena_finish(&arena);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_as_blas),
                                       cmocka_unit_test(test_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
