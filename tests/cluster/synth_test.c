// A large sample has the published moments; the shipped traces are reproduced by their settings.
#include "cluster/trace/synth.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/trace/job_trace.h"
#include "cluster/trace/trace_stats.h"
#include "tests/runner.h"

static Arena arena;

static int begin(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 29) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static JobList make(const char *like, const char *const *sets, uint64_t seed) {
    SynthSettings s;
    Settings      rows = synth_settings(&s, &arena);
    JobList       l = {0};
    assert_int_equal(synth_load(like, &arena, &s), ERR_OK);
    for (; *sets != NULL; sets++) assert_int_equal(settings_set(&rows, *sets), ERR_OK);
    if (synth_make(&s, (Rng){seed}, &arena, &l) != ERR_OK) fail_msg("%s", err_why());
    return l;
}

static TraceStats stats(const JobList *l) {
    TraceStats s;
    assert_int_equal(trace_stats(l, &arena, &s), ERR_OK);
    return s;
}

static void near(double is, double should, double part) {
    if (!(fabs(is - should) <= part * should)) fail_msg("%g is not near %g", is, should);
}

// Bursts leave the moments as they are; without them fewer jobs show them.
static const char *const large[] = {"jobs=600000", "gpus=2490", "burst_jobs=1", NULL};

static void philly_moments(void **state) {
    (void)state;
    static const double shares[][2] = {{1, 0.9317}, {2, 0.0221}, {4, 0.0227}, {8, 0.02}};
    JobList             l = make(NULL, large, 11);
    TraceStats          s = stats(&l);
    near(s.work_s[3], 1144, 0.03);
    near(s.work_mean_s, 13136, 0.03);
    near(s.work_s[1], 61, 0.1);
    near(s.work_s[4], 2932, 0.15);
    near(s.work_s[5], 11266, 0.2);
    near(s.gpu_seconds / s.jobs, 42811, 0.2);
    near(trace_load(&s, 2490), 0.8, 0.03);
    for (int i = 0; i < 4; i++)
        for (uint32_t k = 0; k < s.sizes.n; k++)
            if (s.sizes.at[k].gpus == (uint32_t)shares[i][0])
                near((double)s.sizes.at[k].jobs / s.jobs, shares[i][1], i == 0 ? 0.002 : 0.03);
    assert_int_equal(s.tenants.n, 15);
    near((double)s.tenants.at[0].jobs / s.jobs, 0.50, 0.1);
    near((double)s.tenants.at[1].jobs / s.jobs, 0.196, 0.25);
}

static double log_correlation(const double *x, const double *y, uint32_t n) {
    double mx = 0, my = 0, xy = 0, xx = 0, yy = 0;
    for (uint32_t i = 0; i < n; i++) {
        mx += x[i] / n;
        my += y[i] / n;
    }
    for (uint32_t i = 0; i < n; i++) {
        xy += (x[i] - mx) * (y[i] - my);
        xx += (x[i] - mx) * (x[i] - mx);
        yy += (y[i] - my) * (y[i] - my);
    }
    return xy / sqrt(xx * yy);
}

// Jobs that a tenant submits within a minute are alike, as in Philly's largest virtual clusters,
// where logarithms of durations correlate by 0.80 to 0.89.
static void bursts_are_alike(void **state) {
    (void)state;
    const char *const sets[] = {"jobs=40000", "gpus=64", "load=0", "jobs_hour=31.5", NULL};
    JobList           l = make(NULL, sets, 12);
    double           *x = arena_new(&arena, double, l.n), *y = arena_new(&arena, double, l.n);
    uint32_t          n = 0;
    for (uint32_t i = 1; i < l.n; i++) {
        const Job *a = &l.at[i - 1], *b = &l.at[i];
        if (a->tenant != b->tenant || b->submit - a->submit > 60 * JOB_SECOND) continue;
        x[n] = log((double)a->work);
        y[n++] = log((double)b->work);
    }
    assert_true(n > l.n / 2);
    near(log_correlation(x, y, n), 0.85, 0.08);
}

