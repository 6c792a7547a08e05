// Training of cluster policies: the same bytes whatever the threads and however often it stops;
// what is saved is refused where it does not belong; drl_single learns what its teacher does.
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
#include "train/cluster_train.h"
#include "train/drl_pupil.h"
#include "train/maifs_episode.h"
#include "train/maifs_pupil.h"
#include "tests/runner.h"

static const ClusterPlan tiny = {.generations = {1, 1, 1},
                                 .episodes = 2,
                                 .updates = 4,
                                 .pairs = 1,
                                 .runs = 2,
                                 .check = 1,
                                 .sigma = 0.05f,
                                 .step = 0.1f};

typedef struct School {
    Arena         arena;
    ClusterCourse course;
    Runs         *runs;
    ClusterRival  rival;
    ClusterTrain  train;
} School;

static void *usual(const ClusterPolicy *p, Arena *a) {
    void    *to = arena_alloc(a, 1, p->settings_size, 16);
    Settings s = {p->rows, p->n_rows, to, a};
    settings_default(&s);
    return to;
}

static void school_open(School *s, bool maifs, uint32_t threads, ClusterPlan plan, uint64_t seed) {
    static const char *const traces[] = {"synth:philly_small", "synth:openb_small"};
    static const char *const servers[] = {"2"};
    ClusterCourseOptions     o = {
            .traces = traces, .servers = servers, .n_traces = 2, .n_servers = 1, .jobs = 24};
    memset(s, 0, sizeof *s);
    assert_int_equal(arena_init(&s->arena, (size_t)8 << 30), ERR_OK);
    assert_int_equal(cluster_course_open(&o, &s->arena, &s->course), ERR_OK);
    assert_int_equal(runs_create(&s->runs, threads, &s->arena), ERR_OK);
    s->rival = (ClusterRival){.name = "srtf", .player = {&cluster_policy_srtf, NULL, NULL}};
    s->train = (ClusterTrain){.plan = plan, .seed = seed};
    s->train.gauge = (ClusterGauge){.course = &s->course,
                                    .runs = s->runs,
                                    .rivals = &s->rival,
                                    .n_rivals = 1,
                                    .traces = 1,
                                    .weight = 0.5};
    Err e = maifs ? maifs_pupil_open(usual(&cluster_policy_maifs, &s->arena), 2, seed, &s->arena,
                                     &s->train.pupil)
                  : drl_pupil_open(12, usual(&cluster_policy_drl_single, &s->arena), seed,
                                   &s->arena, &s->train.pupil);
    assert_int_equal(e, ERR_OK);
    assert_int_equal(cluster_train_open(&s->train, &s->arena), ERR_OK);
}

static void school_close(School *s) {
    runs_destroy(s->runs);
    arena_finish(&s->arena);
}

static ClusterReport step(School *s) {
    ClusterReport r;
    assert_int_equal(cluster_train_step(&s->train, &s->arena, &r), ERR_OK);
    return r;
}

static void check_same(const School *a, const School *b) {
    FloatVec x = a->train.pupil->state, y = b->train.pupil->state;
    assert_int_equal(a->train.generation, b->train.generation);
    assert_memory_equal(x.at, y.at, x.n * sizeof(float));
    assert_memory_equal(a->train.best.at, b->train.best.at, a->train.best.n * sizeof(float));
    assert_true(a->train.best_mark.score == b->train.best_mark.score);
}

static void test_threads(void **state) {
    (void)state;
    for (uint32_t maifs = 0; maifs < 2; maifs++) {
        School one, two;
        school_open(&one, maifs != 0, 1, tiny, 5);
        school_open(&two, maifs != 0, 2, tiny, 5);
        for (uint32_t i = 0; i < 3; i++) {
            ClusterReport r = step(&one);
            assert_int_equal(r.stage, i);
            assert_true(r.checked);
            step(&two);
            check_same(&one, &two);
        }
        assert_int_equal(cluster_train_total(&one.train), 3);
        school_close(&one);
        school_close(&two);
    }
}

static void stop_and_go(bool maifs, const char *path) {
    School      whole, first, second;
    ClusterPlan plan = tiny;
    plan.generations[1] = 2;
    school_open(&whole, maifs, 1, plan, 5);
    school_open(&first, maifs, 1, plan, 5);
    for (uint32_t i = 0; i < 4; i++) step(&whole);
    for (uint32_t i = 0; i < 2; i++) step(&first);
    assert_int_equal(cluster_train_save(&first.train, path, &first.arena), ERR_OK);
    school_close(&first);
    school_open(&second, maifs, 1, plan, 6);  // of another seed: another training
    assert_int_not_equal(cluster_train_resume(&second.train, path, &second.arena), ERR_OK);
    school_close(&second);
    school_open(&second, !maifs, 1, plan, 5);  // of another policy
    assert_int_not_equal(cluster_train_resume(&second.train, path, &second.arena), ERR_OK);
    school_close(&second);
    school_open(&second, maifs, 1, plan, 5);
    assert_int_equal(cluster_train_resume(&second.train, path, &second.arena), ERR_OK);
    for (uint32_t i = 2; i < 4; i++) step(&second);
    check_same(&whole, &second);
    school_close(&second);
    school_close(&whole);
}

