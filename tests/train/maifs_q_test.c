// Q-learning of joint actions: gradients by finite differences, a coordination game, an assignment,
// a delayed reward, a teacher, and independence of the number of threads.
#include "train/maifs_q.h"

#include "tests/learn/gradient.h"
#include "tests/runner.h"

enum { SERVERS = 2, JOBS = 2, MOST = 64 };

typedef struct Room {  // memory of a step
    float       servers[2 * SERVERS * MAIFS_SERVER], jobs[2 * JOBS * MAIFS_JOB];
    float       queue[MAIFS_QUEUE], u[2 * JOBS], pool[2 * MAIFS_Q_POOL];
    OfferSample offers[2 * 2 * SERVERS];
} Room;

static Arena arena;
static Room  rooms[MOST];

static int setup(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 30) == ERR_OK ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static MaifsQ *open_q(uint64_t seed) {
    MaifsQOptions o = maifs_q_defaults((MaifsNet){
        .width = 16, .heads = 2, .rounds = 1, .hidden = 16, .rank = 4, .attention = true});
    o.servers = SERVERS;
    o.jobs = JOBS;
    o.took = SERVERS;
    o.rate = 3e-3f;
    return maifs_q_create(&arena, o, seed);
}

// One feature identifies each server and job; server i takes job pick[i], or none.
static MaifsQState state_of(Room *r, uint32_t half, const uint32_t *pick) {
    MaifsQState x = {.in = {.servers = r->servers + (size_t)half * SERVERS * MAIFS_SERVER,
                            .jobs = r->jobs + (size_t)half * JOBS * MAIFS_JOB,
                            .queue = r->queue,
                            .n_servers = SERVERS,
                            .n_jobs = JOBS},
                     .u = r->u + (size_t)half * JOBS,
                     .pool = r->pool + (size_t)half * MAIFS_Q_POOL,
                     .offers = r->offers + (size_t)half * 2 * SERVERS};
    float      *servers = r->servers + (size_t)half * SERVERS * MAIFS_SERVER;
    float      *jobs = r->jobs + (size_t)half * JOBS * MAIFS_JOB;
    for (uint32_t i = 0; i < SERVERS; i++) servers[i * MAIFS_SERVER + i] = 1;
    for (uint32_t k = 0; k < JOBS; k++) jobs[k * MAIFS_JOB + k] = 1;
    r->pool[(size_t)half * MAIFS_Q_POOL] = 1;
    for (uint32_t i = 0; i < SERVERS; i++)
        if (pick[i] < JOBS)
            r->offers[half * 2 * SERVERS + x.n_took++] =
                (OfferSample){.at = {i, pick[i]}, .own = 1e6f, .gain = 0};
    return x;
}

// Reward 1 if both agents do the same, else 0: neither agent can learn it alone.
static void test_learns_a_game_of_coordination(void **state) {
    (void)state;
    MaifsQ    *q = open_q(3);
    Rng        rng = {5};
    MaifsQStep steps[MOST];
    for (uint32_t u = 0; u < 600; u++) {
        memset(rooms, 0, sizeof rooms);
        for (uint32_t i = 0; i < MOST; i++) {
            uint32_t pick[SERVERS] = {(uint32_t)rng_below(&rng, 2), (uint32_t)rng_below(&rng, 2)};
            steps[i] = (MaifsQStep){.now = state_of(&rooms[i], 0, pick),
                                    .reward = pick[0] == pick[1] ? 1 : 0};
        }
        maifs_q_train(q, NULL, steps, MOST);
    }
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t pick[SERVERS] = {i / 2, i % 2};
        memset(rooms, 0, sizeof rooms);
        MaifsQState x = state_of(&rooms[0], 0, pick);
        double      wants = pick[0] == pick[1] ? 1 : 0;
        assert_true(fabs(maifs_q_value(q, &x) - wants) < 0.2);
    }
}

static float worth(const float *offer) {
    return 0.2f + (offer[0] > 0 ? 0.6f * offer[0] : 0) - 0.3f * offer[1] + 0.1f * offer[2];
}

// The value of single offers is learned from the sum over the two that were taken.
static void test_learns_what_offers_are_worth(void **state) {
    (void)state;
    MaifsQ    *q = open_q(4);
    Rng        rng = {6};
    MaifsQStep steps[MOST];
    double     off = 0;
    for (uint32_t u = 0; u < 800; u++) {
        memset(rooms, 0, sizeof rooms);
        for (uint32_t i = 0; i < MOST; i++) {
            uint32_t pick[SERVERS] = {0, 1};
            steps[i] = (MaifsQStep){.now = state_of(&rooms[i], 0, pick)};
            for (uint32_t k = 0; k < SERVERS; k++) {
                gradient_fill(&rng, rooms[i].offers[k].features, 3, 1);
                steps[i].reward += worth(rooms[i].offers[k].features);
            }
        }
        maifs_q_train(q, NULL, steps, MOST);
    }
    for (uint32_t i = 0; i < MOST; i++)
        off += fabs(maifs_q_value(q, &steps[i].now) - (double)steps[i].reward) / MOST;
    assert_true(off < 0.05);
}

