#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/settings.h"
#include "tests/runner.h"

#define CHIP_SETTINGS(X)                                                                           \
    X(accels, int, 4, 1, 64, "how many accelerators the chip has")                                 \
    X(weight_bytes, int64, INT64_C(1) << 40, 0, INT64_MAX, "room for weights")                     \
    X(load, double, 0.7, 0.0, 2.0, "offered load; 1.0 saturates the chip")                         \
    X(warm, bool, false, 0, 1, "start warm")                                                       \
    X(policy, string, "fcfs", 1, 8, "scheduling policy")

typedef struct ChipSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    CHIP_SETTINGS(X)
#undef X
} ChipSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(ChipSettings, __VA_ARGS__)
    CHIP_SETTINGS(X)
#undef X
};

static Arena        arena;
static ChipSettings chip;
static Settings     s = {rows, sizeof rows / sizeof *rows, &chip, &arena};

static int setup(void **state) {
    (void)state;
    if (arena_init(&arena, 1 << 20) != ERR_OK) return -1;
    settings_default(&s);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static Err parse(const char *text) { return settings_parse(&s, "chip.yaml", text, strlen(text)); }

static void test_defaults(void **state) {
    (void)state;
    assert_int_equal(chip.accels, 4);
    assert_true(chip.weight_bytes == INT64_C(1) << 40 && chip.load == 0.7 && !chip.warm);
    assert_string_equal(chip.policy, "fcfs");
}

static void test_values(void **state) {
    (void)state;
    assert_int_equal(parse("# a chip\naccels: 64\nwarm: yes\npolicy: \"e d\\u00e9\"\n"
                           "weight_bytes: +9223372036854775807\nload: 1.5e0\n"),
                     ERR_OK);
    assert_int_equal(chip.accels, 64);
    assert_true(chip.warm && chip.load == 1.5 && chip.weight_bytes == INT64_MAX);
    assert_string_equal(chip.policy, "e d\xC3\xA9");
    assert_int_equal(parse("{accels: 2, policy: edf}"), ERR_OK);
    assert_int_equal(chip.accels, 2);
    assert_true(chip.warm);
}

static void test_nothing_in_the_file(void **state) {
    (void)state;
    assert_int_equal(parse(""), ERR_OK);
    assert_int_equal(parse("# only a comment\n"), ERR_OK);
    assert_int_equal(parse("---\n"), ERR_CONFIG);
    assert_int_equal(parse("{}"), ERR_OK);
    assert_int_equal(chip.accels, 4);
}

static void test_errors(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
        Err         want;
    } bad[] = {
        {"load: 1\n\naccels: 900\n",
         "chip.yaml:3: accels: '900' is out of range; allowed is 1 to 64", ERR_CONFIG},
        {"accels: 99999999999999999999",
         "chip.yaml:1: accels: '99999999999999999999' is out of range", ERR_CONFIG},
        {"accels: 4294967297", "out of range", ERR_CONFIG},
        {"weight_bytes: 9223372036854775808", "out of range", ERR_CONFIG},
        {"accels: many",
         "chip.yaml:1: accels: 'many' is not a whole number; write one from 1 to 64", ERR_CONFIG},
        {"accels: 1.5", "not a whole number", ERR_CONFIG},
        {"accels: 0x10", "not a whole number", ERR_CONFIG},
        {"accels: \" 7\"", "not a whole number", ERR_CONFIG},
        {"accels:", "not a whole number", ERR_CONFIG},
        {"accels: -", "chip.yaml:1:9: ", ERR_CONFIG},
        {"load: 2.01", "chip.yaml:1: load: '2.01' is out of range; allowed is 0 to 2", ERR_CONFIG},
        {"load: nan", "not a number", ERR_CONFIG},
        {"load: 1e999", "out of range", ERR_CONFIG},
        {"load: 0x1p1", "not a number", ERR_CONFIG},
        {"load: 1e", "not a number", ERR_CONFIG},
        {"warm: maybe", "chip.yaml:1: warm: 'maybe' is neither true nor false", ERR_CONFIG},
        {"policy: a policy too long",
         "policy: 'a policy too long' is out of range; allowed is 1 to "
         "8 bytes",
         ERR_CONFIG},
        {"policy: ''", "out of range", ERR_CONFIG},
        {"load: 1\nacels: 3", "chip.yaml:2: there is no setting acels; did you mean accels?",
         ERR_CONFIG},
        {"zzz: 3",
         "chip.yaml:1: there is no setting zzz; there are accels, weight_bytes, load, "
         "warm, policy",
         ERR_CONFIG},
        {"accels: 1\nload: 1\naccels: 2", "chip.yaml:3: accels is already set in line 1",
         ERR_CONFIG},
        {"accels: [1, 2]", "chip.yaml:1: accels takes one value", ERR_CONFIG},
        {"accels: {a: 1}", "chip.yaml:1: accels takes one value", ERR_CONFIG},
        {"- accels", "chip.yaml:1: write \"key: value\" lines", ERR_CONFIG},
        {"accels", "chip.yaml:1: write \"key: value\" lines", ERR_CONFIG},
        {"? [a]\n: 1", "chip.yaml:1: a key must be a plain word", ERR_CONFIG},
        {"accels: &a 1\nload: *a", "chip.yaml:2: aliases", ERR_CONFIG},
        {"accels: 1\n---\naccels: 2", "chip.yaml:2: a second document", ERR_CONFIG},
        {"load: 1\n\taccels: 2", "chip.yaml:2:", ERR_CONFIG},
        {"load: \"", "chip.yaml:1:", ERR_CONFIG},
        {"\xFF\xFE", "chip.yaml:1:", ERR_CONFIG},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(parse(bad[i].text), bad[i].want);
        if (strstr(err_why(), bad[i].why) == NULL)
            fail_msg("'%s' is not in: %s", bad[i].why, err_why());
    }
    test_defaults(state);  // a rejected file changes nothing
}

