// Gradients of the critics' and the actor's losses for any number of threads; targets; saved state;
// transitions as floats.
#include "tests/learn/gradient.h"

#include <pthread.h>  // the thread sanitizer runs what includes it
#include <stdlib.h>

#include "learn/actor_critic.h"
#include "learn/ddpg_int.h"
#include "tests/runner.h"

enum { FEATURES = 4, ACTIONS = 2, ITEMS = 6, BATCH = 7 };

typedef struct Data {
    DdpgTransition steps[BATCH];
    float          x[BATCH][ITEMS * FEATURES], next_x[BATCH][ITEMS * FEATURES];
    float          action[BATCH][ITEMS * ACTIONS], teacher[BATCH][ITEMS * ACTIONS];
} Data;

static void data_fill(Data *d, Rng *rng) {
    static const uint32_t len[BATCH] = {3, 1, 6, 0, 2, 6, 1}, next[BATCH] = {2, 0, 6, 4, 1, 5, 3};
    for (uint32_t i = 0; i < BATCH; i++) {
        gradient_fill(rng, d->x[i], ITEMS * FEATURES, 1);
        gradient_fill(rng, d->next_x[i], ITEMS * FEATURES, 1);
        gradient_fill(rng, d->action[i], ITEMS * ACTIONS, 1);
        gradient_fill(rng, d->teacher[i], ITEMS * ACTIONS, 1);
        d->teacher[i][1] = NAN;
        d->steps[i] = (DdpgTransition){.x = d->x[i],
                                       .next_x = d->next_x[i],
                                       .action = d->action[i],
                                       .teacher = i == 4 ? NULL : d->teacher[i],
                                       .n = len[i],
                                       .next_n = next[i],
                                       .reward = (float)i * 0.3f - 1,
                                       .discount = i == 5 ? 0 : 0.9f,
                                       .weight = 0.5f + 0.1f * (float)i};
    }
}

static DdpgOptions options(uint32_t embed, bool bidirectional, uint32_t parts) {
    Actor       actor = {{FEATURES, embed, 5, bidirectional}, ACTIONS};
    Critic      critic = {FEATURES, ACTIONS, embed ? embed + 1 : 0, 6, bidirectional};
    DdpgOptions o = ddpg_defaults(actor, critic);
    o.batch = BATCH;
    o.items = ITEMS;
    o.shards = parts;
    o.huber = 0.7f;
    o.imitate = 0.8f;
    o.actor_every = 1;
    return o;
}

static double critic_loss(void *ctx) {
    Ddpg  *d = ctx;
    double sum = 0;
    for (uint32_t i = 0; i < d->o.shards; i++) {
        ddpg_shard_pack(d, i);
        ddpg_shard_critic(d, i);
        sum += d->shards[i].critic_loss / d->n;
    }
    return sum;
}

static double actor_loss(void *ctx) {
    Ddpg  *d = ctx;
    double sum = 0;
    for (uint32_t i = 0; i < d->o.shards; i++) {
        ddpg_shard_actor(d, i);
        sum += (d->shards[i].actor_loss + (double)d->o.imitate * d->shards[i].imitate_loss) / d->n;
    }
    return sum;
}

static void sum_parts(const Ddpg *d, uint32_t net, float *to) {
    for (size_t k = 0; k < d->nets[net].w.n; k++) {
        to[k] = 0;
        for (uint32_t i = 0; i < d->o.shards; i++) to[k] += d->shards[i].gradient[net].at[k];
    }
}

// Weights larger than initial ones, so that effects exceed rounding; biases away from 0, where relu
// has its kink.
static void check_losses(DdpgOptions o, uint64_t seed) {
    Arena a;
    Data  data;
    Rng   rng = {seed};
    assert_int_equal(arena_init(&a, (size_t)1 << 26), ERR_OK);
    data_fill(&data, &rng);
    Ddpg *d = ddpg_create(&a, o, seed);
    for (uint32_t i = 0; i < d->n_nets; i++) {
        for (size_t k = 0; k < d->nets[i].w.n; k++)
            d->nets[i].w.at[k] = 2 * d->nets[i].w.at[k] + 0.2f * rng_unit(&rng) - 0.1f;
        gradient_fill(&rng, d->nets[i].target.at, d->nets[i].w.n, 0.5f);
    }
    d->steps = data.steps;
    d->n = BATCH;
    d->by_value = d->by_teacher = true;
    float *g = arena_new(&a, float, d->gradient.n);
    critic_loss(d);
    for (uint32_t i = DDPG_CRITIC; i < d->n_nets; i++) {
        critic_loss(d);
        sum_parts(d, i, g);
        gradient_check("critic", critic_loss, d, d->nets[i].w.at, g, d->nets[i].w.n, 120, &rng);
    }
    actor_loss(d);
    sum_parts(d, DDPG_ACTOR, g);
    gradient_check("actor", actor_loss, d, d->nets[DDPG_ACTOR].w.at, g, d->nets[DDPG_ACTOR].w.n,
                   150, &rng);
    arena_finish(&a);
}