static void test_resumed(void **state) {
    (void)state;
    const char *dir = getenv("TMPDIR");
    char        path[256];
    (void)snprintf(path, sizeof path, "%s/cluster_train_test.%ld", dir != NULL ? dir : "/tmp",
                   (long)getpid());
    stop_and_go(false, path);
    stop_and_go(true, path);
    assert_int_equal(unlink(path), 0);
}

// A network that was taught picks what the rule picks, so that all runs come out as the rule's.
static void test_drl_learns_its_rule(void **state) {
    (void)state;
    School      s;
    ClusterPlan plan = tiny;
    ClusterMark before, after;
    plan.generations[0] = 4;
    plan.episodes = 8;
    plan.updates = 120;
    school_open(&s, false, 2, plan, 3);
    Rng rng = {4};
    for (size_t i = 0; i < s.train.pupil->head.n; i++)
        s.train.pupil->head.at[i] = 2 * rng_unit(&rng) - 1;
    assert_int_equal(cluster_gauge_weights(&s.train.gauge, s.train.pupil, s.train.pupil->w.at,
                                           &s.arena, &before),
                     ERR_OK);
    for (uint32_t i = 0; i < 4; i++) {
        double      loss;
        PupilLesson l = {&s.course, s.runs, 3, i, plan.episodes, plan.updates, 0.5};
        assert_int_equal(s.train.pupil->imitate(s.train.pupil, &l, &s.arena, &loss), ERR_OK);
    }
    assert_int_equal(
        cluster_gauge_weights(&s.train.gauge, s.train.pupil, s.train.pupil->w.at, &s.arena, &after),
        ERR_OK);
    assert_true(before.jct > 0.1 && after.jct < 0.02 && after.jct > -0.02);
    school_close(&s);
}

// What was taken in a run, as floats and back.
static void test_steps_are_kept(void **state) {
    (void)state;
    School s;
    school_open(&s, true, 1, tiny, 8);
    MaifsEpisodeOptions o = {
        .settings = s.train.pupil->settings, .w = s.train.pupil->w.at, .epsilon = 0.1f, .keep = 50};
    ClusterCourseRun x = cluster_course_draw(&s.course, 2, 1);
    MaifsEpisode     e = {0};
    uint32_t         took = 0, ends = 0;
    assert_int_equal(maifs_episode_run(&x, &o, &s.arena, &e), ERR_OK);
    assert_true(e.n_steps > 10);
    for (uint32_t i = 0; i < e.n_steps; i++) {
        const MaifsQStep *a = &e.steps[i];
        float            *room = arena_new(&s.arena, float, maifs_step_size(a));
        maifs_step_write(a, room);
        MaifsQStep b = maifs_step_read(room);
        assert_true(a->reward <= 0 && a->reward == b.reward && a->discount == b.discount);
        assert_int_equal(a->now.n_took, b.now.n_took);
        assert_memory_equal(a->now.deals, b.now.deals, 2 * a->now.n_took * sizeof *a->now.deals);
        assert_memory_equal(a->now.pool, b.now.pool, MAIFS_Q_POOL * sizeof(float));
        assert_memory_equal(a->now.in.queue, b.now.in.queue, MAIFS_QUEUE * sizeof(float));
        took += a->now.n_took;
        ends += a->discount == 0;
    }
    assert_true(took > 0 && ends > 0);
    school_close(&s);
}

static void test_draws(void **state) {
    (void)state;
    School s;
    bool   calm = false, crowded = false, other = false;
    school_open(&s, false, 1, tiny, 1);
    for (uint32_t i = 0; i < 200; i++) {
        ClusterCourseRun x = cluster_course_draw(&s.course, 9, i),
                         again = cluster_course_draw(&s.course, 9, i);
        assert_true(x.seed == again.seed && x.load == again.load && x.scene == again.scene);
        assert_true(x.seed >= CLUSTER_SCENARIO_TRAIN && x.seed < CLUSTER_COURSE_CHECK);
        calm = calm || x.load < 1;
        crowded = crowded || x.load > 2;
        other = other || x.scene != s.course.scenes;
    }
    assert_true(calm && crowded && other);
    for (uint32_t i = 0; i < cluster_course_cells(&s.course); i++)
        assert_true(cluster_course_cell(&s.course, i, 1).seed >= CLUSTER_COURSE_CHECK);
    school_close(&s);
}

static void test_plan(void **state) {
    (void)state;
    for (uint32_t stages = 1; stages < 8; stages++)
        for (uint32_t n = 1; n < 40; n++) {
            ClusterPlan p = cluster_plan(n, stages);
            uint32_t    sum = 0;
            for (uint32_t i = 0; i < CLUSTER_STAGES; i++) {
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
