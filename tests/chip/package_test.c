#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "chip/chip_file.h"
#include "chip/cost/cost.h"
#include "tests/runner.h"

static Arena arena;

static int open_arena(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 30) == ERR_OK ? 0 : -1;
}

static int close_arena(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static void test_shipped_ones(void **state) {
    (void)state;
    Package  p;
    UnitSpec u;
    for (uint32_t i = 0; package_name(i) != NULL; i++) {
        assert_int_equal(package_load(package_name(i), &arena, &p), ERR_OK);
        assert_string_equal(p.name, package_name(i));
        assert_in_range(p.n_units, 1, CHIP_UNITS);
    }
    for (uint32_t i = 0; unit_spec_name(i) != NULL; i++) {
        assert_int_equal(unit_spec_load(unit_spec_name(i), &arena, &u), ERR_OK);
        assert_string_equal(u.name, unit_spec_name(i));
    }
    assert_int_equal(package_load("4+4", &arena, &p), ERR_OK);
    assert_int_equal(p.n_kinds, 2);
    assert_int_equal(p.n_units, 8);
    assert_string_equal(p.kinds[0].unit->name, "simba");
    assert_int_equal(p.kinds[1].count, 4);
    assert_int_equal(unit_spec_load("SIMBA", &arena, &u), ERR_OK);
    assert_true(unit_spec_macs(&u) == 1024);
    assert_int_equal(unit_spec_load("Eyeriss", &arena, &u), ERR_OK);
    assert_true(unit_spec_macs(&u) == 168);
}

// An embedded file with one line changed, or removed if `now` is empty.
static char *changed(const char *file, const char *key, const char *now) {
    const char *text = NULL;
    for (const ChipFile *f = chip_files; f->name != NULL; f++)
        if (strcmp(f->name, file) == 0) text = f->text;
    assert_non_null(text);
    const char *at = strstr(text, key);
    assert_non_null(at);
    const char *end = strchr(at + 1, '\n') + 1;
    return arena_printf(&arena, "%.*s%s\n%s", (int)(at - text), text, now, end);
}

static void said(const char *a, const char *b) {
    if (strstr(err_why(), a) == NULL || strstr(err_why(), b) == NULL) fail_msg("%s", err_why());
}

static void no_package(const char *key, const char *now, const char *a, const char *b) {
    Package     p;
    const char *text = changed("4+4", key, now);
    assert_int_equal(package_parse("p.yaml", text, strlen(text), &arena, &p), ERR_CONFIG);
    said(a, b);
}

static void no_unit(const char *key, const char *now, const char *a, const char *b) {
    UnitSpec    u;
    const char *text = changed("eyeriss", key, now);
    assert_int_equal(unit_spec_parse("u.yaml", text, strlen(text), &arena, &u), ERR_CONFIG);
    said(a, b);
}

static void test_impossible_packages(void **state) {
    (void)state;
    no_package("\nunits:", "\nunits: 0 simba", "p.yaml:4", "leave it out");
    no_package("\nunits:", "\nunits: 100 simba, 29 eyeriss", "p.yaml:4", "128");
    no_package("\nunits:", "\nunits: 99999999999999999999 simba", "p.yaml:4", "128");
    no_package("\nunits:", "\nunits: 4 simbaa", "p.yaml:4", "did you mean simba");
    no_package("\nunits:", "\nunits: 4 simba, 4 SIMBA", "p.yaml:4", "twice");
    no_package("\nunits:", "\nunits: simba", "p.yaml:4", "numbers and units");
    no_package("\nunits:", "\nunits: 4 simba,", "p.yaml:4", "numbers and units");
    no_package("\nunits:", "\nunits: 4 nowhere.yaml", "p.yaml:4", "nowhere.yaml");
    no_package("\nunits:", "\nunits: ''", "p.yaml:4", "units");
    no_package("\nunits:", "", "'units' is missing", "units");
    no_package("\nbytes_cycle:", "\nbytes_cycle: 0", "p.yaml:6", "bytes_cycle");
    no_package("\nbytes_cycle:", "", "'bytes_cycle' is missing", "memory");
    no_package("\nperiod_us:", "\nperiod: 3", "p.yaml:7", "did you mean period_us");
    no_package("\nperiod_us:", "\nperiod_us: 1\nperiod: 3", "p.yaml:8", "did you mean period_us");
    Package p;
    assert_int_equal(package_load("5+5", &arena, &p), ERR_ARG);
    said("4+4", "5+5");
    assert_int_equal(package_load("/nowhere/p.yaml", &arena, &p), ERR_IO);
}

static void test_the_least_of_a_package(void **state) {
    (void)state;
    static const char text[] = "name: least\nunits: 1 simba\nbytes_cycle: 8\n";
    Package           p;
    assert_int_equal(package_parse("p.yaml", text, sizeof text - 1, &arena, &p), ERR_OK);
    assert_int_equal(p.n_units, 1);
    assert_true(p.clock_mhz == 1000 && p.period_us == 500 && p.bytes_cycle == 8);
}

static void test_impossible_units(void **state) {
    (void)state;
    no_unit("\nrows:", "\nrows: 0", "u.yaml:7", "rows");
    no_unit("\nrows:", "\nrows: many", "u.yaml:7", "rows");
    no_unit("\nrows:", "", "'rows' is missing", "rows");
    no_unit("\nport:", "\nport: 0", "u.yaml:", "port");
    no_unit("\nflow:", "\nflow: sideways", "sideways", "row_stationary");
    no_unit("\nrows:", "\nrows: 12\nlanes: 8", "lanes: 1", "row_stationary");
    no_unit("\nport:", "\nport: 16\nenergy: much", "much", "relative");
}

static void test_every_layer_needs_a_unit(void **state) {
    (void)state;
    Package     p;
    ChipModel   m;
    const char *text = changed("4+4", "\nunits:", "\nunits: 4 eyeriss");
    assert_int_equal(package_parse("p.yaml", text, strlen(text), &arena, &p), ERR_OK);
    assert_int_equal(cost_model("resnet50", &p, &arena, &m), ERR_OK);
    assert_int_equal(cost_model("mobilenet_v2", &p, &arena, &m), ERR_CONFIG);
    said("depthwise", "eyeriss");
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shipped_ones),
        cmocka_unit_test(test_impossible_packages),
        cmocka_unit_test(test_the_least_of_a_package),
        cmocka_unit_test(test_impossible_units),
        cmocka_unit_test(test_every_layer_needs_a_unit),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
