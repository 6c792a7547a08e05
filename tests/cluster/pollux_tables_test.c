// Pollux' tables: goodput worked out by hand, errors, and the published files where they are.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/file.h"
#include "cluster/pollux_tables.h"
#include "cluster/profile/profiles.h"
#include "cluster/trace/iteration_times.h"
#include "tests/runner.h"

static Arena arena;

static int begin(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 28) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static Err parse(PolluxApp *x, const char *name, const char *text) {
    return pollux_app_parse(x, name, arena_str(&arena, text), strlen(text));
}

#define TRAINING "progress,iteration,metric,grad_sqr,grad_var\n"
#define STEPS    "placement,local_bsz,step_time,sync_time\n"
#define SCALED   "num_nodes,num_replicas,local_bsz,step_time,sync_time\n"

// Batches of 8 and 32: an iteration makes progress of 1 and 2, so one of 16 makes 1.5.
static PolluxApp small(void) {
    PolluxApp x = {.name = "a"};
    assert_int_equal(parse(&x, "a/validation-32.csv", TRAINING "60,30,0,1,1\n100,50,0,1,1\n"),
                     ERR_OK);
    assert_int_equal(parse(&x, "a/validation-8.csv", TRAINING "100,100,0,1,1\n"), ERR_OK);
    assert_int_equal(parse(&x, "a/placements.csv",
                           STEPS "1,8,0.1,0\n1,4,0.08,0\n2,8,0.12,0\n11,8,0.15,0\n2,32,0.01,0\n"),
                     ERR_OK);
    assert_int_equal(parse(&x, "a/scalability.csv", SCALED "2,8,4,0.1,0.1\n"), ERR_OK);
    return x;
}

static void test_by_hand(void **state) {
    (void)state;
    uint32_t  servers = 0;
    PolluxApp x = small();
    assert_true(x.progress == 100 && x.n_batches == 2);
    assert_true(fabs(pollux_app_goodput(&x, 1, &servers) - 10) < 1e-9 && servers == 1);
    assert_true(fabs(pollux_app_goodput(&x, 2, &servers) - 12.5) < 1e-9 && servers == 1);
    assert_true(fabs(x.goodput[2][2] - 10) < 1e-9);
    assert_true(fabs(pollux_app_goodput(&x, 8, &servers) - 20) < 1e-9 && servers == 2);
    assert_true(pollux_app_goodput(&x, 3, &servers) == 0);
}

static void test_errors(void **state) {
    (void)state;
    static const struct {
        const char *name, *text, *why;
    } wrong[] = {
        {"a/other.csv", TRAINING, "is none of Pollux' files"},
        {"a/validation-8.csv", TRAINING "1,1,0,1,1\n", "batch size for the second time"},
        {"a/validation-0.csv", TRAINING "1,1,0,1,1\n", "is none of"},
        {"a/validation-9.csv", TRAINING, "has no rows"},
        {"a/validation-9.csv", TRAINING "1,0,0,1,1\n", "'0' is no number"},
        {"a/validation-9.csv", "a,b\n1,2\n", "lacks the column progress"},
        {"a/placements.csv", STEPS "1x,8,0.1,0\n", "give a digit per server"},
        {"a/placements.csv", STEPS "999999999,8,0.1,0\n", "give a digit per server"},
        {"a/placements.csv", STEPS "1,8,nan,0\n", "'nan' is no number"},
        {"a/placements.csv", STEPS "1,8,0.1\n", "3 fields where there should be 4"},
        {"a/scalability.csv", SCALED "17,20,8,0.1,0\n", "'17' is no number"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        PolluxApp x = small();
        assert_int_equal(parse(&x, wrong[i].name, wrong[i].text), ERR_PARSE);
        if (strstr(err_why(), wrong[i].why) == NULL)
            fail_msg("'%s' does not say '%s'", err_why(), wrong[i].why);
    }
    PolluxApp none = {.name = "a"};
    assert_int_equal(parse(&none, "a/placements.csv", STEPS "1,8,0.1,0\n"), ERR_PARSE);
}

static void test_published(void **state) {
    (void)state;
    const char     *root = getenv("COTENANT_CLUSTER_DATA");
    const char     *folder = arena_printf(&arena, "%s/pollux/traces", root != NULL ? root : ".");
    ClusterProfiles p;
    IterationTimes  rates;
    if (!file_is_folder(folder)) skip();
    const ProfileOptions fold = {.fold = true};
    assert_int_equal(profile_load(NULL, &arena, &p), ERR_OK);
    assert_int_equal(profile_add(&p, folder, &fold, &arena), ERR_OK);
    assert_int_equal(iteration_times_read(folder, NULL, &arena, &rates), ERR_OK);
    static const char *const apps[] = {"bert",     "cifar10", "deepspeech2",
                                       "imagenet", "ncf",     "yolov3"};
    for (size_t i = 0; i < sizeof apps / sizeof *apps; i++) {
        const ClusterProfile *c = &p.at[profile_known(&p, apps[i])];
        print_message("%-12s", apps[i]);
        for (uint32_t g = 1; g <= 64; g *= 2) print_message(" %6.2f", profile_scaling(c, g));
        print_message("  on 2 and 4 servers %.2f %.2f\n", profile_spread(c, 4, 2),
                      profile_spread(c, 4, 4));
        assert_true(c->scaling.rows == 12 && profile_scaling(c, 1) == 1);
        assert_true(profile_scaling(c, 4) > 1 && profile_scaling(c, 4) <= 4.2);
        assert_non_null(iteration_times_find(&rates, apps[i], 8));
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_published),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
