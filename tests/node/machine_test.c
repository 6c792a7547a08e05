#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "node/machine.h"
#include "tests/runner.h"

static Arena arena;

static int open_arena(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 24) == ERR_OK ? 0 : -1;
}

static int close_arena(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static void test_shipped_ones(void **state) {
    (void)state;
    NodeMachineSpec s;
    uint16_t        counts[NODE_COUNTS];
    for (const MachineFile *f = machine_files; f->name != NULL; f++) {
        assert_int_equal(machine_load(f->name, &arena, &s), ERR_OK);
        assert_string_equal(s.name, f->name);
        uint32_t n = machine_counts(&s, counts);
        assert_in_range(n, 1, NODE_COUNTS);
        assert_int_equal(counts[0], 1);
        assert_int_equal(counts[n - 1], machine_cores(&s));
        for (uint32_t i = 1; i < n; i++) assert_true(counts[i] > counts[i - 1]);
    }
    assert_int_equal(machine_load("server64", &arena, &s), ERR_OK);
    NodeMachine m = machine_view(&s, &arena);
    assert_int_equal(m.n_cores, 62);
    assert_int_equal(m.n_slices, 16);
    assert_int_equal(m.slice_of[3], 0);
    assert_int_equal(m.slice_of[4], 1);
    assert_int_equal(m.slice_of[61], 15);
}

// The text of a machine with one line changed, or left out when `now` is empty.
static char *changed(const char *key, const char *now) {
    const char *text = machine_files[0].text, *at = strstr(text, key);
    assert_non_null(at);
    const char *end = strchr(at + 1, '\n') + 1;
    return arena_printf(&arena, "%.*s%s%s%s", (int)(at - text), text, now, *now != '\0' ? "\n" : "",
                        end);
}

static void refuses(const char *text, const char *a, const char *b) {
    NodeMachineSpec s;
    assert_int_not_equal(machine_parse("m.yaml", text, strlen(text), &arena, &s), ERR_OK);
    if (strstr(err_why(), a) == NULL || strstr(err_why(), b) == NULL) fail_msg("%s", err_why());
}

static void test_errors_name_line_and_remedy(void **state) {
    (void)state;
    refuses(changed("\nl2_kb:", "\nl2_kb: lots"), "m.yaml:", "l2_kb");
    refuses(changed("\ncores:", "\ncores: 0"), "m.yaml:", "cores");
    refuses(changed("\ngflops:", "\nflops: 3"), "m.yaml:", "gflops");
    refuses(changed("\njitter:", ""), "jitter", "add");
    refuses(changed("\nreserved:", "\nreserved: 200"), "reserves", "leave");
    refuses(changed("\nisa:", "\nisa: vax"), "vax", "avx2");
    refuses("", "m.yaml", "name");
    refuses("a: [", "m.yaml:", "");
    NodeMachineSpec s;
    assert_int_equal(machine_load("tripod", &arena, &s), ERR_ARG);
    assert_non_null(strstr(err_why(), "server64"));
    assert_int_equal(machine_load("/nowhere/m.yaml", &arena, &s), ERR_IO);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shipped_ones),
        cmocka_unit_test(test_errors_name_line_and_remedy),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
