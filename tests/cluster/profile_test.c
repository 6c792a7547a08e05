// Profiles from a few lines of text and as shipped: tables, allocation levels, lookups, job
// classes.
#include "cluster/profile/profiles.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cluster/profile/class_assignment.h"
#include "tests/cluster/slow_profile.h"
#include "tests/runner.h"

#define OWN                                                                                        \
    "class,aliases,weight,gpu_s,core_s,storage_s,resident_gb,data_gb,network_s,gpu_busy,"          \
    "gpu_memory_busy,gpu_gb,restart_s,speed_v100,speed_t4\n"

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

static ClusterProfiles shipped(void) {
    ClusterProfiles p;
    if (profile_load(NULL, &arena, &p) != ERR_OK) fail_msg("%s", err_why());
    return p;
}

static ClusterProfiles read_text(const char *text) {
    ClusterProfiles p;
    assert_int_equal(profile_empty(&arena, &p), ERR_OK);
    if (profile_add_text(&p, "p", text, strlen(text), NULL, &arena) != ERR_OK)
        fail_msg("%s", err_why());
    return p;
}

static void refuse(const char *text, const char *why) {
    ClusterProfiles p = shipped();
    uint32_t        n = p.n;
    double          first = p.at[0].speed.at[0][0];
    assert_int_not_equal(profile_add_text(&p, "p.csv", text, strlen(text), NULL, &arena), ERR_OK);
    if (strstr(err_why(), why) == NULL) fail_msg("'%s' does not say '%s'", err_why(), why);
    assert_true(p.n == n && p.at[0].speed.at[0][0] == first);
}

static void tables_are_monotone(void **state) {
    (void)state;
    ClusterProfiles p = shipped();
    assert_true(p.n >= 12 && p.n_types >= 4 && p.share_cores == 3 && p.share_gb == 62.5);
    for (uint32_t i = 0; i < p.n; i++) {
        assert_true(slow_profile_monotone(&p.at[i]));
        assert_true(fabs(profile_speed(&p.at[i], 3, 62.5) - 1) < 1e-12);
        assert_true(profile_spread(&p.at[i], 8, 1) == 1);
        assert_true(p.at[i].gpu_util > 0 && p.at[i].gpu_util <= 1 && p.at[i].restart_s > 0);
        assert_true(p.at[i].iteration_s[0] > 0);
        for (uint32_t t = 1; t < p.n_types; t++) assert_true(p.at[i].iteration_s[t] > 0);
        for (uint32_t k = 0; k < p.n; k++) {
            double mine = profile_pair(&p, i, k), its = profile_pair(&p, k, i);
            assert_true(mine >= 0 && mine <= 1 && (mine > 0) == (its > 0));
        }
    }
}

static void shipped_classes_differ_in_what_they_need(void **state) {
    (void)state;
    static const char *const donors[] = {"bert", "gnmt", "lstm", "transformer", "vae"};
    ClusterProfiles          p = shipped();
    for (int i = 0; i < 5; i++) {
        const ClusterProfile *c = &p.at[profile_find(&p, donors[i])];
        assert_true(profile_speed(c, 1, 16) > 0.999 && profile_speed(c, 16, 256) < 1.001);
    }
    const ClusterProfile *cpu = &p.at[profile_find(&p, "res18")];
    const ClusterProfile *both = &p.at[profile_find(&p, "alexnet")];
    const ClusterProfile *speech = &p.at[profile_find(&p, "deepspeech")];
    assert_true(profile_speed(cpu, 12, 62.5) > 2 && profile_speed(cpu, 1, 62.5) < 0.5);
    assert_true(profile_speed(both, 12, 128) > 1.2 * profile_speed(both, 12, 62.5));
    assert_true(profile_speed(speech, 12, 256) < 1.001 && profile_speed(speech, 2, 62.5) < 0.8);
    assert_true(profile_spread(both, 8, 2) < 0.6 && profile_spread(cpu, 8, 2) > 0.8);
}

