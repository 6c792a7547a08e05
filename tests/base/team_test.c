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
#include <sched.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/fp.h"
#include "base/team.h"
#include "tests/base/cpu_grid.h"
#include "tests/runner.h"

enum { MEMBERS = 4, ROUNDS = 200 };

typedef struct Shared {
    Team    *team;
    uint32_t count[MEMBERS];  // runs of each member
    uint64_t cells[MEMBERS];  // written between two barriers
    uint64_t sums[MEMBERS];   // sum over all cells
    float    small[MEMBERS];
} Shared;

static void note(void *ctx, uint32_t index, uint32_t count) {
    Shared *s = ctx;
    if (index < count && count <= MEMBERS) s->count[index]++;
}

static void test_every_member_once(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= MEMBERS; n++) {
        Shared s = {0};
        assert_int_equal(team_create(&s.team, n, NULL), ERR_OK);
        assert_int_equal(team_size(s.team), n);
        for (int i = 0; i < ROUNDS; i++) team_run(s.team, note, &s);
        for (uint32_t i = 0; i < MEMBERS; i++) assert_int_equal(s.count[i], i < n ? ROUNDS : 0);
        team_destroy(s.team);
    }
    team_destroy(NULL);
}

static void test_some_members(void **state) {
    (void)state;
    Shared s = {0};
    assert_int_equal(team_create(&s.team, MEMBERS, NULL), ERR_OK);
    for (uint32_t i = 0; i < ROUNDS; i++) team_run_some(s.team, 1 + i % MEMBERS, note, &s);
    for (uint32_t i = 0; i < MEMBERS; i++)
        assert_int_equal(s.count[i], ROUNDS / MEMBERS * (MEMBERS - i));
    team_destroy(s.team);
}

static void exchange(void *ctx, uint32_t index, uint32_t count) {
    Shared *s = ctx;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        s->cells[index] = round * (index + 1);
        team_barrier(s->team);
        uint64_t sum = 0;
        for (uint32_t i = 0; i < count; i++) sum += s->cells[i];
        s->sums[index] += sum;
        team_barrier(s->team);
    }
}

static void test_barrier(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= MEMBERS; n++) {
        Shared s = {0};
        assert_int_equal(team_create(&s.team, MEMBERS, NULL), ERR_OK);
        team_run_some(s.team, n, exchange, &s);
        uint64_t expected = (uint64_t)ROUNDS * (ROUNDS + 1) / 2 * (n * (n + 1) / 2);
        for (uint32_t i = 0; i < n; i++) assert_int_equal(s.sums[i], expected);
        team_destroy(s.team);
    }
}

// Long enough apart that the workers have gone to sleep.
static void test_sleepers_wake(void **state) {
    (void)state;
    Shared s = {0};
    assert_int_equal(team_create(&s.team, MEMBERS, NULL), ERR_OK);
    for (int i = 0; i < 20; i++) {
        (void)usleep(i % 2 == 0 ? 3000 : 140);
        team_run(s.team, note, &s);
    }
    for (uint32_t i = 0; i < MEMBERS; i++) assert_int_equal(s.count[i], 20);
    team_destroy(s.team);
}

static float halve_smallest(void) {
    volatile float x = 1.17549435e-38f;
    x *= 0.5f;
    return x;
}

static void compute_small(void *ctx, uint32_t index, uint32_t count) {
    (void)count;
    ((Shared *)ctx)->small[index] = halve_smallest();
}

static void test_denormals(void **state) {
    (void)state;
    Shared s = {.small = {1, 1, 1, 1}};
    assert_true(halve_smallest() > 0.0f);
    assert_int_equal(team_create(&s.team, MEMBERS, NULL), ERR_OK);
    team_run(s.team, compute_small, &s);
    team_destroy(s.team);
#if defined(__x86_64__) || defined(__aarch64__)
    for (uint32_t i = 0; i < MEMBERS; i++) assert_true(s.small[i] == 0.0f);
    FpuState old = fpu_flush_denormals();
    assert_true(halve_smallest() == 0.0f);
    fpu_restore(old);
#endif
    assert_true(halve_smallest() > 0.0f);
}

static void test_pinned(void **state) {
    (void)state;
    cpu_set_t before, during, after;
    Team     *t = NULL;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_int_equal(team_create(&t, 1, NULL), ERR_OK);
    team_pin(t);
    assert_int_equal(sched_getaffinity(0, sizeof during, &during), 0);
    assert_int_equal(CPU_COUNT(&during), 1);
    team_destroy(t);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
}

static void test_refused(void **state) {
    (void)state;
    Team *t = NULL;
    assert_int_equal(team_create(&t, TEAM_MAX + 1, NULL), ERR_LIMIT);
    assert_null(t);
}

static void test_pick(void **state) {
    (void)state;
    Arena    a = {0};
    Cpu      c;
    uint32_t os[8];
    assert_int_equal(arena_init(&a, 1 << 22), ERR_OK);
    c = cpu_grid(&a, (CpuGrid){1, 2, 2, 2});
    assert_int_equal(cpu_pick(&c, 3, os), 3);
    assert_int_equal(os[0], 0);
    assert_int_equal(os[1], 2);
    assert_int_equal(os[2], 4);
    assert_int_equal(cpu_pick(&c, 8, os), 8);
    assert_int_equal(os[3], 6);
    assert_int_equal(os[4], 1);
    c.threads[0].allowed = false;
    assert_int_equal(cpu_pick(&c, 8, os), 7);
    assert_int_equal(os[0], 1);
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_member_once), cmocka_unit_test(test_some_members),
        cmocka_unit_test(test_barrier),           cmocka_unit_test(test_sleepers_wake),
        cmocka_unit_test(test_denormals),         cmocka_unit_test(test_pinned),
        cmocka_unit_test(test_refused),           cmocka_unit_test(test_pick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