// Job 1 pays 0 now and 1 in the next step, job 0 pays 0.5 now and 0 then.
static void test_looks_ahead(void **state) {
    (void)state;
    MaifsQ    *q = open_q(7);
    Rng        rng = {8};
    MaifsQStep steps[MOST];
    double     found[2];
    for (uint32_t u = 0; u < 800; u++) {
        memset(rooms, 0, sizeof rooms);
        for (uint32_t i = 0; i < MOST; i++) {
            uint32_t    first = (uint32_t)rng_below(&rng, 2), pick[SERVERS] = {first, JOBS};
            uint32_t    none[SERVERS] = {JOBS, JOBS};
            MaifsQState now = state_of(&rooms[i], 0, pick), later = state_of(&rooms[i], 1, none);
            rooms[i].pool[MAIFS_Q_POOL + 1 + first] = 1;  // the state reached
            steps[i] = i % 2 == 0 ? (MaifsQStep){.now = now,
                                                 .next = later,
                                                 .reward = first == 0 ? 0.5f : 0,
                                                 .discount = 0.9f}
                                  : (MaifsQStep){.now = later, .reward = first == 0 ? 0 : 1.0f};
        }
        maifs_q_train(q, NULL, steps, MOST);
    }
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t pick[SERVERS] = {k, JOBS};
        memset(rooms, 0, sizeof rooms);
        MaifsQState x = state_of(&rooms[0], 0, pick);
        found[k] = maifs_q_value(q, &x);
    }
    assert_true(fabs(found[0] - 0.5) < 0.15 && fabs(found[1] - 0.9) < 0.15);
}

// A hidden state affects both the reward and the greedy choice; exploration still reveals the value
// of an offer.
static void test_is_not_misled_by_the_state(void **state) {
    (void)state;
    MaifsQ    *q = open_q(12);
    Rng        rng = {13};
    MaifsQStep steps[MOST];
    double     found[2];
    for (uint32_t u = 0; u < 1200; u++) {
        memset(rooms, 0, sizeof rooms);
        for (uint32_t i = 0; i < MOST; i++) {
            uint32_t hidden = (uint32_t)rng_below(&rng, 2), took = hidden,
                     pick[SERVERS] = {0, JOBS};
            bool explores = rng_unit(&rng) < 0.3f;
            if (explores) took = (uint32_t)rng_below(&rng, 2);
            steps[i] = (MaifsQStep){.now = state_of(&rooms[i], 0, pick)};
            rooms[i].offers[0].features[0] = (float)took;
            rooms[i].offers[1] = (OfferSample){.own = 1e6f, .features = {(float)hidden}};
            if (!explores) steps[i].now.n_took = 0;
            steps[i].reward = (float)hidden + (took == 1 ? 0.0f : 0.4f);
        }
        maifs_q_train(q, NULL, steps, MOST);
    }
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t pick[SERVERS] = {0, JOBS};
        memset(rooms, 0, sizeof rooms);
        MaifsQState x = state_of(&rooms[0], 0, pick);
        rooms[0].offers[0].features[0] = (float)k;
        found[k] = maifs_q_value(q, &x);
    }
    assert_true(found[0] > found[1] + 0.1);  // 0.4 better, though seen with less reward
}

static void test_imitates(void **state) {
    (void)state;
    MaifsQ      *q = open_q(9);
    Rng          rng = {10};
    MaifsQSample samples[MOST];
    double       loss = 0;
    for (uint32_t u = 0; u < 400; u++) {
        memset(rooms, 0, sizeof rooms);
        for (uint32_t i = 0; i < MOST; i++) {
            Room    *r = &rooms[i];
            uint32_t none[SERVERS] = {JOBS, JOBS};
            samples[i] = (MaifsQSample){state_of(r, 0, none).in, r->u};
            gradient_fill(&rng, r->queue, 1, 1);
            gradient_fill(&rng, r->jobs + 3, 1, 1);
            gradient_fill(&rng, r->jobs + MAIFS_JOB + 3, 1, 1);
            for (uint32_t k = 0; k < JOBS; k++)  // from the job and from the queue
                r->u[k] = 0.5f * r->jobs[k * MAIFS_JOB + 3] + 0.3f * r->queue[0];
        }
        loss = maifs_q_imitate(q, NULL, samples, MOST);
    }
    assert_true(loss < 0.02);
}

static void fill_steps(MaifsQStep *steps, uint64_t seed) {
    Rng rng = {seed};
    memset(rooms, 0, sizeof rooms);
    for (uint32_t i = 0; i < MOST; i++) {
        uint32_t pick[SERVERS] = {(uint32_t)rng_below(&rng, 3), (uint32_t)rng_below(&rng, 3)};
        steps[i] = (MaifsQStep){.now = state_of(&rooms[i], 0, pick),
                                .next = state_of(&rooms[i], 1, pick),
                                .reward = rng_unit(&rng),
                                .discount = 0.5f};
        gradient_fill(&rng, rooms[i].pool, 2 * MAIFS_Q_POOL, 1);
        gradient_fill(&rng, rooms[i].servers, 2 * SERVERS * MAIFS_SERVER, 1);
        for (uint32_t k = 0; k < 4 * SERVERS; k++) {
            rooms[i].offers[k].own = rng_unit(&rng) * 3;
            rooms[i].offers[k].gain = rng_unit(&rng);
        }
    }
}

static void test_threads(void **state) {
    (void)state;
    MaifsQ    *one = open_q(11), *two = open_q(11);
    Team      *team;
    MaifsQStep steps[MOST];
    assert_int_equal(team_create(&team, 2, NULL), ERR_OK);
    for (uint32_t u = 0; u < 5; u++) {
        fill_steps(steps, u + 1);
        double a = maifs_q_train(one, NULL, steps, MOST), b = maifs_q_train(two, team, steps, MOST);
        assert_true(a == b);
    }
    FloatVec x = maifs_q_state(one), y = maifs_q_state(two);
    assert_memory_equal(x.at, y.at, x.n * sizeof *x.at);
    team_destroy(team);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learns_a_game_of_coordination),
        cmocka_unit_test(test_learns_what_offers_are_worth),
        cmocka_unit_test(test_looks_ahead),
        cmocka_unit_test(test_is_not_misled_by_the_state),
        cmocka_unit_test(test_imitates),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