static void test_deep_nesting(void **state) {
    (void)state;
    char deep[5000];
    memset(deep, '[', sizeof deep);
    memcpy(deep, "load: ", 6);
    assert_int_equal(settings_parse(&s, "chip.yaml", deep, sizeof deep), ERR_LIMIT);
}

static void test_set(void **state) {
    (void)state;
    assert_int_equal(settings_set(&s, "accels=7"), ERR_OK);
    assert_int_equal(settings_set(&s, "policy=a=b"), ERR_OK);
    assert_int_equal(chip.accels, 7);
    assert_string_equal(chip.policy, "a=b");
    assert_int_equal(settings_set(&s, "accels=70"), ERR_CONFIG);
    assert_string_equal(err_why(),
                        "command line: accels: '70' is out of range; allowed is 1 to 64");
    assert_int_equal(settings_set(&s, "accel=7"), ERR_CONFIG);
    assert_non_null(strstr(err_why(), "did you mean accels?"));
    assert_int_equal(settings_set(&s, "accels"), ERR_CONFIG);
    assert_int_equal(settings_set(&s, "=3"), ERR_CONFIG);
    assert_int_equal(settings_set(&s, "policy=\xFF"), ERR_CONFIG);
    assert_int_equal(chip.accels, 7);
}

static void test_file(void **state) {
    (void)state;
    char name[] = "/tmp/settings_test.XXXXXX";
    assert_true(mkstemp(name) >= 0);
    assert_int_equal(file_replace(name, "load: 0.25\n", 11), ERR_OK);
    assert_int_equal(settings_load(&s, name), ERR_OK);
    assert_true(chip.load == 0.25);
    assert_int_equal(file_replace(name, "load: 3\n", 8), ERR_OK);
    assert_int_equal(settings_load(&s, name), ERR_CONFIG);
    assert_non_null(strstr(err_why(), name));
    (void)remove(name);
    assert_int_equal(settings_load(&s, name), ERR_IO);
}

static void test_table(void **state) {
    (void)state;
    Table  t;
    char  *text = NULL;
    size_t len = 0;
    FILE  *f = open_memstream(&text, &len);
    chip.accels = 9;
    settings_table(&s, &t);
    assert_int_equal(table_csv(&t, f), ERR_OK);
    (void)fclose(f);
    assert_string_equal(text, "key,value,default,range,about\r\n"
                              "accels,9,4,1 to 64,how many accelerators the chip has\r\n"
                              "weight_bytes,1099511627776,1099511627776,0 to 9223372036854775807,"
                              "room for weights\r\n"
                              "load,0.7,0.7,0 to 2,offered load; 1.0 saturates the chip\r\n"
                              "warm,false,false,true or false,start warm\r\n"
                              "policy,fcfs,fcfs,1 to 8 bytes,scheduling policy\r\n");
    free(text);
}

TEST_MAIN() {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_defaults), T(test_values),       T(test_nothing_in_the_file),
        T(test_errors),   T(test_deep_nesting), T(test_set),
        T(test_file),     T(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