static void synthetic_traces_find_their_classes(void **state) {
    (void)state;
    static const char *const models[] = {
#define X(name, cores, gb) name,
#include "cluster/trace/synth_model.def"
#undef X
    };
    ClusterProfiles p = shipped();
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        uint32_t x = profile_find(&p, models[i]);
        assert_true(x != PROFILE_NONE && p.at[x].weight == 1);
    }
}

static void folding_leaves_out_what_is_unknown(void **state) {
    (void)state;
    const char     *text = "gpu_type,model,scale_factor,steps_per_s\nv100,ResNet-50 (x),2,10\n"
                           "v100_unconsolidated,resnet50 (x),2,8\nv100,nobody,2,10\n";
    ClusterProfiles p = shipped();
    ProfileOptions  fold = {.fold = true};
    uint32_t        n = p.n, x = profile_find(&p, "res50");
    assert_int_equal(profile_add_text(&p, "p", text, strlen(text), &fold, &arena), ERR_OK);
    assert_true(p.n == n && fabs(profile_spread(&p.at[x], 2, 2) - 0.8) < 1e-12);
    const char *own = OWN "nobody,,1,0.5,3,0,10,0,1,0.8,0.4,4,7,1,0.5\n";
    assert_int_equal(profile_add_text(&p, "p", own, strlen(own), &fold, &arena), ERR_OK);
    assert_int_equal(p.n, n);
}

static void check_ladder(const ClusterProfiles *p, const ClusterProfile *c) {
    const AllocLevels *l = &c->levels;
    assert_true(l->n >= 1 && l->n <= PROFILE_ALLOC_LEVELS && l->usual < l->n);
    const AllocLevel *usual = &l->at[l->usual];
    assert_true(usual->cores == p->share_cores && usual->gb == p->share_gb && usual->share == 1);
    for (uint32_t i = 0; i < l->n; i++) {
        const AllocLevel *r = &l->at[i];
        assert_true(r->speed >= 0.9 * usual->speed - 1e-9);
        if (r->share == 1) assert_true(r->speed == profile_speed(c, r->cores, r->gb));
        if (i == 0) continue;
        assert_true(r->cores >= r[-1].cores && r->gb >= r[-1].gb && r->share >= r[-1].share);
        assert_true(r->speed >= r[-1].speed);
        if (i > l->usual) assert_true(r->speed >= 1.05 * r[-1].speed - 1e-9);
    }
    double most = c->speed.at[c->speed.rows - 1][c->speed.columns - 1];
    assert_true(l->at[l->n - 1].speed * 1.05 > most);
    double cost = l->at[0].cores / p->share_cores + l->at[0].gb / p->share_gb;
    assert_true(fabs(cost - slow_profile_cheapest(p, c, 0.9)) < 1e-9);
}

static void ladders_climb(void **state) {
    (void)state;
    ClusterProfiles p = shipped();
    for (uint32_t i = 0; i < p.n; i++) check_ladder(&p, &p.at[i]);
    const AllocLevels *donor = &p.at[profile_find(&p, "bert")].levels;
    assert_true(donor->at[0].cores < 1.01 && donor->at[0].gb < 21 && donor->at[0].speed > 0.9);
    assert_true(donor->usual == donor->n - 1);
    const AllocLevels *hungry = &p.at[profile_find(&p, "alexnet")].levels;
    assert_true(hungry->at[hungry->n - 1].speed > 2.5);
}

// A random monotone table, random shares: the rules hold whatever the table.
static void ladders_of_any_table(void **state) {
    (void)state;
    Rng rng = {7};
    for (int n = 0; n < 2000; n++) {
        ClusterProfiles p;
        size_t          mark = arena.used;
        assert_int_equal(profile_empty(&arena, &p), ERR_OK);
        p.n = 1;
        p.at[0].name = "any";
        p.at[0].speed = slow_profile_random(&rng);
        p.pair[0] = rng_unit64(&rng);
        double cores = 0.5 + 8 * rng_unit64(&rng), gb = 10 + 100 * rng_unit64(&rng);
        assert_int_equal(profile_set_share(&p, cores, gb, NULL), ERR_OK);
        assert_true(fabs(profile_speed(&p.at[0], cores, gb) - 1) < 1e-9);
        check_ladder(&p, &p.at[0]);
        arena_rewind(&arena, mark);
    }
}

