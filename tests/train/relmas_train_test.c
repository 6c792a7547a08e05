// Training: the same bytes whatever the threads and however often it stops; it learns what it is
// taught, and what is saved is refused when it does not fit.
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
#include "train/relmas_train.h"
#include "tests/runner.h"

enum { HIDDEN = 6 };

static const ChipPolicy *const rivals[] = {&chip_policy_edf, NULL};

static const TrainPlan tiny = {
    .generations = {1, 1, 1}, .episodes = 2, .updates = 6, .pairs = 1, .check = 1, .traces = 1};

typedef struct School {
    Arena       arena;
    Course      course;
    Runs       *runs;
    RelmasTrain train;
} School;

static void school_open(School *s, uint32_t threads, TrainPlan plan, uint64_t seed) {
    static const char *const chips[] = {"2+2"}, *const mixes[] = {"squeezenet1_1,lstm_kws"};
    CourseOptions o = {.chips = chips, .mixes = mixes, .n_chips = 1, .n_mixes = 1};
    memset(s, 0, sizeof *s);
    assert_int_equal(arena_init(&s->arena, (size_t)4 << 30), ERR_OK);
    assert_int_equal(course_open(&o, &s->arena, &s->course), ERR_OK);
    assert_int_equal(runs_create(&s->runs, threads, &s->arena), ERR_OK);
    RelmasSettings usual;
    Settings       rows = {chip_policy_relmas.rows, chip_policy_relmas.n_rows, &usual, &s->arena};
    settings_default(&rows);
    assert_int_equal(relmas_train_open(&s->train, &s->course, s->runs, rivals, &usual, HIDDEN, plan,
                                       seed, &s->arena),
                     ERR_OK);
}

static void school_close(School *s) {
    runs_destroy(s->runs);
    arena_finish(&s->arena);
}

static TrainReport step(School *s) {
    TrainReport r;
    assert_int_equal(relmas_train_step(&s->train, &s->arena, &r), ERR_OK);
    return r;
}

static void check_same(School *a, School *b) {
    FloatVec x = ddpg_state(a->train.ddpg), y = ddpg_state(b->train.ddpg);
    assert_int_equal(a->train.generation, b->train.generation);
    assert_memory_equal(x.at, y.at, x.n * sizeof(float));
    assert_memory_equal(a->train.best.at, b->train.best.at, a->train.best.n * sizeof(float));
    assert_true(a->train.best_mark.score == b->train.best_mark.score);
}

static void test_threads(void **state) {
    (void)state;
    School one, two;
    school_open(&one, 1, tiny, 5);
    school_open(&two, 2, tiny, 5);
    for (uint32_t i = 0; i < 3; i++) {
        TrainReport r = step(&one);
        assert_int_equal(r.stage, i);
        assert_true(r.checked && r.mark.mean > 0 && r.mark.mean <= 1 && r.sla > 0);
        step(&two);
        check_same(&one, &two);
    }
    assert_int_equal(relmas_train_total(&one.train), 3);
    school_close(&one);
    school_close(&two);
}

static void test_resumed(void **state) {
    (void)state;
    School      whole, first, second;
    const char *dir = getenv("TMPDIR");
    char        path[256];
    (void)snprintf(path, sizeof path, "%s/train_test.%ld", dir != NULL ? dir : "/tmp",
                   (long)getpid());
    school_open(&whole, 1, tiny, 5);
    school_open(&first, 1, tiny, 5);
    for (uint32_t i = 0; i < 3; i++) step(&whole);
    step(&first);
    assert_int_equal(relmas_train_save(&first.train, path, &first.arena), ERR_OK);
    school_close(&first);
    school_open(&second, 1, tiny, 6);  // of another seed: another training
    assert_int_not_equal(relmas_train_resume(&second.train, path, &second.arena), ERR_OK);
    school_close(&second);
    school_open(&second, 1, tiny, 5);
    assert_int_equal(relmas_train_resume(&second.train, path, &second.arena), ERR_OK);
    step(&second);
    step(&second);
    check_same(&whole, &second);
    school_close(&second);
    school_close(&whole);
    assert_int_equal(unlink(path), 0);
}

// Of a rule that is far off in one weight the tutors know better, and so does the network then.
static void test_learns(void **state) {
    (void)state;
    School    s;
    TrainPlan plan = {.generations = {3, 0, 0},
                      .episodes = 4,
                      .updates = 60,
                      .pairs = 1,
                      .check = 3,
                      .traces = 2};
    GaugeMark before;
    school_open(&s, 2, plan, 3);
    s.train.settings.size = s.train.settings.size_units = 0;
    assert_int_equal(gauge_weights(&s.train.gauge, NULL, &s.arena, &before), ERR_OK);
    TrainReport r = step(&s);
    for (uint32_t i = 1; i < 3; i++) r = step(&s);
    assert_true(r.checked && r.mark.mean > before.mean + 0.02);
    school_close(&s);
}

static void test_draws(void **state) {
    (void)state;
    School s;
    school_open(&s, 1, tiny, 1);
    bool firm = false, burst = false, full = false, scarce = false;
    for (uint32_t i = 0; i < 200; i++) {
        CourseRun x = course_draw(&s.course, 9, i), again = course_draw(&s.course, 9, i);
        assert_true(x.seed == again.seed && x.load == again.load);
        assert_true(x.seed >= COURSE_TRAIN && x.seed < COURSE_CHECK);
        firm = firm || x.firm;
        burst = burst || x.burst > 0;
        full = full || x.bandwidth >= 1;
        scarce = scarce || x.bandwidth < 0.4;
    }
    assert_true(firm && burst && full && scarce);
    for (uint32_t i = 0; i < course_cells(&s.course); i++)
        assert_true(course_cell(&s.course, i, 1).seed >= COURSE_CHECK);
    school_close(&s);
}

static void test_plan(void **state) {
    (void)state;
    for (uint32_t stages = 1; stages < 8; stages++)
        for (uint32_t n = 1; n < 40; n++) {
            TrainPlan p = train_plan(n, stages);
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
