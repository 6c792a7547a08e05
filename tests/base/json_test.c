#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/json.h"
#include "base/file.h"
#include "tests/runner.h"

static void expect_refused(const char *text, Err want, const char *why) {
    json_t *doc = NULL;
    assert_int_equal(json_parse("doc", text, strlen(text), &doc), want);
    assert_null(doc);
    if (strstr(err_why(), why) == NULL) fail_msg("'%s' is not in: %s", why, err_why());
}

static void test_strict(void **state) {
    (void)state;
    expect_refused("{\n \"a\": 1,\n}", ERR_PARSE, "doc:3:1: ");
    expect_refused("", ERR_PARSE, "doc:1:0: ");
    expect_refused("{\"a\":1,\"a\":2}", ERR_PARSE, "duplicate");
    expect_refused("{} x", ERR_PARSE, "doc:1:4: ");
    expect_refused("7", ERR_PARSE, "'[' or '{'");
    expect_refused("[1e999]", ERR_PARSE, "overflow");
    expect_refused("[99999999999999999999]", ERR_PARSE, "too big");
    expect_refused("[\"\xFF\"]", ERR_PARSE, "decode byte 0xff");
    expect_refused("[\"\\u0000\"]", ERR_PARSE, "u0000");
    expect_refused("[NaN]", ERR_PARSE, "doc:1:");
    expect_refused("{\"a\" /* x */ : 1}", ERR_PARSE, "doc:1:");
}

static void test_depth(void **state) {
    (void)state;
    char deep[2 * JSON_DEPTH + 3];
    memset(deep, '[', JSON_DEPTH);
    memset(deep + JSON_DEPTH, ']', JSON_DEPTH);
    json_t *doc;
    assert_int_equal(json_parse("doc", deep, 2 * JSON_DEPTH, &doc), ERR_OK);
    json_decref(doc);
    memset(deep, '[', JSON_DEPTH + 1);
    memset(deep + JSON_DEPTH + 1, ']', JSON_DEPTH + 1);
    deep[sizeof deep - 1] = '\0';
    expect_refused(deep, ERR_LIMIT, "doc:1:65: ");
    const char *brackets =
        "[\"\\\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"]";
    assert_int_equal(json_parse("doc", brackets, strlen(brackets), &doc), ERR_OK);
    json_decref(doc);
}

static void test_members(void **state) {
    (void)state;
    const char *text = "{\"n\":5,\"x\":2.5,\"s\":\"hi\",\"b\":true,\"a\":[1],\"o\":{},\"z\":null}";
    json_t     *doc, *part;
    int64_t     n = 0;
    bool        b = false;
    const char *s = NULL;
    assert_int_equal(json_parse("doc", text, strlen(text), &doc), ERR_OK);
    assert_int_equal(json_get_int(doc, "n", 0, 5, &n), ERR_OK);
    assert_int_equal(n, 5);
    assert_int_equal(json_get_text(doc, "s", &s), ERR_OK);
    assert_int_equal(json_get_bool(doc, "b", &b), ERR_OK);
    assert_true(b && strcmp(s, "hi") == 0);
    assert_int_equal(json_get_array(doc, "a", &part), ERR_OK);
    assert_int_equal(json_array_size(part), 1);
    assert_int_equal(json_get_object(doc, "o", &part), ERR_OK);
    assert_int_equal(json_get_int(doc, "n", 6, 9, &n), ERR_INVALID);
    assert_string_equal(err_why(), "\"n\" is 5; it must be from 6 to 9");
    assert_int_equal(json_get_int(doc, "x", 0, 9, &n), ERR_PARSE);
    assert_int_equal(json_get_text(doc, "z", &s), ERR_PARSE);
    assert_string_equal(err_why(), "\"z\" is null; it must be a string");
    assert_int_equal(json_get_text(doc, "nope", &s), ERR_PARSE);
    assert_string_equal(err_why(), "\"nope\" is missing; it must be a string");
    assert_int_equal(json_get_text(part, "s", &s), ERR_PARSE);
    assert_int_equal(json_get_text(NULL, "s", &s), ERR_PARSE);
    assert_true(n == 5);
    json_decref(doc);
}

static void test_write_keeps_the_order(void **state) {
    (void)state;
    char       *text = NULL;
    size_t      len = 0;
    FILE       *f = open_memstream(&text, &len);
    json_t     *doc = json_object();
    const char *keys[] = {"zebra", "ant", "mole", "bee", "yak", "cat"};
    for (int i = 0; i < 6; i++)
        assert_int_equal(json_object_set_new(doc, keys[i], json_integer(i)), 0);
    assert_int_equal(json_write(f, doc), ERR_OK);
    (void)fclose(f);
    assert_string_equal(text, "{\"zebra\":0,\"ant\":1,\"mole\":2,\"bee\":3,\"yak\":4,\"cat\":5}\n");
    free(text);
    json_decref(doc);
}

static void test_put_string(void **state) {
    (void)state;
    char  *text = NULL;
    size_t len = 0;
    FILE  *f = open_memstream(&text, &len);
    json_put_string(f, "a \"b\" \\ \n caf\xC3\xA9");
    (void)fclose(f);
    assert_string_equal(text, "\"a \\u0022b\\u0022 \\u005c \\u000a caf\xC3\xA9\"");
    free(text);
}

static void test_files(void **state) {
    (void)state;
    char name[] = "/tmp/json_test.XXXXXX";
    int  fd = mkstemp(name);
    assert_true(fd >= 0);
    json_t *doc = json_pack("{s:[i,f,s]}", "a", 1, 0.1, "caf\xC3\xA9"), *back = NULL;
    assert_int_equal(json_save(name, doc), ERR_OK);
    assert_int_equal(json_read(name, 1000, &back), ERR_OK);
    assert_true(json_equal(doc, back));
    json_decref(back);
    json_decref(doc);
    assert_int_equal(json_read(name, 5, &back), ERR_LIMIT);
    assert_int_equal(file_replace(name, "[1,]", 4), ERR_OK);
    assert_int_equal(json_read(name, 1000, &back), ERR_PARSE);
    assert_non_null(strstr(err_why(), name));
    (void)remove(name);
    assert_int_equal(json_read(name, 1000, &back), ERR_IO);
    FILE *full = fopen("/dev/full", "w");
    if (full == NULL) return;
    doc = json_array();
    assert_int_equal(json_write(full, doc), ERR_IO);
    json_decref(doc);
    (void)fclose(full);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strict),     cmocka_unit_test(test_depth),
        cmocka_unit_test(test_members),    cmocka_unit_test(test_write_keeps_the_order),
        cmocka_unit_test(test_put_string), cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