static void half_a_gpu_is_a_rung_by_rule(void **state) {
    (void)state;
    ClusterProfiles  p = shipped();
    uint32_t         x = profile_find(&p, "vae");
    AllocLevelParams rule = {0.9, 0.05, 0.5}, never = {0.9, 0.05, 2};
    assert_int_equal(profile_set_share(&p, 3, 62.5, &rule), ERR_OK);
    assert_true(p.at[x].levels.at[0].share == 0.5 && p.at[x].levels.at[1].share == 1);
    assert_true(fabs(p.at[x].levels.at[0].speed - profile_mean_corun(&p, x)) < 1e-9);
    assert_int_equal(profile_set_share(&p, 3, 62.5, &never), ERR_OK);
    for (uint32_t i = 0; i < p.n; i++) assert_true(p.at[i].levels.at[0].share == 1);
}

static void lookups_equal_the_slow_ones(void **state) {
    (void)state;
    Rng rng = {11};
    for (int n = 0; n < 300; n++) {
        ProfileGrid g = slow_profile_random(&rng);
        for (int k = 0; k < 200; k++) {
            double row = rng_unit64(&rng) * 30 - 2, column = rng_unit64(&rng) * 300 - 20;
            if (k % 4 == 0) row = g.row[rng_below(&rng, g.rows)];
            if (k % 4 == 1) column = g.column[rng_below(&rng, g.columns)];
            double fast = profile_grid(&g, row, column), slow = slow_profile_grid(&g, row, column);
            assert_true(fabs(fast - slow) < 1e-12 * (1 + slow));
        }
    }
}

static void sharing_multiplies(void **state) {
    (void)state;
    ClusterProfiles p;
    assert_int_equal(profile_empty(&arena, &p), ERR_OK);
    p.n = 3;
    const double pairs[3][3] = {{0.6, 0.9, 0}, {0.8, 0.5, 0.7}, {0, 0.7, 0.7}};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) p.pair[i * PROFILE_CLASSES + k] = pairs[i][k];
    assert_true(profile_share(&p, 0, NULL, 0) == 1);
    assert_true(profile_share(&p, 1, (uint32_t[]){0}, 1) == 0.8);
    assert_true(profile_share(&p, 0, (uint32_t[]){1, 0}, 2) == 0.9 * 0.6);
    assert_true(profile_share(&p, 1, (uint32_t[]){1, 1}, 2) == 1.0 / 3);
    assert_true(profile_share(&p, 0, (uint32_t[]){1, 2}, 2) == 0);
}

static void another_share_is_another_scale(void **state) {
    (void)state;
    ClusterProfiles p = shipped();
    uint32_t        x = profile_find(&p, "res18");
    double          six = profile_speed(&p.at[x], 6, 62.5);
    assert_int_equal(profile_set_share(&p, 6, 62.5, NULL), ERR_OK);
    assert_true(fabs(profile_speed(&p.at[x], 3, 62.5) - 1 / six) < 1e-12);
    for (uint32_t i = 0; i < p.n; i++) check_ladder(&p, &p.at[i]);
}

#define SYNERGY "set,model,gpus,cpus_per_gpu,mem_gb_per_gpu,norm_throughput\n"
#define META    "set,model,gpus,best_cpus,iter_time_s\n"