static void test_losses(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        check_losses(options(7, true, 1), seed);
        check_losses(options(7, false, 3), seed);
        check_losses(options(0, true, 7), seed);
        DdpgOptions choosy = options(3, true, 2);
        choosy.imitate_better = true;
        choosy.twin = false;
        choosy.huber = 0;
        check_losses(choosy, seed);
    }
}

// One critic's value of the next items of a transition, with the target actor's actions.
static float value_alone(const Ddpg *d, uint32_t critic, const DdpgTransition *s, Arena *a) {
    uint32_t rank, len;
    float    action[ITEMS * ACTIONS], q;
    Ragged   r = {.start = arena_new(a, uint32_t, ITEMS + 1), .rank = &rank, .len = &len};
    ragged_make(&r, &s->next_n, 1);
    float *cache = float_vec_new(a, actor_cache_size(d->o.actor, ITEMS, 1)).at;
    actor_forward(d->o.actor, d->nets[DDPG_ACTOR].target.at, &r, s->next_x, action, cache);
    cache = float_vec_new(a, critic_cache_size(d->o.critic, ITEMS, 1)).at;
    critic_forward(d->o.critic, d->nets[critic].target.at, &r, s->next_x, action, &q, cache);
    return q;
}

// Transitions with their target from the second critic.
static uint32_t check_targets(uint64_t seed) {
    Arena       a;
    Data        data;
    Rng         rng = {seed};
    DdpgOptions o = options(7, true, 3);
    uint32_t    seen = 0, second = 0;
    assert_int_equal(arena_init(&a, (size_t)1 << 26), ERR_OK);
    data_fill(&data, &rng);
    o.target_noise = 0;
    Ddpg *d = ddpg_create(&a, o, seed);
    for (uint32_t i = 0; i < d->n_nets; i++)
        gradient_fill(&rng, d->nets[i].target.at, d->nets[i].w.n, 0.5f);
    d->steps = data.steps;
    d->n = BATCH;
    d->by_value = d->by_teacher = true;
    critic_loss(d);
    for (uint32_t part = 0; part < o.shards; part++)
        for (uint32_t i = 0; i < d->shards[part].n; i++, seen++) {
            const DdpgTransition *s = &data.steps[d->shards[part].step[i]];
            float                 one = value_alone(d, DDPG_CRITIC, s, &a);
            float                 two = value_alone(d, DDPG_CRITIC + 1, s, &a);
            second += two < one;
            assert_float_equal(d->shards[part].target[i],
                               s->reward + s->discount * (one < two ? one : two), 1e-5);
        }
    assert_int_equal(seen, BATCH);
    arena_finish(&a);
    return second;
}

static void test_targets(void **state) {
    (void)state;
    uint32_t second = 0;
    for (uint64_t seed = 1; seed <= 6; seed++) second += check_targets(seed);
    assert_true(second > 0 && second < 6 * BATCH);
}

static void test_pull(void **state) {
    (void)state;
    Arena    a;
    Rng      rng = {3};
    Actor    actor = {{FEATURES, 3, 4, true}, 1};
    uint32_t len = 1, start[2], rank, lens;
    Ragged   r = {.start = start, .rank = &rank, .len = &lens};
    float    x[FEATURES] = {0.3f, -1, 0.7f, 0.2f}, out, none = 0;
    assert_int_equal(arena_init(&a, (size_t)1 << 20), ERR_OK);
    ragged_make(&r, &len, 1);
    FloatVec w = float_vec_new(&a, actor_params(actor)), g = float_vec_new(&a, w.n);
    float   *cache = arena_new(&a, float, actor_cache_size(actor, 1, 1));
    gradient_fill(&rng, w.at, w.n, 0.8f);
    actor_forward(actor, w.at, &r, x, &out, cache);
    actor_backward(actor, w.at, g.at, &r, x, &out, &none, 3, cache);
    assert_float_equal(g.at[g.n - 1], 3 * atanhf(out), 1e-5);  // of the bias before tanh
    arena_finish(&a);
}

