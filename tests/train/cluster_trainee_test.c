// Training of cluster policies: the same bytes with any number of threads and after any resume;
// checkpoints of another training are refused; drl_single learns to do as its teacher does.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "policy/policies.h"
#include "train/cluster_evaluator.h"
#include "train/maifs_episode.h"
#include "train/trainees.h"
#include "tests/runner.h"

static const TrainPlan tiny = {
    .generations = {1, 1, 1},
    .episodes = 2,
    .updates = 4,
    .es = {.pairs = 1, .runs = 2, .sigma = 0.05f, .step = 0.1f, .momentum = 0.8f, .clip = 0.04f},
    .check = 1,
    .tolerance = 0.01};

typedef struct Fixture {
    Arena             arena;
    ClusterCurriculum curriculum;
    ClusterBaseline   baseline;
    ClusterEvaluator  evaluator;
    Trainer           trainer;
} Fixture;

static void *usual(const ClusterPolicy *p, Arena *a) {
    void    *to = arena_alloc(a, 1, p->settings_size, 16);
    Settings s = {p->rows, p->n_rows, to, a};
    settings_default(&s);
    return to;
}

typedef enum Kind { DRL, MAIFS, STANCE, KINDS } Kind;

static Trainee *open_trainee(Fixture *f, Kind kind, const void *settings, uint64_t seed) {
    Trainee *t = NULL;
    if (kind == DRL) return drl_trainee_open(&f->curriculum, settings, 12, seed, &f->arena);
    if (kind == MAIFS) return maifs_trainee_open(&f->curriculum, settings, 2, seed, &f->arena);
    assert_int_equal(stance_trainee_open(&f->curriculum, settings, 1, seed, &f->arena, &t), ERR_OK);
    return t;
}

static void fixture_open(Fixture *f, Kind kind, uint32_t threads, TrainPlan plan, uint64_t seed) {
    static const char *const traces[] = {"synth:philly_small", "synth:openb_small"};
    static const char *const servers[] = {"2"};
    const ClusterPolicy *policy = kind == DRL ? &cluster_policy_drl_single : &cluster_policy_maifs;
    ClusterCurriculumOptions o = {
        .traces = traces, .servers = servers, .n_traces = 2, .n_servers = 1, .jobs = 24};
    memset(f, 0, sizeof *f);
    assert_int_equal(arena_init(&f->arena, (size_t)8 << 30), ERR_OK);
    assert_int_equal(cluster_curriculum_open(&o, &f->arena, &f->curriculum), ERR_OK);
    void *settings = usual(policy, &f->arena);
    f->baseline = (ClusterBaseline){.name = "srtf", .policy = &cluster_policy_srtf};
    f->evaluator = (ClusterEvaluator){.curriculum = &f->curriculum,
                                      .policy = policy,
                                      .baselines = &f->baseline,
                                      .n_baselines = 1,
                                      .traces = 1,
                                      .makespan_weight = 0.5};
    cluster_evaluator_init(&f->evaluator, &f->arena);
    f->evaluator.evaluator.threads = threads;
    f->trainer = (Trainer){.trainee = open_trainee(f, kind, settings, seed),
                           .evaluator = &f->evaluator.evaluator,
                           .plan = plan,
                           .seed = seed,
                           .threads = threads};
    assert_int_equal(trainer_open(&f->trainer, &f->arena), ERR_OK);
}

static void fixture_close(Fixture *f) {
    trainer_close(&f->trainer);
    arena_finish(&f->arena);
}

static TrainReport step(Fixture *f) {
    TrainReport r;
    assert_int_equal(trainer_step(&f->trainer, &f->arena, &r), ERR_OK);
    return r;
}

static void check_same(const Fixture *a, const Fixture *b) {
    const Trainer *x = &a->trainer, *y = &b->trainer;
    assert_int_equal(x->generation, y->generation);
    assert_memory_equal(x->trainee->state.at, y->trainee->state.at,
                        x->trainee->state.n * sizeof(float));
    assert_memory_equal(x->best.at, y->best.at, x->best.n * sizeof(float));
    assert_true(x->best_score.objective == y->best_score.objective);
}

static void test_threads(void **state) {
    (void)state;
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        Fixture one, two;
        fixture_open(&one, (Kind)kind, 1, tiny, 5);
        fixture_open(&two, (Kind)kind, 2, tiny, 5);
        for (uint32_t i = 0; i < 3; i++) {
            TrainReport r = step(&one);
            assert_int_equal(r.stage, i);
            assert_true(r.checked);
            step(&two);
            check_same(&one, &two);
        }
        assert_int_equal(trainer_total(&one.trainer), 3);
        fixture_close(&one);
        fixture_close(&two);
    }
}

static void stop_and_go(Kind kind, const char *path) {
    Fixture   whole, first, second;
    TrainPlan plan = tiny;
    plan.generations[1] = 2;
    fixture_open(&whole, kind, 1, plan, 5);
    fixture_open(&first, kind, 1, plan, 5);
    for (uint32_t i = 0; i < 4; i++) step(&whole);
    for (uint32_t i = 0; i < 2; i++) step(&first);
    assert_int_equal(trainer_save(&first.trainer, path, &first.arena), ERR_OK);
    fixture_close(&first);
    fixture_open(&second, kind, 1, plan, 6);  // another seed is another training
    assert_int_not_equal(trainer_resume(&second.trainer, path, &second.arena), ERR_OK);
    fixture_close(&second);
    fixture_open(&second, (Kind)((kind + 1) % KINDS), 1, plan, 5);  // another policy
    assert_int_not_equal(trainer_resume(&second.trainer, path, &second.arena), ERR_OK);
    fixture_close(&second);
    fixture_open(&second, kind, 1, plan, 5);
    assert_int_equal(trainer_resume(&second.trainer, path, &second.arena), ERR_OK);
    for (uint32_t i = 2; i < 4; i++) step(&second);
    check_same(&whole, &second);
    fixture_close(&second);
    fixture_close(&whole);
}

