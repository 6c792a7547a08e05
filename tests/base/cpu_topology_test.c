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
#include <unistd.h>

#include "base/cpu.h"
#include "base/file.h"
#include "tests/runner.h"

static char  root[64];
static Arena arena;

static int setup(void **state) {
    (void)state;
    (void)snprintf(root, sizeof root, "/tmp/cpu_topology_test.XXXXXX");
    return mkdtemp(root) != NULL && arena_init(&arena, 1 << 24) == ERR_OK ? 0 : -1;
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

static void put_of(uint32_t os, const char *name, const char *text) {
    put(arena_printf(&arena, "cpu%u/%s", os, name), text);
}

// Two packages of two cores of two threads, numbered as many machines do: siblings far apart.
static void put_machine(void) {
    put("online", "0-7\n");
    for (uint32_t os = 0; os < 8; os++) {
        uint32_t core = os % 4, package = core / 2 * 2;
        put_of(os, "topology/thread_siblings_list",
               arena_printf(&arena, "%u,%u\n", core, core + 4));
        put_of(
            os, "topology/core_siblings_list",
            arena_printf(&arena, "%u-%u,%u-%u\n", package, package + 1, package + 4, package + 5));
        put_of(os, "cache/index0/level", "1\n");
        put_of(os, "cache/index0/type", "Instruction\n");
        put_of(os, "cache/index0/size", "99K\n");
        put_of(os, "cache/index1/level", "1\n");
        put_of(os, "cache/index1/type", "Data\n");
        put_of(os, "cache/index1/size", "48K\n");
        put_of(os, "cache/index2/level", "3\n");
        put_of(os, "cache/index2/type", "Unified\n");
        put_of(os, "cache/index2/size", "32M\n");
        put_of(os, "cache/index2/shared_cpu_list",
               arena_printf(&arena, "%u-%u\n", package, package + 1));
    }
}

static void test_siblings_lie_together(void **state) {
    (void)state;
    Cpu c = {0};
    put_machine();
    assert_int_equal(cpu_read_topology(root, &arena, &c), ERR_OK);
    assert_true(c.n_threads == 8 && c.n_cores == 4 && c.n_packages == 2 && c.n_l3 == 2);
    assert_true(c.l1d_bytes == 48 << 10 && c.l2_bytes == 0 && c.l3_bytes == 32 << 20);
    static const uint32_t os[] = {0, 4, 1, 5, 2, 6, 3, 7};
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(c.threads[i].os, os[i]);
        assert_int_equal(c.threads[i].core, i / 2);
        assert_int_equal(c.threads[i].package, i / 4);
        assert_int_equal(c.threads[i].l3, i / 4);
    }
}

static void test_what_is_not_told(void **state) {
    (void)state;
    Cpu c = {0};
    assert_int_equal(cpu_read_topology(root, &arena, &c), ERR_IO);
    put("online", "1,3-4\n");
    assert_int_equal(cpu_read_topology(root, &arena, &c), ERR_OK);
    assert_true(c.n_threads == 3 && c.n_cores == 3 && c.n_packages == 1 && c.n_l3 == 0);
    assert_true(c.threads[0].os == 1 && c.threads[2].os == 4 && c.threads[2].l3 == CPU_NO_L3);
    assert_true(c.l1d_bytes == 0 && c.l3_bytes == 0);
}

static void test_lies(void **state) {
    (void)state;
    static const char *const lies[] = {"\n", "x", "-1", "4-2", "0-99999999999999999999", "70000"};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        Cpu c = {0};
        put("online", lies[i]);
        assert_int_equal(cpu_read_topology(root, &arena, &c), ERR_PARSE);
    }
    Cpu c = {0};
    put_machine();
    put_of(0, "cache/index1/size", "99999999999999999999G");
    put_of(3, "topology/thread_siblings_list", "bananas");
    put_of(3, "cache/index2/shared_cpu_list", "");
    assert_int_equal(cpu_read_topology(root, &arena, &c), ERR_OK);
    assert_int_equal(c.n_threads, 8);
    assert_int_equal(c.l1d_bytes, 0);
}

// lscpu reports the same threads and the same sharing of cores.
static void test_as_lscpu_has_it(void **state) {
    (void)state;
    Cpu      c = {0};
    char     line[256];
    uint32_t n = 0, core_of[4096];
    if (cpu_read_topology(cgroup_roots.cpu, &arena, &c) != ERR_OK || c.n_threads > 4096) skip();
    FILE *f = popen("lscpu -p=CPU,CORE 2>/dev/null", "re");
    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL) {
        unsigned os, core;
        if (sscanf(line, "%u,%u", &os, &core) != 2) continue;
        for (uint32_t i = 0; i < c.n_threads; i++)
            if (c.threads[i].os == os) core_of[i] = core, n++;
    }
    if (pclose(f) != 0) skip();
    assert_int_equal(n, c.n_threads);
    for (uint32_t i = 1; i < n; i++)
        assert_true((core_of[i] == core_of[i - 1]) == (c.threads[i].core == c.threads[i - 1].core));
}

TEST_MAIN() {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_siblings_lie_together),
        T(test_what_is_not_told),
        T(test_lies),
        T(test_as_lscpu_has_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