static void synergy(void **state) {
    (void)state;
    ClusterProfiles p = read_text(SYNERGY "models,m,1,6,62.5,1.5\r\nmodels,m,1,3,62.5,1\r\n"
                                          "models,m,1,6,125,2\nmodels,m,1,3,125,1\n"
                                          "models,m,2,3,col0,9\nmodels-4,m,1,3,62.5,9\n");
    assert_true(p.n == 1 && p.at[0].speed.rows == 2 && p.at[0].speed.columns == 2);
    assert_true(profile_speed(&p.at[0], 4.5, 62.5) == 1.25 && profile_speed(&p.at[0], 9, 999) == 2);
    p = read_text(META "models,m,1,6,0.6\nmodels,m,2,6,0.7\n");
    assert_true(p.at[0].iteration_s[profile_type(&p, "V100")] == 0.6);
    refuse(SYNERGY "models,m,1,3,62.5,1\nmodels,m,1,6,62.5,0.5\n", "p.csv:3: slower than");
    refuse(SYNERGY "models,m,1,3,62.5,1\nmodels,m,1,6,125,2\n", "p.csv:2: the table that begins");
    refuse(SYNERGY "models,m,1,3,62.5,1\nmodels,m,1,3,62.5,1\n", "p.csv:3: the point of line 2");
    refuse(SYNERGY "models,m,1,3,62.5,-1\n", "p.csv:2: norm_throughput: '-1' is negative");
    refuse(SYNERGY "models,m,1,0,62.5,1\n", "p.csv:2: cpus_per_gpu: '0' is out of range");
    refuse(SYNERGY "models,m,1,3\n", "p.csv:2: 4 fields where there should be 6");
    refuse(SYNERGY "models,-,1,3,62.5,1\n", "p.csv:2: a class needs a name");
    refuse(SYNERGY "other,m,1,3,62.5,1\n", "no table of set models");
    refuse(SYNERGY "models,m,1,3,62.5,0\n", "does not run at all");
    refuse("set,norm_throughput\n", "p.csv:1: lacks the column model");
    refuse("a,b\n", "p.csv:1: no profiles");
    refuse(META "x,m,1,6,0.6\n", "no model of set models");
}

#define GAVEL "gpu_type,model,scale_factor,steps_per_s\n"
#define PAIRS "gpu_type,model1,sf1,model2,sf2,tput1,tput2,iso1,iso2,norm1,norm2\n"

static void gavel(void **state) {
    (void)state;
    ClusterProfiles p = read_text(GAVEL "v100,a,1,4\nk80,a,1,2\nv100,a,4,10\n"
                                        "v100_unconsolidated,a,4,5\nv100_unconsolidated,a,1,4\n");
    assert_true(p.n == 1 && p.n_types == 2 && p.at[0].iteration_s[1] == 0.5);
    assert_true(profile_spread(&p.at[0], 4, 4) == 0.5 && profile_spread(&p.at[0], 4, 1) == 1);
    assert_true(fabs(profile_spread(&p.at[0], 4, 2) - 5.0 / 6) < 1e-12);
    p = read_text(PAIRS "v100,a,1,b,1,1,1,1,1,0.9,0.6\nv100,b,1,b,1,1,1,1,1,0,0\n"
                        "v100,a,2,b,2,1,1,1,1,0.1,0.1\nk80,a,1,b,1,1,1,1,1,0.2,0.2\n");
    uint32_t a = profile_find(&p, "a"), b = profile_find(&p, "b");
    assert_true(profile_pair(&p, a, b) == 0.9 && profile_pair(&p, b, a) == 0.6);
    assert_true(profile_pair(&p, b, b) == 0);
    refuse(GAVEL, "has a header and no rows");
    refuse(GAVEL "v100,a,0.5,1\n", "p.csv:2: scale_factor: '0.5' is out of range");
    refuse(GAVEL "v100,a,1.5,1\n", "p.csv:2: 'v100' with 1.5 GPUs");
    refuse(PAIRS "k80,a,1,b,1,1,1,1,1,0.9,0.6\n", "no pair on one GPU of type v100");
    refuse(PAIRS "v100,a,1,b,1,1,1,1,1,99,0.6\n", "p.csv:2: norm1: '99' is out of range");
}

