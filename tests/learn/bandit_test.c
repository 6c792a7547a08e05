// DDPG solves a continuous bandit over sequences, from several seeds: the best
// action of an item depends on itself and on the last item of its sequence. A teacher speeds it up;
// a task of two steps is solved through the value of the next state.
#include "tests/learn/gradient.h"

#include "learn/actor_critic.h"
#include "learn/ddpg.h"
#include "learn/noise.h"
#include "learn/replay.h"
#include "tests/runner.h"

enum { ITEMS = 4, FEATURES = 2, BATCH = 32 };

typedef struct World {
    Arena   arena;
    Ddpg   *d;
    Replay *replay;
    Rng     rng;
    float  *scratch;
    bool    later;  // the reward comes one step after the action
} World;

static const Actor actor = {{FEATURES, 0, 12, true}, 1};

static void world_init(World *w, uint64_t seed, bool later, float imitate) {
    Critic      critic = {FEATURES, 1, 16, 16, true};
    DdpgOptions o = ddpg_defaults(actor, critic);
    o.batch = BATCH;
    o.items = ITEMS;
    o.shards = 2;
    o.actor_rate = later ? 1e-3f : 2e-3f;
    o.critic_rate = 4e-3f;
    o.target_noise = later ? 0 : 0.1f;
    o.tau = 0.05f;
    o.imitate = imitate;
    *w = (World){.rng = {seed}, .later = later};
    assert_int_equal(arena_init(&w->arena, (size_t)1 << 26), ERR_OK);
    w->d = ddpg_create(&w->arena, o, seed);
    w->replay = replay_create(&w->arena, (ReplayOptions){.records = 2000, .floats = 100000});
    w->scratch = float_vec_new(&w->arena, actor_infer_scratch(actor, ITEMS)).at;
}

static uint32_t look(Rng *rng, float *x) {
    uint32_t n = 1 + (uint32_t)rng_below(rng, ITEMS);
    gradient_fill(rng, x, n * FEATURES, 1);
    return n;
}

static float wanted(const float *x, uint32_t n, uint32_t i) {
    return 0.6f * x[i * FEATURES] + 0.3f * x[(n - 1) * FEATURES + 1];
}

// Minus the mean squared distance; 0 is the optimum.
static float reward_of(const float *x, uint32_t n, const float *action) {
    float sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        float off = action[i] - wanted(x, n, i);
        sum -= off * off;
    }
    return sum / (float)n;
}

static void add(World *w, const DdpgTransition *s) {
    ddpg_transition_write(&actor, s,
                          replay_add(w->replay, (uint32_t)ddpg_transition_size(&actor, s)));
}

// With `later` the action is shown again in a second step, and determines its reward.
static void experience(World *w) {
    float    x[ITEMS * FEATURES], shown[ITEMS * FEATURES], action[ITEMS], teacher[ITEMS];
    uint32_t n = look(&w->rng, x);
    actor_infer(actor, ddpg_actor(w->d), n, x, action, w->scratch);
    noise_add(&w->rng, 0.3f, n, action);
    float reward = reward_of(x, n, action);
    for (uint32_t i = 0; i < n; i++) teacher[i] = wanted(x, n, i);
    DdpgTransition s = {.x = x, .action = action, .teacher = teacher, .n = n, .weight = 1};
    s.reward = w->later ? 0 : reward;
    if (w->later) {
        for (uint32_t i = 0; i < n; i++) {
            shown[i * FEATURES] = 3 + action[i] - wanted(x, n, i);
            shown[i * FEATURES + 1] = 0;
        }
        s.next_x = shown;
        s.next_n = n;
        s.discount = 0.9f;
        add(w, &s);
        s = (DdpgTransition){.x = shown, .action = action, .n = n, .reward = reward, .weight = 1};
    }
    add(w, &s);
}

static void update(World *w, bool imitate) {
    ReplayPick     picks[BATCH];
    DdpgTransition steps[BATCH];
    DdpgReport     report;
    replay_draw(w->replay, &w->rng, BATCH, picks);
    for (uint32_t i = 0; i < BATCH; i++) steps[i] = ddpg_transition_read(&actor, picks[i].record);
    if (imitate) {
        ddpg_imitate(w->d, NULL, steps, BATCH, &report);
        return;
    }
    ddpg_train(w->d, NULL, steps, BATCH, &report);
}

static double judge(World *w) {
    Rng    rng = {999};
    double sum = 0;
    for (uint32_t i = 0; i < 300; i++) {
        float    x[ITEMS * FEATURES], action[ITEMS];
        uint32_t n = look(&rng, x);
        actor_infer(actor, ddpg_actor(w->d), n, x, action, w->scratch);
        sum += (double)reward_of(x, n, action) / 300;
    }
    return sum;
}

static double learn(World *w, uint32_t rounds) {
    for (uint32_t i = 0; i < 200; i++) experience(w);
    for (uint32_t i = 0; i < rounds; i++) {
        experience(w);
        update(w, false);
    }
    return judge(w);
}

static void test_bandit(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        World w;
        world_init(&w, seed, false, 0);
        double before = judge(&w), after = learn(&w, 1200);
        print_message("seed %d: %.4f to %.4f\n", (int)seed, before, after);
        assert_true(before < -0.1 && after > -0.015);
        arena_finish(&w.arena);
    }
}

static void test_later(void **state) {
    (void)state;
    World w;
    world_init(&w, 1, true, 0);
    double before = judge(&w), after = learn(&w, 2500);
    print_message("later: %.4f to %.4f\n", before, after);
    assert_true(before < -0.1 && after > -0.03);
    arena_finish(&w.arena);
}

static void test_teacher(void **state) {
    (void)state;
    World  w;
    double before, warm, after;
    world_init(&w, 6, false, 1);
    before = judge(&w);
    for (uint32_t i = 0; i < 200; i++) experience(&w);
    for (uint32_t i = 0; i < 300; i++) {
        experience(&w);
        update(&w, true);
    }
    warm = judge(&w);
    after = learn(&w, 200);
    print_message("teacher: %.4f, warm %.4f, after %.4f\n", before, warm, after);
    assert_true(before < -0.1 && warm > -0.005 && after > -0.005);
    arena_finish(&w.arena);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bandit), cmocka_unit_test(test_later),
                                       cmocka_unit_test(test_teacher)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
