#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <ftw.h>
#include <sched.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/file.h"
#include "tests/base/cpu_grid.h"
#include "tests/runner.h"

// Each test builds a tree that stands in for /proc and /sys/fs/cgroup.
static char        root[64];
static Arena       arena;
static CgroupRoots fake;

static int setup(void **state) {
    (void)state;
    (void)snprintf(root, sizeof root, "/tmp/cpu_test.XXXXXX");
    if (mkdtemp(root) == NULL || arena_init(&arena, 1 << 22) != ERR_OK) return -1;
    fake = (CgroupRoots){arena_printf(&arena, "%s/proc", root), arena_printf(&arena, "%s/cg", root),
                         arena_printf(&arena, "%s/cpu", root)};
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static int teardown(void **state) {
    (void)state;
    arena_finish(&arena);
    return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *path, const char *text) {
    char *full = arena_printf(&arena, "%s/%s", root, path), *slash = strrchr(full, '/');
    *slash = '\0';
    assert_int_equal(file_make_dirs(full), ERR_OK);
    *slash = '/';
    assert_int_equal(file_replace(full, text, strlen(text)), ERR_OK);
}

static void test_nothing_there(void **state) {
    (void)state;
    assert_true(cgroup_cpu_milli(&fake) == INT64_MAX);
    assert_true(cgroup_memory_bytes(&fake) == INT64_MAX);
    assert_true(cpu_mem_budget(&fake) > 1 << 20);
    Cpu c;
    assert_int_equal(cpu_read(&arena, &fake, &c), ERR_OK);
    assert_string_equal(c.model, "unknown");
    assert_in_range(cpu_budget(&c, &fake).cores, 1, c.n_cores);
}

static void test_v2_smallest_on_the_way_up(void **state) {
    (void)state;
    put("proc/self/cgroup", "0::/a/b/c\n");
    put("cg/a/b/c/cpu.max", "max 100000\n");
    assert_true(cgroup_cpu_milli(&fake) == INT64_MAX);
    put("cg/cpu.max", "800000 100000\n");
    assert_int_equal(cgroup_cpu_milli(&fake), 8000);
    put("cg/a/cpu.max", "150000 100000\n");
    assert_int_equal(cgroup_cpu_milli(&fake), 1500);
    put("cg/a/b/c/cpu.max", "400000 100000\n");
    assert_int_equal(cgroup_cpu_milli(&fake), 1500);
    put("cg/a/b/cpu.max", "50000 100000\n");
    assert_int_equal(cgroup_cpu_milli(&fake), 500);
    put("cg/other/cpu.max", "1000 100000\n");
    assert_int_equal(cgroup_cpu_milli(&fake), 500);
    put("cg/a/b/memory.max", "1048576\n");
    put("cg/a/b/c/memory.max", "max\n");
    assert_int_equal(cgroup_memory_bytes(&fake), 1048576);
}

static void test_v1(void **state) {
    (void)state;
    put("proc/self/cgroup", "12:pids:/x\n4:memory:/m/n\n3:cpu,cpuacct:/job\n0::/\n");
    put("cg/cpu,cpuacct/job/cpu.cfs_quota_us", "250000\n");
    put("cg/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
    put("cg/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    put("cg/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    put("cg/memory/m/memory.limit_in_bytes", "4096000\n");
    put("cg/memory/m/n/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(cgroup_cpu_milli(&fake), 2500);
    assert_int_equal(cgroup_memory_bytes(&fake), 4096000);
    put("cg/unified/cpu.max", "100000 100000\n");  // both versions: the smaller limit applies
    assert_int_equal(cgroup_cpu_milli(&fake), 1000);
}

// In a container the path is the host's, but the mount shows only the process's own group.
static void test_path_that_is_not_visible(void **state) {
    (void)state;
    put("proc/self/cgroup", "0::/system.slice/docker-abc.scope\n");
    put("cg/cpu.max", "200000 100000\n");
    assert_int_equal(cgroup_cpu_milli(&fake), 2000);
    put("proc/self/cgroup", "0::/../../elsewhere\n");
    put("elsewhere/cpu.max", "1000 100000\n");
    assert_int_equal(cgroup_cpu_milli(&fake), 2000);
}

static void test_lies(void **state) {
    (void)state;
    static const char *const lies[] = {"",
                                       "garbage",
                                       "0 100000",
                                       "100000 0",
                                       "-5 100000",
                                       "100000",
                                       "100000 -1",
                                       "99999999999999999999 1",
                                       "9223372036854775807 1",
                                       "max",
                                       "100000 x"};
    put("proc/self/cgroup", "0::/a\n");
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        put("cg/a/cpu.max", lies[i]);
        assert_true(cgroup_cpu_milli(&fake) == INT64_MAX);
    }
    put("cg/a/memory.max", "0\n");
    assert_true(cgroup_memory_bytes(&fake) == INT64_MAX);
    static const char *const groups[] = {
        "", "\n", "0::", "::::", "0", "0:x", "0::relative\n", "\xFF\xFF"};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        put("proc/self/cgroup", groups[i]);
        assert_true(cgroup_cpu_milli(&fake) == INT64_MAX);
    }
    char *longest = arena_printf(&arena, "0::/%5000s\n", "x");
    put("proc/self/cgroup", longest);
    assert_true(cgroup_cpu_milli(&fake) == INT64_MAX);
}

static void test_memory(void **state) {
    (void)state;
    put("proc/meminfo", "MemFree: 5 kB\nMemTotal:        2048 kB\n");
    assert_int_equal(cpu_mem_budget(&fake), 2048 * 1024);
    put("cg/memory.max", "1000000\n");
    assert_int_equal(cpu_mem_budget(&fake), 1000000);
    put("cg/memory.max", "900000000000\n");
    assert_int_equal(cpu_mem_budget(&fake), 2048 * 1024);
    put("proc/meminfo", "MemTotal: 0 kB\n");
    assert_true(cpu_mem_budget(&fake) > 1 << 20);
}

static void test_budget_is_the_smallest(void **state) {
    (void)state;
    Cpu       c = cpu_grid(&arena, (CpuGrid){1, 0, 8, 2});
    CpuBudget b = cpu_budget(&c, &fake);
    assert_true(b.cores == 8 && b.present == 8 && b.allowed == 8 && b.quota_milli == INT64_MAX);
    for (uint32_t i = 6; i < 16; i++) c.threads[i].allowed = false;
    c.threads[7].allowed = true;  // half of the fourth core still counts as a core
    assert_int_equal(cpu_budget(&c, &fake).cores, 4);
    put("cg/cpu.max", "290000 100000\n");
    assert_int_equal(cpu_budget(&c, &fake).cores, 2);
    put("cg/cpu.max", "20000 100000\n");
    assert_int_equal(cpu_budget(&c, &fake).cores, 1);
    put("cg/cpu.max", "max 100000\n");
    for (uint32_t i = 0; i < 16; i++) c.threads[i].allowed = false;
    assert_int_equal(cpu_budget(&c, &fake).cores, 1);
}

static void test_affinity_is_looked_at_again(void **state) {
    (void)state;
    Cpu       c;
    cpu_set_t before, one;
    assert_int_equal(cpu_read(&arena, &fake, &c), ERR_OK);
    uint32_t whole = cpu_budget(&c, &fake).allowed, some = 0;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    while (!CPU_ISSET(some, &before)) some++;
    CPU_ZERO(&one);
    CPU_SET(some, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    cpu_update_affinity(&c);
    assert_int_equal(cpu_budget(&c, &fake).allowed, 1);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    cpu_update_affinity(&c);
    assert_int_equal(cpu_budget(&c, &fake).allowed, whole);
}

static void test_model_name(void **state) {
    (void)state;
    Cpu c;
    put("proc/cpuinfo", "processor\t: 0\nmodel name\t: Fast\x1B CPU @ 3GHz\nmodel name\t: other\n");
    assert_int_equal(cpu_read(&arena, &fake, &c), ERR_OK);
    assert_string_equal(c.model, "Fast? CPU @ 3GHz");
    put("proc/cpuinfo", arena_printf(&arena, "model name : %400s", "x"));
    assert_int_equal(cpu_read(&arena, &fake, &c), ERR_OK);
    assert_true(strlen(c.model) < sizeof c.model);
}

static void test_this_machine(void **state) {
    (void)state;
    Cpu c;
    assert_int_equal(cpu_read(&arena, &cgroup_roots, &c), ERR_OK);
    assert_true(c.n_threads >= c.n_cores && c.n_cores >= 1 && c.n_packages >= 1);
    CpuBudget b = cpu_budget(&c, &cgroup_roots);
    assert_in_range(b.cores, 1, c.n_cores);
    assert_true(cpu_mem_budget(&cgroup_roots) > 1 << 20);
    for (uint32_t i = 0; i < c.n_threads; i++) {
        assert_true(c.threads[i].core < c.n_cores && c.threads[i].package < c.n_packages);
        assert_true(c.threads[i].l3 == CPU_NO_L3 || c.threads[i].l3 < c.n_l3);
    }
    if (cpu_has(&c, CPU_AVX2)) assert_true(cpu_has(&c, CPU_AVX));
    assert_string_equal(cpu_feature_name(CPU_AVX2), "avx2");
}

TEST_MAIN() {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_nothing_there),
        T(test_v2_smallest_on_the_way_up),
        T(test_v1),
        T(test_path_that_is_not_visible),
        T(test_lies),
        T(test_memory),
        T(test_budget_is_the_smallest),
        T(test_affinity_is_looked_at_again),
        T(test_model_name),
        T(test_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
