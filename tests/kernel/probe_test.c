#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>

#include "kernel/probe.h"
#include "tests/base/cpu_grid.h"
#include "tests/runner.h"

static const Isa *best;

static int setup(void **state) {
    (void)state;
    return isa_choose(&best) == ERR_OK ? 0 : -1;
}

static void check_vectors(const Isa *isa) {
    enum { N = 256 };
    float a[N], b[N], c[N], out[32] = {0};
    for (int i = 0; i < N; i++) a[i] = 0, b[i] = (float)i, c[i] = 0.5f * (float)i;
    isa->probe_triad(b, c, N, a);
    for (int i = 0; i < N; i++) assert_true(a[i] == 2.5f * (float)i);
    memset(b, 0, sizeof b);
    b[200] = 3.0f;  // OR of the bits of all elements, per lane
    isa->probe_read(b, N, out);
    for (uint32_t i = 0; i < isa->lanes; i++)
        assert_true(out[i] == (i == 200 % isa->lanes ? 3.0f : 0.0f));
    out[0] = 0.5f, out[1] = 1.0f;  // every chain ends at 2: twelve of them, and the one before
    isa->probe_fma(200, out);
    for (uint32_t i = 0; i < isa->lanes; i++) assert_true(out[i] == 25.0f);
}

static void test_vectors(void **state) {
    (void)state;
    check_vectors(&isa_baseline);
    check_vectors(best);
}

typedef struct Rounds {
    uint32_t of[3];
} Rounds;

static void count_round(void *self, uint32_t index, uint32_t round) {
    Rounds *r = self;
    if (r->of[index] == round) r->of[index]++;
}

static void test_samples(void **state) {
    (void)state;
    Team *t = NULL;
    assert_int_equal(team_create(&t, 3, NULL), ERR_OK);
    for (uint32_t n = 1; n <= 3; n++) {
        Rounds r = {0};
        assert_true(probe_sample(t, n, 1000000, count_round, &r) > 0);
        for (uint32_t i = 0; i < 3; i++) assert_int_equal(r.of[i], i < n ? r.of[0] : 0);
        assert_true(r.of[0] > 0);
    }
    team_destroy(t);
}

typedef struct Steps {
    int64_t done, of;
} Steps;

static void told(void *self, int64_t done, int64_t of) {
    Steps *s = self;
    assert_int_equal(done, s->done + 1);
    *s = (Steps){done, of};
}

static void check_rate(ProbeRate r) {
    assert_true(r.bytes > 0);
    assert_true(r.one > 0 && r.all > 0);
}

static void test_machine(void **state) {
    (void)state;
    Arena a = {0};
    Cpu   cpu;
    Team *t = NULL;
    Probe p = {0};
    Steps s = {0};
    assert_int_equal(arena_init(&a, 1 << 24), ERR_OK);
    assert_int_equal(cpu_read(&a, &cgroup_roots, &cpu), ERR_OK);
    uint32_t n = cpu_budget(&cpu, &cgroup_roots).cores < 2 ? 1 : 2;
    assert_int_equal(team_create(&t, n, NULL), ERR_OK);
    assert_int_equal(probe_machine(&cpu, best, t, true, (ProgressSink){told, &s}, &p), ERR_OK);
    team_destroy(t);
    assert_int_equal(s.done, s.of);
    assert_int_equal(p.cores, n);
    assert_true(p.fma.one > 0 && p.fma.all > 0);
    check_rate(p.read[PROBE_L1]);
    check_rate(p.read[PROBE_L2]);
    check_rate(p.read[PROBE_DRAM]);
    check_rate(p.triad);
    assert_true(p.clock_ns > 0 && p.thread_clock_ns > 0);
    if (n > 1) assert_true(p.hop.samples > 0 && p.hop.least <= p.hop.median);
    if (n > 1) assert_true(p.wake.samples > 0 && p.wake.median <= p.wake.p90);
    arena_finish(&a);
}

// A machine with unknown caches, and one with a single core.
static void test_strange_machines(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        Arena a = {0};
        Cpu   cpu;
        Team *t = NULL;
        Probe p = {0};
        assert_int_equal(arena_init(&a, 1 << 24), ERR_OK);
        cpu = cpu_grid(&a, (CpuGrid){1, (uint32_t)i, 1, 1});
        assert_int_equal(team_create(&t, 1, NULL), ERR_OK);
        assert_int_equal(probe_machine(&cpu, best, t, true, (ProgressSink){0}, &p), ERR_OK);
        check_rate(p.read[PROBE_L1]);
        assert_int_equal(p.hop.samples, 0);
        team_destroy(t);
        arena_finish(&a);
    }
}

static void test_peak(void **state) {
    (void)state;
    assert_true(probe_fma_peak(best) > 0);
    assert_string_equal(probe_level_name(PROBE_DRAM), "DRAM");
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors), cmocka_unit_test(test_samples),
        cmocka_unit_test(test_machine), cmocka_unit_test(test_strange_machines),
        cmocka_unit_test(test_peak),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
