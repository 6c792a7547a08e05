// The public profiles, if available: their numbers and figures as published.
// Folder: $COTENANT_CLUSTER_DATA, or ../shared/data/cluster next to the source.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cluster/profile/class_assignment.h"
#include "cluster/profile/profiles.h"
#include "cluster/trace/job_trace.h"
#include "tests/cluster/slow_profile.h"
#include "tests/runner.h"

static Arena arena;
static char  folder[1024];

static int begin(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 30) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static const char *at(const char *file) { return arena_printf(&arena, "%s/%s", folder, file); }

static void add(ClusterProfiles *p, const char *file, const ProfileOptions *o) {
    if (profile_add(p, at(file), o, &arena) != ERR_OK) fail_msg("%s", err_why());
    for (uint32_t i = 0; i < p->n; i++) assert_true(slow_profile_monotone(&p->at[i]));
}

static ClusterProfiles empty(void) {
    ClusterProfiles p;
    assert_int_equal(profile_empty(&arena, &p), ERR_OK);
    return p;
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-7 * fmax(1, fabs(b)); }

static void synergy(void **state) {
    (void)state;
    static const char *const sets[] = {"models", "models-4", "models-5", "models-6"};
    ClusterProfiles          p = empty();
    for (int i = 0; i < 4; i++) {
        p = empty();
        add(&p, "synergy/sensitivity_long.csv", &(ProfileOptions){.set = sets[i]});
        add(&p, "synergy/models_meta.csv", &(ProfileOptions){.set = sets[i]});
        assert_int_equal(p.n, 12);
    }
    p = empty();
    add(&p, "synergy/sensitivity_long.csv", NULL);
    add(&p, "synergy/models_meta.csv", NULL);
    const ClusterProfile *a = &p.at[profile_find(&p, "alexnet")];
    assert_true(a->speed.rows == 9 && a->speed.columns == 5 && a->iteration_s[0] == 0.6);
    assert_true(profile_speed(a, 1, 62.5) == 0.3 && profile_speed(a, 12, 125) == 2.94);
    assert_true(near(profile_speed(a, 4.5, 62.5), 1.39) && profile_speed(a, 24, 20.83) == 0.1);
    assert_true(near(profile_speed(a, 10.5, 125), 2.47));
}

static void synergy_ladders(void **state) {
    (void)state;
    static const struct {
        const char *model;
        double      cores, gb, speed;  // at the top
        uint32_t    rungs;
    } tops[] = {{"alexnet", 12, 125, 2.94, 6}, {"res18", 9, 62.5, 2.4, 5},
                {"m5", 6, 187.5, 2.5, 6},      {"mobilenet", 5, 62.5, 1.49, 3},
                {"res50", 4, 62.5, 1.15, 2},   {"deepspeech", 3, 62.5, 1, 1},
                {"bert", 3, 62.5, 1, 2},       {"shufflenet", 12, 125, 2.89, 6}};
    ClusterProfiles p = empty();
    add(&p, "synergy/sensitivity_long.csv", NULL);
    for (size_t i = 0; i < sizeof tops / sizeof *tops; i++) {
        const AllocLevels *l = &p.at[profile_find(&p, tops[i].model)].levels;
        const AllocLevel  *top = &l->at[l->n - 1];
        if (l->n != tops[i].rungs || top->cores != tops[i].cores || top->gb != tops[i].gb ||
            top->speed != tops[i].speed)
            fail_msg("%s: %u rungs, top %g cores %g GB %g", tops[i].model, l->n, top->cores,
                     top->gb, top->speed);
    }
    const AllocLevel *donor = p.at[profile_find(&p, "gnmt")].levels.at;
    assert_true(donor->cores == 1 && donor->gb == 20.83 && donor->speed == 1);
}

// 676 pairs: 6 % do not fit, 74 % gain; over those that fit a mean speed of 0.66.
static void check_pairs(const ClusterProfiles *p) {
    uint32_t n = 0, none = 0, gain = 0;
    double   sum = 0, both = 0;
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t k = 0; k < p->n; k++, n++) {
            double mine = profile_pair(p, i, k), its = profile_pair(p, k, i);
            none += !(mine > 0);
            gain += mine + its > 1;
            sum += mine;
            both += mine > 0 ? mine + its : 0;
        }
    assert_int_equal(n, 676);
    assert_int_equal(none, 40);
    assert_int_equal(gain, 498);
    assert_true(fabs(sum / (n - none) - 0.6567) < 5e-5 && fabs(both / (n - none) - 1.3134) < 1e-4);
}

static void gavel(void **state) {
    (void)state;
    ClusterProfiles p = empty();
    add(&p, "gavel/colocation_pairs.csv", NULL);
    check_pairs(&p);
    add(&p, "gavel/throughputs_single.csv", NULL);
    assert_true(p.n == 26 && p.n_types == 3);
    const ClusterProfile *c = &p.at[profile_find(&p, "Transformer (batch size 64)")];
    assert_true(near(c->iteration_s[profile_type(&p, "v100")], 1 / 8.61775899193302));
    assert_true(near(profile_spread(c, 8, 8), 17.010354252487097 / 49.650700211670745));
    static const char *const types[] = {"k80", "p100"};
    for (int i = 0; i < 2; i++)
        add(&p, "gavel/colocation_pairs.csv", &(ProfileOptions){.gpu_type = types[i]});
}