static void gavel_json(void **state) {
    (void)state;
    ClusterProfiles p =
        read_text("{\"v100\": {\"('a (x)', 1)\": {\"null\": 4, \"('b', 1)\": [2, 1]},"
                  " \"('b', 1)\": {\"null\": 2}}}");
    uint32_t a = profile_find(&p, "a (x)"), b = profile_find(&p, "b");
    assert_true(p.n == 2 && p.at[a].iteration_s[0] == 0.25);
    assert_true(profile_pair(&p, a, b) == 0.5 && profile_pair(&p, b, a) == 0.5);
    refuse("{\"v100\": {\"(a, 1)\": {\"null\": 4}}}", "is no key like");
    refuse("{\"v100\": {\"('a', 1)\": {\"null\": -1}}}", "p.csv: v100: ('a', 1): steps a second");
    refuse("{\"v100\": {\"('a', 1)\": {\"null\": 1, \"('b', 1)\": [1, 1]}}}", "'('b', 1)' alone");
    refuse("{\"v100\": {\"('a', 1)\": {\"null\": 1, \"('a', 1)\": [1]}}}", "a pair has two");
    refuse("{\"v100\": \n}", "p.csv:2");
}

static void chronus(void **state) {
    (void)state;
    ClusterProfiles       p = read_text("{\"m\": {\"4\": {\"1\": 1, \"2\": 0.8, \"4\": 0.5},"
                                              " \"2\": {\"2\": 1.01}, \"6\": {\"2\": 0.7},"
                                              " \"8\": {\"2\": 0.6, \"4\": 0.3}}}");
    const ClusterProfile *m = &p.at[0];
    assert_true(profile_spread(m, 2, 2) == 1 && profile_spread(m, 2, 4) == 1);
    assert_true(profile_spread(m, 4, 4) == 0.5 && fabs(profile_spread(m, 6, 4) - 0.4) < 1e-12);
    assert_true(fabs(profile_spread(m, 8, 3) - 0.45) < 1e-12 && profile_spread(m, 99, 99) == 0.3);
    refuse("{\"m\": {\"x\": {\"1\": 1}}}", "p.csv: m: 'x' is no number of GPUs");
    refuse("{\"m\": {\"2\": {\"1\": 0.5}}}", "give a speed against one server");
    refuse("{\"m\": {\"2\": 1}}", "give {servers: speed}");
    refuse("{\"m\": {}}", "has no gangs");
    refuse("{}", "has no profiles");
}

static void own_format(void **state) {
    (void)state;
    ClusterProfiles p = read_text("# ours\n" OWN "x,y|z w,2,0.5,3,0,10,0,1,0.8,0.4,4,7,1,0.5\n");
    const ClusterProfile *x = &p.at[0];
    assert_true(fabs(profile_speed(x, 6, 62.5) - 2) < 1e-12 && x->weight == 2);
    assert_true(fabs(profile_speed(x, 12, 62.5) - 2) < 1e-12);
    assert_true(fabs(profile_spread(x, 2, 2) - 0.5) < 1e-12 && x->restart_s == 7);
    assert_true(x->iteration_s[0] == 1 && x->iteration_s[1] == 1 && x->gpu_util == 0.8);
    assert_true(profile_find_alias(&p, "Z-W") == 0 && profile_find_alias(&p, "q") == PROFILE_NONE);
    refuse(OWN, "has a header and no classes");
    refuse(OWN "x,,1,0,3,0,10,0,1,0.8,0.4,4,7,1,1\n", "p.csv:2: gpu_s: '0' is out of range");
    refuse(OWN "x,,1,1,3,0,10,0,1,0.8,0.4,4,7,1,1\nX,,1,1,3,0,10,0,1,0.8,0.4,4,7,1,1\n",
           "p.csv:3: class 'X' for the second time");
    refuse("class,gpu_s,aliases,weight,core_s,storage_s,resident_gb,data_gb,network_s,gpu_busy,"
           "gpu_memory_busy,gpu_gb,restart_s,colour\n",
           "p.csv:1: there is no column 'colour'");
}

