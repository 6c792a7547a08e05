// Training of relmas: the same bytes with any number of threads and after any resume; it learns
// from its teachers, and checkpoints of another training are refused.
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
#include "train/chip_evaluator.h"
#include "train/trainees.h"
#include "tests/runner.h"

enum { HIDDEN = 6 };

static const ChipPolicy *const baselines[] = {&chip_policy_edf, NULL};

static const TrainPlan tiny = {
    .generations = {1, 1, 1},
    .episodes = 2,
    .updates = 6,
    .es = {.pairs = 1, .runs = 12, .sigma = 0.06f, .step = 0.1f, .momentum = 0.8f},
    .check = 1,
    .tolerance = 0.006,
    .beat_rule = true};

typedef struct Fixture {
    Arena          arena;
    ChipCurriculum curriculum;
    ChipEvaluator  evaluator;
    Trainer        trainer;
} Fixture;

static RelmasSettings usual(Arena *a) {
    RelmasSettings s;
    Settings       rows = {chip_policy_relmas.rows, chip_policy_relmas.n_rows, &s, a};
    settings_default(&rows);
    return s;
}

static void open_with(Fixture *f, uint32_t threads, uint32_t traces, TrainPlan plan, uint64_t seed,
                      const RelmasSettings *settings) {
    static const char *const chips[] = {"2+2"}, *const mixes[] = {"squeezenet1_1,lstm_kws"};
    ChipCurriculumOptions o = {.chips = chips, .mixes = mixes, .n_chips = 1, .n_mixes = 1};
    assert_int_equal(chip_curriculum_open(&o, &f->arena, &f->curriculum), ERR_OK);
    f->evaluator = (ChipEvaluator){.curriculum = &f->curriculum,
                                   .policy = &chip_policy_relmas,
                                   .baselines = baselines,
                                   .traces = traces};
    chip_evaluator_init(&f->evaluator);
    f->evaluator.evaluator.threads = threads;
    f->trainer =
        (Trainer){.trainee = relmas_trainee_open(&f->curriculum, settings, HIDDEN, seed, &f->arena),
                  .evaluator = &f->evaluator.evaluator,
                  .plan = plan,
                  .seed = seed,
                  .threads = threads};
    assert_int_equal(trainer_open(&f->trainer, &f->arena), ERR_OK);
}

static void fixture_open(Fixture *f, uint32_t threads, TrainPlan plan, uint64_t seed) {
    memset(f, 0, sizeof *f);
    assert_int_equal(arena_init(&f->arena, (size_t)4 << 30), ERR_OK);
    RelmasSettings s = usual(&f->arena);
    open_with(f, threads, 1, plan, seed, &s);
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
    Fixture one, two;
    fixture_open(&one, 1, tiny, 5);
    fixture_open(&two, 2, tiny, 5);
    for (uint32_t i = 0; i < 3; i++) {
        TrainReport r = step(&one);
        assert_int_equal(r.stage, i);
        double mean = r.score.values[CHIP_SCORE_MEAN];
        assert_true(r.checked && mean > 0 && mean <= 1);
        assert_true(i < TRAIN_FINETUNE || (r.fitness > 0 && r.fitness <= 1));
        step(&two);
        check_same(&one, &two);
    }
    assert_int_equal(trainer_total(&one.trainer), 3);
    fixture_close(&one);
    fixture_close(&two);
}

static void test_resumed(void **state) {
    (void)state;
    Fixture     whole, first, second;
    const char *dir = getenv("TMPDIR");
    char        path[256];
    (void)snprintf(path, sizeof path, "%s/train_test.%ld", dir != NULL ? dir : "/tmp",
                   (long)getpid());
    fixture_open(&whole, 1, tiny, 5);
    fixture_open(&first, 1, tiny, 5);
    for (uint32_t i = 0; i < 3; i++) step(&whole);
    step(&first);
    assert_int_equal(trainer_save(&first.trainer, path, &first.arena), ERR_OK);
    fixture_close(&first);
    fixture_open(&second, 1, tiny, 6);  // another seed is another training
    assert_int_not_equal(trainer_resume(&second.trainer, path, &second.arena), ERR_OK);
    fixture_close(&second);
    fixture_open(&second, 1, tiny, 5);
    assert_int_equal(trainer_resume(&second.trainer, path, &second.arena), ERR_OK);
    step(&second);
    step(&second);
    check_same(&whole, &second);
    fixture_close(&second);
    fixture_close(&whole);
    assert_int_equal(unlink(path), 0);
}

// The heuristic with a bad weight: its teachers are better, and so is the network after imitation.
static void test_learns(void **state) {
    (void)state;
    Fixture   f;
    TrainPlan plan = tiny;
    plan.generations[1] = plan.generations[2] = 0;
    plan.generations[0] = plan.check = 3;
    plan.episodes = 4;
    plan.updates = 60;
    memset(&f, 0, sizeof f);
    assert_int_equal(arena_init(&f.arena, (size_t)4 << 30), ERR_OK);
    RelmasSettings s = usual(&f.arena);
    s.size = s.size_units = 0;
    open_with(&f, 2, 2, plan, 3, &s);
    double      before = f.trainer.rule_score.values[CHIP_SCORE_MEAN];
    TrainReport r = step(&f);
    for (uint32_t i = 1; i < 3; i++) r = step(&f);
    assert_true(r.checked && r.score.values[CHIP_SCORE_MEAN] > before + 0.02);
    fixture_close(&f);
}

static void test_draws(void **state) {
    (void)state;
    Fixture s;
    fixture_open(&s, 1, tiny, 1);
    bool firm = false, burst = false, full = false, scarce = false;
    for (uint32_t i = 0; i < 200; i++) {
        ChipTrainRun x = chip_curriculum_draw(&s.curriculum, 9, i),
                     again = chip_curriculum_draw(&s.curriculum, 9, i);
        assert_true(x.seed == again.seed && x.load == again.load);
        assert_true(x.seed >= CHIP_TRAIN_SEED && x.seed < CHIP_CHECK_SEED);
        firm = firm || x.firm;
        burst = burst || x.burst > 0;
        full = full || x.bandwidth >= 1;
        scarce = scarce || x.bandwidth < 0.4;
    }
    assert_true(firm && burst && full && scarce);
    for (uint32_t i = 0; i < chip_curriculum_cells(&s.curriculum); i++)
        assert_true(chip_curriculum_cell(&s.curriculum, i, 1).seed >= CHIP_CHECK_SEED);
    fixture_close(&s);
}

static void test_plan(void **state) {
    (void)state;
    for (uint32_t stages = 1; stages < 8; stages++)
        for (uint32_t n = 1; n < 40; n++) {
            TrainPlan p = train_plan(&chip_train_defaults, n, stages);
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
        cmocka_unit_test(test_threads), cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_learns),  cmocka_unit_test(test_draws),
        cmocka_unit_test(test_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
