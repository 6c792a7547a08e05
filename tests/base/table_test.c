#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>

#include "base/table.h"
#include "tests/runner.h"

static Arena arena;

static const Column cols[] = {
    {.key = "name", .head = "Name"},
    {.key = "macs", .head = "MMAC", .scale = 1e6, .decimals = 1},
    {.key = "time_ms", .head = "Time", .unit = "ms", .decimals = 2},
    {.key = "note", .head = "Note", .align = ALIGN_RIGHT},
};

static int setup(void **state) {
    (void)state;
    return arena_init(&arena, 1 << 20) == ERR_OK ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static Table sample(void) {
    Table t;
    table_init(&t, &arena, cols, 4);
    table_row(&t);
    table_text(&t, "resnet50");
    table_int(&t, 4089000000);
    table_real(&t, 0.1);
    table_text(&t, "a,b");
    table_row(&t);
    table_text(&t, "\xE6\xBC\xA2\xE5\xAD\x97 e\xCC\x81");
    table_int(&t, -500000);
    table_missing(&t);
    table_row(&t);
    table_textf(&t, "%s", "say \"hi\"\n\x1B[31m\xFF");
    table_missing(&t);
    table_real(&t, INFINITY);
    table_text(&t, "");
    table_total(&t);
    table_text(&t, "total");
    table_int(&t, 4088500000);
    return t;
}

static char *printed(const Table *t, Err (*write)(const Table *, FILE *)) {
    char  *text = NULL;
    size_t n = 0;
    FILE  *f = open_memstream(&text, &n);
    assert_non_null(f);
    assert_int_equal(write(t, f), ERR_OK);
    assert_int_equal(fclose(f), 0);
    return text;
}

static void test_print(void **state) {
    (void)state;
    Table t = sample();
    char *text = printed(&t, table_print);
    assert_string_equal(
        text, "Name                        MMAC  Time [ms]  Note\n"
              "resnet50                  4089.0       0.10   a,b\n"
              "\xE6\xBC\xA2\xE5\xAD\x97 e\xCC\x81                      -0.5          -     -\n"
              "say \"hi\"\\x0a\\x1b[31m\\xff       -        inf\n"
              "------------------------  ------  ---------  ----\n"
              "total                     4088.5\n");
    free(text);
}

static void test_csv(void **state) {
    (void)state;
    Table t = sample();
    char *text = printed(&t, table_csv);
    assert_string_equal(text, "name,macs,time_ms,note\r\n"
                              "resnet50,4089000000,0.1,\"a,b\"\r\n"
                              "\xE6\xBC\xA2\xE5\xAD\x97 e\xCC\x81,-500000,,\r\n"
                              "\"say \"\"hi\"\"\n\x1B[31m\xFF\",,inf,\"\"\r\n");
    free(text);
}

static void test_csv_reals_read_back(void **state) {
    (void)state;
    const double numbers[] = {1.0 / 3, 1e300, 5e-324, -0.1, 123456789.123456789, 1e15 + 0.3};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        Table t;
        table_init(&t, &arena, cols, 1);
        table_row(&t);
        table_real(&t, numbers[i]);
        char *text = printed(&t, table_csv);
        assert_true(strtod(text + 6, NULL) == numbers[i]);
        free(text);
    }
}

static void test_json(void **state) {
    (void)state;
    Table   t = sample();
    json_t *rows = NULL;
    assert_int_equal(table_json(&t, &rows), ERR_OK);
    assert_int_equal(json_array_size(rows), 3);  // without the total
    json_t *first = json_array_get(rows, 0), *last = json_array_get(rows, 2);
    assert_int_equal(json_integer_value(json_object_get(first, "macs")), 4089000000);
    assert_true(json_real_value(json_object_get(first, "time_ms")) == 0.1);
    assert_true(json_is_null(json_object_get(last, "macs")));
    assert_true(json_is_null(json_object_get(last, "time_ms")));
    assert_string_equal(json_string_value(json_object_get(last, "name")),
                        "say \"hi\"\n\x1B[31m\xEF\xBF\xBD");
    char *text = json_dumps(first, JSON_COMPACT);
    assert_string_equal(text, "{\"name\":\"resnet50\",\"macs\":4089000000,\"time_ms\":"
                              "0.10000000000000001,\"note\":\"a,b\"}");
    free(text);
    json_decref(rows);
}

static void test_empty(void **state) {
    (void)state;
    Table t;
    table_init(&t, &arena, cols, 2);
    char *text = printed(&t, table_print);
    assert_string_equal(text, "Name  MMAC\n");
    free(text);
    json_t *rows = NULL;
    assert_int_equal(table_json(&t, &rows), ERR_OK);
    assert_int_equal(json_array_size(rows), 0);
    json_decref(rows);
}

static void test_full_arena_is_reported(void **state) {
    (void)state;
    Arena small;
    assert_int_equal(arena_init(&small, 4096), ERR_OK);
    Table t;
    table_init(&t, &small, cols, 4);
    for (int i = 0; i < 1000; i++) {
        table_row(&t);
        table_text(&t, "a name");
    }
    json_t *rows = NULL;
    assert_int_equal(table_json(&t, &rows), ERR_LIMIT);
    assert_int_equal(table_print(&t, stderr), ERR_LIMIT);
    assert_int_equal(table_csv(&t, stderr), ERR_LIMIT);
    arena_finish(&small);
}

static void test_full_disk_is_reported(void **state) {
    (void)state;
    FILE *f = fopen("/dev/full", "w");
    if (f == NULL) skip();
    Table t = sample();
    assert_int_equal(table_csv(&t, f), ERR_IO);
    (void)fclose(f);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_print, setup, teardown),
        cmocka_unit_test_setup_teardown(test_csv, setup, teardown),
        cmocka_unit_test_setup_teardown(test_csv_reals_read_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_json, setup, teardown),
        cmocka_unit_test_setup_teardown(test_empty, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_arena_is_reported, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_disk_is_reported, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