static JobList jobs_of(const char **models, uint32_t n_models, uint32_t n) {
    JobList l = {.n = n, .n_models = n_models, .models = models};
    l.at = arena_new(&arena, Job, n);
    for (uint32_t i = 0; i < n; i++) {
        l.at[i].row = i;
        l.at[i].model = n_models > 0 ? i % n_models : JOB_NONE;
    }
    return l;
}

static ClassAssignment assign(const ClusterProfiles *p, const JobList *l, const char *mix,
                              uint64_t seed) {
    ClassAssignment s;
    if (class_assignment_draw(p, l, mix, (Rng){seed}, &arena, &s) != ERR_OK)
        fail_msg("%s", err_why());
    return s;
}

static void names_find_their_class(void **state) {
    (void)state;
    const char *models[] = {"Res50", "resnet-50", "ResNet-50 (batch size 64)", "what", "LM (x)"};
    const char *classes[] = {"res50", "res50", "res50", NULL, "lstm"};
    ClusterProfiles p = shipped();
    JobList         l = jobs_of(models, 5, 50);
    ClassAssignment s = assign(&p, &l, NULL, 1);
    assert_true(s.by_name == 10 && s.by_alias == 30 && s.by_model == 10 && s.drawn == 0);
    for (uint32_t i = 0; i < l.n; i++) {
        assert_true(s.class_of[i] == s.class_of[i % 5]);
        if (classes[i % 5] != NULL)
            assert_int_equal(s.class_of[i], profile_find(&p, classes[i % 5]));
    }
}

static void jobs_without_a_model_are_drawn(void **state) {
    (void)state;
    ClusterProfiles p = shipped();
    JobList         l = jobs_of(NULL, 0, 40000), window = l;
    ClassAssignment s = assign(&p, &l, NULL, 3);
    double          all = 0;
    for (uint32_t i = 0; i < p.n; i++) all += p.at[i].weight;
    assert_int_equal(s.drawn, 40000);
    for (uint32_t i = 0; i < p.n; i++) {
        double expected = 40000 * p.at[i].weight / all;
        assert_true(fabs(s.jobs[i] - expected) <= 6 * sqrt(expected));
    }
    window.at += 1000;
    window.n = 500;
    ClassAssignment w = assign(&p, &window, NULL, 3), other = assign(&p, &window, NULL, 4);
    assert_memory_equal(w.class_of, s.class_of + 1000, sizeof *w.class_of * 500);
    assert_memory_not_equal(w.class_of, other.class_of, sizeof *w.class_of * 500);
    s = assign(&p, &l, "res50:3 bert:1", 3);
    assert_int_equal(s.jobs[profile_find(&p, "res50")] + s.jobs[profile_find(&p, "bert")], 40000);
    assert_true(abs((int)s.jobs[profile_find(&p, "res50")] - 30000) < 600);
    assert_int_equal(class_assignment_draw(&p, &l, "none:1", (Rng){1}, &arena, &s), ERR_CONFIG);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_monotone),
        cmocka_unit_test(shipped_classes_differ_in_what_they_need),
        cmocka_unit_test(synthetic_traces_find_their_classes),
        cmocka_unit_test(folding_leaves_out_what_is_unknown),
        cmocka_unit_test(ladders_climb),
        cmocka_unit_test(ladders_of_any_table),
        cmocka_unit_test(half_a_gpu_is_a_rung_by_rule),
        cmocka_unit_test(lookups_equal_the_slow_ones),
        cmocka_unit_test(sharing_multiplies),
        cmocka_unit_test(another_share_is_another_scale),
        cmocka_unit_test(synergy),
        cmocka_unit_test(gavel),
        cmocka_unit_test(gavel_json),
        cmocka_unit_test(chronus),
        cmocka_unit_test(own_format),
        cmocka_unit_test(names_find_their_class),
        cmocka_unit_test(jobs_without_a_model_are_drawn),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