static void test_resumed(void **state) {
    (void)state;
    const char *dir = getenv("TMPDIR");
    char        path[256];
    (void)snprintf(path, sizeof path, "%s/cluster_train_test.%ld", dir != NULL ? dir : "/tmp",
                   (long)getpid());
    stop_and_go(DRL, path);
    stop_and_go(MAIFS, path);
    stop_and_go(STANCE, path);
    assert_int_equal(unlink(path), 0);
}

static double jct_of(Fixture *f) {
    const Trainer *t = &f->trainer;
    Score          s;
    assert_int_equal(
        t->evaluator->evaluate(t->evaluator, t->trainee, t->trainee->params.at, &f->arena, &s),
        ERR_OK);
    return s.values[CLUSTER_SCORE_JCT];
}

// After imitation the network chooses as the rule does, so that all runs end as the rule's.
static void test_drl_learns_its_rule(void **state) {
    (void)state;
    Fixture   f;
    TrainPlan plan = tiny;
    plan.generations[0] = 4;
    fixture_open(&f, false, 2, plan, 3);
    Trainee *t = f.trainer.trainee;
    Rng      rng = {4};
    for (size_t i = 0; i < t->head.n; i++) t->head.at[i] = 2 * rng_unit(&rng) - 1;
    double before = jct_of(&f);
    for (uint32_t i = 0; i < 4; i++) {
        double     loss;
        TrainRound r = {true, 3, i, 8, 120, 2, f.trainer.team};
        assert_int_equal(t->train(t, &r, &f.arena, &loss), ERR_OK);
    }
    double after = jct_of(&f);
    assert_true(before > 0.1 && after < 0.02 && after > -0.02);
    fixture_close(&f);
}

// Steps of a run, written as floats and read back.
static void test_steps_are_kept(void **state) {
    (void)state;
    Fixture s;
    fixture_open(&s, true, 1, tiny, 8);
    MaifsEpisodeOptions o = {.settings = s.trainer.trainee->settings,
                             .w = s.trainer.trainee->params.at,
                             .epsilon = 0.1f,
                             .keep = 50};
    ClusterTrainRun     x = cluster_curriculum_draw(&s.curriculum, 2, 1);
    MaifsEpisode        e = {0};
    uint32_t            took = 0, ends = 0;
    assert_int_equal(maifs_episode_run(&x, &o, &s.arena, &e), ERR_OK);
    assert_true(e.n_steps > 10);
    for (uint32_t i = 0; i < e.n_steps; i++) {
        const MaifsQStep *a = &e.steps[i];
        float            *room = arena_new(&s.arena, float, maifs_step_size(a));
        maifs_step_write(a, room);
        MaifsQStep b = maifs_step_read(room);
        assert_true(a->reward <= 0 && a->reward == b.reward && a->discount == b.discount);
        assert_int_equal(a->now.n_took, b.now.n_took);
        assert_memory_equal(a->now.offers, b.now.offers, 2 * a->now.n_took * sizeof *a->now.offers);
        assert_memory_equal(a->now.pool, b.now.pool, MAIFS_Q_POOL * sizeof(float));
        assert_memory_equal(a->now.in.queue, b.now.in.queue, MAIFS_QUEUE * sizeof(float));
        took += a->now.n_took;
        ends += a->discount == 0;
    }
    assert_true(took > 0 && ends > 0);
    fixture_close(&s);
}

static void test_draws(void **state) {
    (void)state;
    Fixture s;
    bool    calm = false, crowded = false, other = false;
    fixture_open(&s, false, 1, tiny, 1);
    for (uint32_t i = 0; i < 200; i++) {
        ClusterTrainRun x = cluster_curriculum_draw(&s.curriculum, 9, i),
                        again = cluster_curriculum_draw(&s.curriculum, 9, i);
        assert_true(x.seed == again.seed && x.load == again.load && x.scenario == again.scenario);
        assert_true(x.seed >= CLUSTER_SCENARIO_TRAIN && x.seed < CLUSTER_CHECK_SEED);
        calm = calm || x.load < 1;
        crowded = crowded || x.load > 2;
        other = other || x.scenario != s.curriculum.scenarios;
    }
    assert_true(calm && crowded && other);
    for (uint32_t i = 0; i < cluster_curriculum_cells(&s.curriculum); i++)
        assert_true(cluster_curriculum_cell(&s.curriculum, i, 1).seed >= CLUSTER_CHECK_SEED);
    fixture_close(&s);
}

static void test_plan(void **state) {
    (void)state;
    for (uint32_t stages = 1; stages < 8; stages++)
        for (uint32_t n = 1; n < 40; n++) {
            TrainPlan p = train_plan(&cluster_train_defaults, n, stages);
            uint32_t  sum = 0;
            for (uint32_t i = 0; i < TRAIN_STAGES; i++) {
                sum += p.generations[i];
                assert_true((stages >> i & 1) != 0 || p.generations[i] == 0);
            }
            assert_int_equal(sum, n);
        }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_drl_learns_its_rule),
        cmocka_unit_test(test_steps_are_kept),
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