// The same bits with one, two and three threads, with different shards on each.
static void test_threads(void **state) {
    (void)state;
    Arena a;
    Data  data;
    Rng   rng = {11};
    assert_int_equal(arena_init(&a, (size_t)1 << 28), ERR_OK);
    data_fill(&data, &rng);
    Ddpg *all[3];
    for (uint32_t threads = 1; threads <= 3; threads++) {
        Team      *team = NULL;
        DdpgReport report = {0};
        if (threads > 1) assert_int_equal(team_create(&team, threads, NULL), ERR_OK);
        Ddpg *d = all[threads - 1] = ddpg_create(&a, options(7, true, 4), 5);
        for (uint32_t i = 0; i < 20; i++) ddpg_train(d, team, data.steps, BATCH, &report);
        assert_true(isfinite(report.critic_loss) && report.critic_norm > 0);
        team_destroy(team);
    }
    assert_int_equal(*all[0]->nets[DDPG_ACTOR].count, 20);
    for (uint32_t i = 1; i < 3; i++)
        assert_memory_equal(ddpg_state(all[i]).at, ddpg_state(all[0]).at,
                            ddpg_state(all[0]).n * sizeof(float));
    arena_finish(&a);
}

// Training resumed from a saved state continues with the same bits.
static void test_resumed(void **state) {
    (void)state;
    Arena      a;
    Data       data;
    Rng        rng = {12};
    DdpgReport report;
    assert_int_equal(arena_init(&a, (size_t)1 << 28), ERR_OK);
    data_fill(&data, &rng);
    Ddpg *whole = ddpg_create(&a, options(7, true, 2), 5);
    Ddpg *resumed = ddpg_create(&a, options(7, true, 2), 5);
    for (uint32_t i = 0; i < 5; i++) ddpg_train(whole, NULL, data.steps, BATCH, &report);
    float_vec_copy(ddpg_state(resumed), ddpg_state(whole));
    for (uint32_t i = 0; i < 5; i++) {
        ddpg_train(whole, NULL, data.steps, BATCH, &report);
        ddpg_train(resumed, NULL, data.steps, BATCH, &report);
    }
    assert_memory_equal(ddpg_state(whole).at, ddpg_state(resumed).at,
                        ddpg_state(whole).n * sizeof(float));
    arena_finish(&a);
}

static void test_step_as_floats(void **state) {
    (void)state;
    Data  data;
    Rng   rng = {9};
    Actor actor = {{FEATURES, 3, 4, true}, ACTIONS};
    float floats[6 + ITEMS * 2 * (FEATURES + ACTIONS)];
    data_fill(&data, &rng);
    for (uint32_t i = 0; i < BATCH; i++) {
        const DdpgTransition *s = &data.steps[i];
        size_t                size = ddpg_transition_size(&actor, s);
        assert_true(size <= sizeof floats / sizeof *floats);
        ddpg_transition_write(&actor, s, floats);
        DdpgTransition back = ddpg_transition_read(&actor, floats);
        assert_true(back.n == s->n && back.next_n == s->next_n && back.reward == s->reward);
        assert_true(back.discount == s->discount && back.weight == s->weight);
        assert_true((back.teacher == NULL) == (s->teacher == NULL));
        assert_memory_equal(back.x, s->x, s->n * FEATURES * sizeof(float));
        assert_memory_equal(back.action, s->action, s->n * ACTIONS * sizeof(float));
        assert_memory_equal(back.next_x, s->next_x, s->next_n * FEATURES * sizeof(float));
        if (s->teacher)
            assert_memory_equal(back.teacher, s->teacher, s->n * ACTIONS * sizeof(float));
        assert_ptr_equal(back.next_x + (size_t)back.next_n * FEATURES, floats + size);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses),  cmocka_unit_test(test_targets),
        cmocka_unit_test(test_pull),    cmocka_unit_test(test_threads),
        cmocka_unit_test(test_resumed), cmocka_unit_test(test_step_as_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