static void gavel_json(void **state) {
    (void)state;
    static const char *const others[] = {
        "gavel/physical_cluster_throughputs.json", "shockwave/actual_throughputs.json",
        "shockwave/tacc_throughputs.json", "shockwave/wisr_throughputs.json"};
    ClusterProfiles p = empty(), csv = empty();
    add(&p, "gavel/simulation_throughputs.json", NULL);
    check_pairs(&p);
    add(&csv, "gavel/throughputs_single.csv", NULL);
    assert_int_equal(p.n, csv.n);
    for (uint32_t i = 0; i < csv.n; i++) {
        uint32_t x = profile_find(&p, csv.at[i].name);
        assert_true(near(p.at[x].iteration_s[0], csv.at[i].iteration_s[0]));
        assert_true(near(profile_spread(&p.at[x], 4, 4), profile_spread(&csv.at[i], 4, 4)));
    }
    for (int i = 0; i < 4; i++) {
        p = empty();
        add(&p, others[i], NULL);
        assert_true(p.n > 0);
    }
}

// Gavel's 26 configurations are of seven of the shipped classes.
static void gavel_folds(void **state) {
    (void)state;
    ClusterProfiles p;
    ProfileOptions  fold = {.fold = true};
    assert_int_equal(profile_load(NULL, &arena, &p), ERR_OK);
    uint32_t n = p.n, a = profile_find(&p, "res50"), b = profile_find(&p, "lstm");
    double   iteration_s = p.at[a].iteration_s[0];
    add(&p, "gavel/colocation_pairs.csv", &fold);
    add(&p, "gavel/throughputs_single.csv", &fold);
    add(&p, "chronus/model_info.json", &fold);
    assert_true(p.n == n && p.at[a].iteration_s[0] == iteration_s);
    assert_true(near(profile_pair(&p, a, b), 0.48877333) && profile_pair(&p, b, a) < 0.4212);
    assert_true(near(profile_spread(&p.at[profile_find(&p, "vgg")], 4, 2), 0.576427514971673));
}

static void chronus(void **state) {
    (void)state;
    ClusterProfiles p = empty();
    add(&p, "chronus/model_info.json", NULL);
    assert_int_equal(p.n, 5);
    const ClusterProfile *a = &p.at[profile_find(&p, "alexnet")];
    assert_true(near(profile_spread(a, 4, 2), 0.3972922047776267));
    assert_true(profile_spread(&p.at[profile_find(&p, "inception_v3")], 2, 2) == 1);
}

// Every model that the public traces name is a shipped class or another name of one.
static void traces_find_classes(void **state) {
    (void)state;
    static const char *const files[] = {"muri/trace1.csv",
                                        "muri/job_type_1.csv",
                                        "tiresias/60_job.csv",
                                        "chronus/trace_job_Philly_MIX1.csv",
                                        "gavel/traces/msr_seed0/0e4a51.trace",
                                        "golden/synergy/static100.trace",
                                        "pollux/workloads/workload-1.csv"};
    ClusterProfiles          p;
    ClassAssignment          s;
    JobList                  l;
    assert_int_equal(profile_load(NULL, &arena, &p), ERR_OK);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (trace_read(at(files[i]), "auto", NULL, &arena, &l) != ERR_OK) fail_msg("%s", err_why());
        assert_int_equal(class_assignment_draw(&p, &l, NULL, (Rng){1}, &arena, &s), ERR_OK);
        if (s.by_name + s.by_alias != l.n) fail_msg("%s: %u jobs", files[i], s.by_model + s.drawn);
    }
    assert_int_equal(trace_read(at("philly/philly_jobs.csv"), "auto", NULL, &arena, &l), ERR_OK);
    assert_int_equal(class_assignment_draw(&p, &l, NULL, (Rng){1}, &arena, &s), ERR_OK);
    assert_int_equal(s.drawn, 82247);
}

TEST_MAIN() {
    const char *given = getenv("COTENANT_CLUSTER_DATA"), *src = getenv("SRC");
    (void)snprintf(folder, sizeof folder, "%s%s",
                   given != NULL ? given
                   : src != NULL ? src
                                 : ".",
                   given != NULL ? "" : "/../shared/data/cluster");
    if (access(folder, R_OK) != 0) {
        printf("skipped: no public profiles in %s; COTENANT_CLUSTER_DATA names their folder\n",
               folder);
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synergy),
        cmocka_unit_test(synergy_ladders),
        cmocka_unit_test(gavel),
        cmocka_unit_test(gavel_json),
        cmocka_unit_test(gavel_folds),
        cmocka_unit_test(chronus),
        cmocka_unit_test(traces_find_classes),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