static void day_and_week(void **state) {
    (void)state;
    const char *const sets[] = {"jobs=100000", "load=0", "jobs_hour=60", "burst_jobs=1", NULL};
    JobList           l = make(NULL, sets, 13);
    double            hour[24] = {0}, day[7] = {0}, busy = 0, idle = 0;
    for (uint32_t i = 0; i < l.n; i++) {
        int64_t s = l.at[i].submit / JOB_SECOND;
        hour[s / 3600 % 24]++;
        day[s / 86400 % 7]++;
    }
    for (int d = 0; d < 5; d++) busy += day[d] / 5;
    for (int d = 5; d < 7; d++) idle += day[d] / 2;
    near(idle / busy, 0.52, 0.06);
    near(hour[15] / l.n * 24, 1.4, 0.06);
    near(hour[3] / l.n * 24, 0.6, 0.1);
}

static void alibaba(void **state) {
    (void)state;
    const char *const sets[] = {"jobs=60000", "gpus=6212", "most_s=9000000", NULL};
    JobList           l = make("openb_small", sets, 14);
    TraceStats        s = stats(&l);
    near((double)s.cpu_only / s.jobs, 0.133, 0.05);
    near((double)s.fractional / (s.jobs - s.cpu_only), 3078.0 / 7064, 0.05);
    near(s.work_s[3], 616, 0.15);
    near(s.work_s[4], 2246, 0.15);
    for (uint32_t i = 0; i < l.n; i++)
        assert_true(l.at[i].cores_milli >= 500 && l.at[i].memory_mib >= 1024);
}

static void shipped(void **state) {
    (void)state;
    const char *const none[] = {NULL};
    uint32_t          n = 0;
    for (const SynthFile *f = synth_files; f->name != NULL; f++, n++) {
        const TraceFile *t = trace_files;
        while (t->name != NULL && strcmp(t->name, f->name) != 0) t++;
        assert_non_null(t->name);
        char   *text = NULL;
        size_t  len = 0;
        JobList l = make(f->name, none, 1), again;
        FILE   *out = open_memstream(&text, &len);
        trace_write(out, &l);
        assert_int_equal(fclose(out), 0);
        assert_int_equal(len, t->len);
        assert_memory_equal(text, t->bytes, len);
        assert_int_equal(trace_read(f->name, "auto", NULL, &arena, &again), ERR_OK);
        assert_int_equal(again.n, l.n);
        for (uint32_t i = 0; i < l.n; i++)
            assert_true(again.at[i].work == l.at[i].work && again.at[i].submit == l.at[i].submit);
        free(text);
    }
    assert_int_equal(n, 2);
}

static void seeds(void **state) {
    (void)state;
    const char *const none[] = {NULL};
    JobList           a = make(NULL, none, 5), b = make(NULL, none, 5), c = make(NULL, none, 6);
    uint32_t          same = 0;
    for (uint32_t i = 0; i < a.n; i++) {
        assert_true(a.at[i].work == b.at[i].work && a.at[i].submit == b.at[i].submit);
        same += a.at[i].work == c.at[i].work;
    }
    assert_true(same < a.n / 10);
}

static void refused(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"sizes=x:1", "sizes: 'x'"},
        {"sizes=1", "lacks a weight"},
        {"sizes=128:1", "larger than gpus"},
        {"sizes=1:0", "nothing in it has a weight"},
        {"parts=1001:1", "parts: '1001'"},
        {"models=lenet:1", "no class 'lenet'"},
        {"brief_part=0.9", "more than 1 together"},
        {"load=0.0000001", "spans a century"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        SynthSettings s;
        Settings      rows = synth_settings(&s, &arena);
        JobList       l;
        assert_int_equal(synth_load(NULL, &arena, &s), ERR_OK);
        assert_int_equal(settings_set(&rows, bad[i][0]), ERR_OK);
        assert_int_equal(synth_make(&s, (Rng){1}, &arena, &l), ERR_CONFIG);
        if (strstr(err_why(), bad[i][1]) == NULL) fail_msg("%s: %s", bad[i][0], err_why());
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philly_moments), cmocka_unit_test(bursts_are_alike),
        cmocka_unit_test(day_and_week),   cmocka_unit_test(alibaba),
        cmocka_unit_test(shipped),        cmocka_unit_test(seeds),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
