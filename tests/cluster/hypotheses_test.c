// ProfilePosterior over hypotheses from a library: error and coverage on true profiles off it,
// sharing by name, classes that the library does not have, and the file of records.
#include <math.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "cluster/information.h"
#include "cluster/profile/profile_variants.h"
#include "contract/rate.h"
#include "estimator/estimator.h"
#include "tests/runner.h"

enum { RECORDS = 4, ASKED = 8 };

static const double noise = 0.03;

static Arena           arena;
static ClusterProfiles library, table_profiles;
static HypothesisTable table;

static int begin(void **state) {
    (void)state;
    if (arena_init(&arena, (size_t)1 << 30) != ERR_OK) return -1;
    if (profile_load(NULL, &arena, &library) != ERR_OK) return -1;
    return information_hypotheses(&library, &arena, &table_profiles, &table) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

typedef struct Bench {  // one GPU, one server
    ClusterServer server;
    uint32_t      types[1];
    ClusterSetup  believed, truth;
    ClusterJob    job;
} Bench;

static void bench_open(Bench *b, const ClusterProfiles *truth) {
    *b = (Bench){.server = {"s", 8, 24000, 512000, 0, 0}, .types = {PROFILE_NONE}};
    b->believed = (ClusterSetup){.servers = &b->server,
                                 .profiles = &table_profiles,
                                 .profile_type = b->types,
                                 .n_servers = 1,
                                 .most_gpus = 8};
    b->truth = b->believed;
    b->truth.profiles = truth;
    b->job = (ClusterJob){
        .gpus = 1, .gpu_milli = 1000, .cores_milli = 3000, .memory_mib = 64000, .class = 0};
}

static ClusterSlice random_slice(Rng *r) {
    static const uint32_t cores[] = {1000, 2000, 4000, 6000, 9000, 12000};
    static const uint32_t memory[] = {16000, 32000, 64000, 128000, 256000};
    return (ClusterSlice){.mask = 1,
                          .gpus = 1,
                          .gpu_milli = 1000,
                          .cores_milli = cores[rng_below(r, 6)],
                          .memory_mib = memory[rng_below(r, 5)]};
}

static double true_rate(const Bench *b, uint32_t class, const ClusterSlice *s) {
    ClusterJob j = b->job;
    j.class = class;
    return rate_alone(&b->truth, &j, s, 1);
}

typedef struct Fit {
    double   square[RECORDS], covered[RECORDS];
    uint32_t n[RECORDS];
} Fit;

static void ask(const ProfilePosterior *p, const PosteriorQuery *q, const Bench *b, uint32_t class,
                Rng *r, uint32_t k, Fit *f) {
    for (uint32_t i = 0; i < ASKED; i++) {
        ClusterSlice    s = random_slice(r);
        RateMeasurement m = {&b->believed, &b->job, &s, 1, NULL, 0, 0};
        RateBelief      x = profile_posterior_rate(p, q, &m);
        double          miss = log(x.rate / true_rate(b, class, &s));
        double          seen = miss + noise * rng_normal(r);
        f->square[k] += miss * miss;
        f->covered[k] += fabs(seen) < 1.645 * x.log_sd;
        f->n[k]++;
    }
}

// Errors of a job of a true class after 0, 1, ... measurements of its own.
static void follow(ProfilePosterior *p, const Bench *b, uint32_t class, uint32_t named,
                   uint64_t name, Rng *r, Fit *f) {
    PosteriorRecord own = {.n = 0};
    PosteriorQuery  q = {{.tenant = 0, .name = name, .gpus = 1}, named, &own};
    for (uint32_t k = 0; k < RECORDS; k++) {
        ask(p, &q, b, class, r, k, f);
        ClusterSlice    s = random_slice(r);
        RateMeasurement m = {&b->believed, &b->job, &s, 1, NULL, 0, 0};
        m.rate = true_rate(b, class, &s) * exp(noise * rng_normal(r));
        (void)profile_posterior_measured(p, &q, &m, &own);
    }
}

static double rms(const Fit *f, uint32_t k) { return sqrt(f->square[k] / f->n[k]); }

static Fit follow_all(bool named, bool shared, double sigma) {
    const PosteriorParams params = POSTERIOR_PARAMS;
    Information           info = {.profiles = PROFILES_LIBRARY, .sigma = sigma};
    Fit                   f = {{0}, {0}, {0}};
    for (uint64_t seed = 1; seed <= 6; seed++) {
        ClusterProfiles  truth;
        ProfilePosterior p;
        Bench            b;
        Rng              r = {seed};
        assert_int_equal(information_truth(&info, &library, rng_fork(r, 1), &arena, &truth),
                         ERR_OK);
        assert_int_equal(profile_posterior_init(&p, &table, &params, &arena), ERR_OK);
        bench_open(&b, &truth);
        for (uint32_t job = 0; job < 2 * library.n; job++) {
            uint32_t class = job % library.n;
            follow(&p, &b, class, named ? class : PROFILE_NONE, shared ? class + 1 : 0, &r, &f);
        }
    }
    return f;
}

static void print(const char *what, const Fit *f) {
    print_message("%s:", what);
    for (uint32_t k = 0; k < RECORDS; k++)
        print_message(" %u: rms %.3f covered %.3f;", k, rms(f, k), f->covered[k] / f->n[k]);
    print_message("\n");
}

static void test_error_and_coverage(void **state) {
    (void)state;
    Fit unnamed = follow_all(false, false, 0.4), named = follow_all(true, false, 0.4);
    Fit shared = follow_all(true, true, 0.4);
    print("no names", &unnamed);
    print("names", &named);
    print("names, shared", &shared);
    assert_true(rms(&unnamed, 3) < 0.6 * rms(&unnamed, 0));
    assert_true(rms(&named, 0) < 0.75 * rms(&unnamed, 0));
    assert_true(rms(&shared, 0) < 0.9 * rms(&named, 0));
    for (uint32_t k = 0; k < RECORDS; k++) {
        assert_true(unnamed.covered[k] / unnamed.n[k] > 0.82);
        assert_true(named.covered[k] / named.n[k] > 0.82);
        assert_true(shared.covered[k] / shared.n[k] > 0.78);
    }
}

// A class more sensitive than any power of its library class, under no name.
static void test_a_class_never_seen(void **state) {
    (void)state;
    const PosteriorParams params = POSTERIOR_PARAMS;
    ClusterProfiles       truth;
    ProfilePosterior      p;
    Bench                 b;
    Rng                   r = {5};
    Fit                   f = {{0}, {0}, {0}};
    uint32_t class = profile_find(&library, "res50");
    assert_int_equal(profile_copy(&library, &arena, &truth), ERR_OK);
    ProfileGrid *g = &truth.at[class].speed;
    for (uint32_t i = 0; i < g->rows; i++)
        for (uint32_t k = 0; k < g->columns; k++) g->at[i][k] = pow(g->at[i][k], exp(0.8));
    assert_int_equal(profile_posterior_init(&p, &table, &params, &arena), ERR_OK);
    bench_open(&b, &truth);
    for (uint32_t i = 0; i < 20; i++) follow(&p, &b, class, PROFILE_NONE, 0, &r, &f);
    print("never seen", &f);
    assert_true(rms(&f, 3) < 0.6 * rms(&f, 0));
}

static void test_default_allocations_say_nothing(void **state) {
    (void)state;
    const PosteriorParams params = POSTERIOR_PARAMS;
    ProfilePosterior      p;
    Bench                 b;
    PosteriorRecord       own = {.n = 0};
    PosteriorQuery        q = {{0}, PROFILE_NONE, &own};
    assert_int_equal(profile_posterior_init(&p, &table, &params, &arena), ERR_OK);
    bench_open(&b, &library);
    ClusterSlice s = {
        .mask = 1, .gpus = 1, .gpu_milli = 1000, .cores_milli = 3000, .memory_mib = 64000};
    RateMeasurement m = {&b.believed, &b.job, &s, 1, NULL, 0, 0.5};
    uint32_t        before = profile_posterior_class(&p, &q, NULL);
    assert_false(profile_posterior_measured(&p, &q, &m, &own));
    assert_int_equal(own.n, 0);
    assert_int_equal(profile_posterior_class(&p, &q, NULL), before);
}

// What a tenant ran is likelier for its next job.
static void test_tenants_shift_the_prior(void **state) {
    (void)state;
    const PosteriorParams params = POSTERIOR_PARAMS;
    ProfilePosterior      p;
    PosteriorRecord       own = {.n = 1};
    PosteriorQuery        q = {{.tenant = 9}, PROFILE_NONE, &own};
    double                before[POSTERIOR_MOST], after[POSTERIOR_MOST];
    assert_int_equal(profile_posterior_init(&p, &table, &params, &arena), ERR_OK);
    for (uint32_t i = 0; i < table.n; i++) own.log_like[i] = i == 4 ? 0 : -20;
    PosteriorQuery next = {{.tenant = 9}, PROFILE_NONE, NULL};
    profile_posterior_weights(&p, &next, before);
    for (uint32_t i = 0; i < 5; i++) profile_posterior_ended(&p, &q);
    profile_posterior_weights(&p, &next, after);
    assert_true(after[4] > 5 * before[4]);
    next.traits.tenant = 8;
    profile_posterior_weights(&p, &next, after);
    assert_memory_equal(before, after, table.n * sizeof *before);
}

static Estimator filled(uint64_t seed) {
    const EstimatorParams params = ESTIMATOR_PARAMS;
    Estimator             e;
    Bench                 b;
    Fit                   f = {{0}, {0}, {0}};
    Rng                   r = {seed};
    assert_int_equal(estimator_init(&e, &table, &params, &arena), ERR_OK);
    bench_open(&b, &library);
    for (uint32_t i = 0; i < 10; i++) {
        JobTraits t = {estimator_name("tenant"), estimator_name(i % 2 == 0 ? "a" : "b"), i};
        duration_history_end(&e.durations, &t, exp(8 * rng_unit64(&r)));
        follow(&e.profiles, &b, i, PROFILE_NONE, t.name, &r, &f);
        PosteriorRecord own = {.n = 1};
        PosteriorQuery  q = {t, PROFILE_NONE, &own};
        profile_posterior_ended(&e.profiles, &q);
    }
    return e;
}

static void test_same_observations_same_bytes(void **state) {
    (void)state;
    Estimator a = filled(3), b = filled(3);
    size_t    bytes = POSTERIOR_GROUPS * sizeof *a.profiles.names;
    assert_memory_equal(a.profiles.names, b.profiles.names, bytes);
    assert_memory_equal(a.profiles.tenants, b.profiles.tenants, bytes);
}

static void test_saved_records_are_loaded_again(void **state) {
    (void)state;
    const EstimatorParams params = ESTIMATOR_PARAMS;
    char                  path[] = "/tmp/estimator_test_XXXXXX";
    int                   fd = mkstemp(path);
    Estimator             a = filled(4), b, empty;
    size_t                bytes = POSTERIOR_GROUPS * sizeof *a.profiles.names;
    JobTraits             t = {estimator_name("tenant"), estimator_name("a"), 2};
    assert_true(fd >= 0);
    for (uint32_t twice = 0; twice < 2; twice++)
        if (estimator_save(&a, path) != ERR_OK) fail_msg("%s", err_why());
    assert_int_equal(estimator_init(&b, &table, &params, &arena), ERR_OK);
    if (estimator_load(&b, path) != ERR_OK) fail_msg("%s", err_why());
    assert_int_equal(b.durations.total, a.durations.total);
    assert_memory_equal(a.profiles.names, b.profiles.names, bytes);
    assert_memory_equal(a.profiles.tenants, b.profiles.tenants, bytes);
    DurationQuery    q = {.traits = t, .done_s = 5};
    DurationEstimate x = duration_history_left(&a.durations, &q);
    DurationEstimate y = duration_history_left(&b.durations, &q);
    assert_memory_equal(&x, &y, sizeof x);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(write(fd, "not a database, certainly not one", 33), 33);
    assert_int_equal(estimator_init(&empty, &table, &params, &arena), ERR_OK);
    assert_int_equal(estimator_load(&empty, path), ERR_IO);
    assert_non_null(strstr(err_why(), path));
    close(fd);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(estimator_load(&empty, path), ERR_OK);
    assert_int_equal(empty.durations.total, 0);
}

static void run_sql(const char *path, const char *sql) {
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static Err load(const char *path) {
    const EstimatorParams params = ESTIMATOR_PARAMS;
    Estimator             e;
    size_t                mark = arena.used;
    assert_int_equal(estimator_init(&e, &table, &params, &arena), ERR_OK);
    Err error = estimator_load(&e, path);
    for (uint64_t age = 0; error == ERR_OK && age < e.durations.total; age++) {
        const DurationRecord *r = duration_history_at(&e.durations, age);
        assert_true(r == NULL || (isfinite(r->work_s) && r->bin < DURATION_BINS));
    }
    arena.used = mark;
    return error;
}

static void test_foreign_databases_are_refused(void **state) {
    (void)state;
    char      path[] = "/tmp/estimator_test_XXXXXX";
    int       fd = mkstemp(path);
    Estimator a = filled(5);
    assert_true(fd >= 0);
    run_sql(path, "CREATE TABLE duration(age, tenant, name, gpus, work_s)");
    assert_int_equal(load(path), ERR_INVALID);
    assert_non_null(strstr(err_why(), "another database"));
    assert_int_equal(estimator_save(&a, path), ERR_INVALID);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(estimator_save(&a, path), ERR_OK);
    assert_int_equal(load(path), ERR_OK);
    run_sql(path, "UPDATE duration SET work_s = 'x', gpus = -1; UPDATE belief SET value = 9e999");
    assert_int_equal(load(path), ERR_OK);
    run_sql(path, "PRAGMA user_version = 1");
    assert_int_equal(load(path), ERR_INVALID);
    assert_non_null(strstr(err_why(), "version 1"));
    close(fd);
    assert_int_equal(unlink(path), 0);
}

// Any bytes may be wrong: an error, or records that hold what they promise.
static void test_corrupt_files_do_no_harm(void **state) {
    (void)state;
    char      path[] = "/tmp/estimator_test_XXXXXX";
    int       fd = mkstemp(path);
    Estimator a = filled(6);
    Rng       r = {7};
    assert_true(fd >= 0);
    assert_int_equal(estimator_save(&a, path), ERR_OK);
    off_t bytes = lseek(fd, 0, SEEK_END);
    for (uint32_t i = 0; i < 200; i++) {
        off_t         at = (off_t)rng_below(&r, i % 2 == 0 ? 4096 : (uint64_t)bytes);
        unsigned char was, now = (unsigned char)rng_below(&r, 256);
        assert_int_equal(pread(fd, &was, 1, at), 1);
        assert_int_equal(pwrite(fd, &now, 1, at), 1);
        (void)load(path);
        if (i % 8 != 0) assert_int_equal(pwrite(fd, &was, 1, at), 1);
    }
    close(fd);
    assert_int_equal(unlink(path), 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_and_coverage),
        cmocka_unit_test(test_a_class_never_seen),
        cmocka_unit_test(test_default_allocations_say_nothing),
        cmocka_unit_test(test_tenants_shift_the_prior),
        cmocka_unit_test(test_same_observations_same_bytes),
        cmocka_unit_test(test_saved_records_are_loaded_again),
        cmocka_unit_test(test_foreign_databases_are_refused),
        cmocka_unit_test(test_corrupt_files_do_no_harm),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
