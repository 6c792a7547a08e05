#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>
#include <jansson.h>

#include "base/log.h"
#include "tests/runner.h"

static TimeNs fixed(void *state) { return *(TimeNs *)state; }

static TimeNs now = INT64_C(1700000000123456789);
static char  *text;
static size_t len;

static Log open_log(LogLevel least) {
    return (Log){.out = open_memstream(&text, &len), .min_level = least, .clock = {fixed, &now}};
}

static void expect(Log *log, const char *want) {
    assert_int_equal(fclose(log->out), 0);
    assert_string_equal(text, want);
    free(text);
}

static void test_line(void **state) {
    (void)state;
    Log log = open_log(LOG_DEBUG);
    log_line(&log, LOG_INFO, "started");
    log_with(&log, LOG_WARN, "model loaded", log_text("name", "resnet50"), log_int("layers", -53),
             log_real("load", 0.25), log_bool("warm", true));
    expect(&log, "ts=2023-11-14T22:13:20.123456Z level=info msg=started\n"
                 "ts=2023-11-14T22:13:20.123456Z level=warn msg=\"model loaded\" name=resnet50 "
                 "layers=-53 load=0.25 warm=true\n");
}

static void test_fields_without_value(void **state) {
    (void)state;
    Log log = open_log(LOG_DEBUG);
    log_with(&log, LOG_INFO, "m", log_if(false, log_int("a", 1)), log_if(true, log_int("b", 2)),
             log_if(false, log_text("c", "x")));
    log.format = LOG_JSON;
    log_with(&log, LOG_INFO, "m", log_if(false, log_int("a", 1)), log_if(true, log_int("b", 2)));
    expect(&log, "ts=2023-11-14T22:13:20.123456Z level=info msg=m b=2\n"
                 "{\"ts\":\"2023-11-14T22:13:20.123456Z\",\"level\":\"info\",\"msg\":\"m\","
                 "\"b\":2}\n");
}

static void test_levels(void **state) {
    (void)state;
    Log log = open_log(LOG_WARN);
    log_line(&log, LOG_INFO, "dropped");
    log_line(&log, LOG_ERROR, "kept");
    expect(&log, "ts=2023-11-14T22:13:20.123456Z level=error msg=kept\n");
    LogLevel level;
    assert_int_equal(log_level_parse("debug", &level), ERR_OK);
    assert_int_equal(level, LOG_DEBUG);
    assert_int_equal(log_level_parse("loud", &level), ERR_ARG);
}

static void test_escaping(void **state) {
    (void)state;
    static const struct {
        const char *value, *want;
    } cases[] = {
        {"", "\"\""},
        {"plain-1.2/3", "plain-1.2/3"},
        {"a b", "\"a b\""},
        {"a=b", "\"a=b\""},
        {"say \"hi\"", "\"say \\\"hi\\\"\""},
        {"back\\slash", "\"back\\\\slash\""},
        {"two\nlines\r\tx", "\"two\\nlines\\r\\tx\""},
        {"\x1B[31m\x01\x7F", "\"\\u001b[31m\\u0001\\u007f\""},
        {"caf\xC3\xA9", "\"caf\xC3\xA9\""},
        {"bad \xFF\xC3", "\"bad \\ufffd\\ufffd\""},
        {"\xC2\x85", "\"\\u0085\""},                    // a C1 control
        {"\xE2\x80\xAE x", "\"\\u202e x\""},            // turns the writing direction
        {"\xED\xA0\x80", "\"\\ufffd\\ufffd\\ufffd\""},  // half of a surrogate pair
        {"\xC0\xAF", "\"\\ufffd\\ufffd\""},             // an overlong slash
        {NULL, "null"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Log  log = open_log(LOG_DEBUG);
        char want[200];
        log_with(&log, LOG_INFO, "m", log_text("k", cases[i].value));
        (void)snprintf(want, sizeof want, "ts=2023-11-14T22:13:20.123456Z level=info msg=m k=%s\n",
                       cases[i].want);
        expect(&log, want);
    }
}

static void test_keys_cannot_break_the_line(void **state) {
    (void)state;
    Log log = open_log(LOG_DEBUG);
    log_with(&log, LOG_INFO, "m", log_int("a b=\n", 1));
    expect(&log, "ts=2023-11-14T22:13:20.123456Z level=info msg=m a_b__=1\n");
}

static void test_long_values_are_cut_cleanly(void **state) {
    (void)state;
    static char big[100000];
    for (size_t shift = 0; shift < 8; shift++) {
        memset(big, '\n', sizeof big - 1);
        memset(big, 'x', shift);
        Log log = open_log(LOG_DEBUG);
        log_with(&log, LOG_INFO, "m", log_text("big", big), log_int("after", 1));
        assert_int_equal(fclose(log.out), 0);
        assert_true(len < 5000);
        assert_string_equal(text + len - 12, "n\" cut=true\n");
        assert_ptr_equal(strchr(text, '\n'), text + len - 1);
        free(text);
    }
}

static void test_times_before_1970(void **state) {
    (void)state;
    TimeNs early = -1;
    Log    log = open_log(LOG_DEBUG);
    log.clock.state = &early;
    log_line(&log, LOG_INFO, "m");
    expect(&log, "ts=1969-12-31T23:59:59.999999Z level=info msg=m\n");
}

enum { LINES = 500 };

static void *log_many(void *log) {
    for (int i = 0; i < LINES; i++) log_with(log, LOG_INFO, "m", log_text("k", "some words"));
    return NULL;
}

static void test_lines_of_threads_do_not_mix(void **state) {
    (void)state;
    const char *line = "ts=2023-11-14T22:13:20.123456Z level=info msg=m k=\"some words\"\n";
    Log         log = {.out = tmpfile(), .min_level = LOG_DEBUG, .clock = {fixed, &now}};
    pthread_t   threads[4];
    char        got[128];
    int         lines = 0;
    assert_non_null(log.out);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, log_many, &log), 0);
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    rewind(log.out);
    for (; fgets(got, sizeof got, log.out) != NULL; lines++) assert_string_equal(got, line);
    assert_int_equal(lines, 4 * LINES);
    assert_int_equal(fclose(log.out), 0);
}

static void test_json(void **state) {
    (void)state;
    Log log = open_log(LOG_DEBUG);
    log.format = LOG_JSON;
    log_with(&log, LOG_WARN, "a\"b\nc", log_text("k\"", "\x1b[0m \xff"), log_int("n", -5),
             log_real("x", 0.25), log_real("bad", (double)NAN), log_bool("yes", true),
             log_text("none", NULL));
    expect(&log, "{\"ts\":\"2023-11-14T22:13:20.123456Z\",\"level\":\"warn\",\"msg\":"
                 "\"a\\\"b\\nc\",\"k\\\"\":\"\\u001b[0m \\ufffd\",\"n\":-5,\"x\":0.25,\"bad\":null,"
                 "\"yes\":true,\"none\":\"null\"}\n");
    LogFormat f;
    assert_int_equal(log_format_parse("json", &f), ERR_OK);
    assert_int_equal(f, LOG_JSON);
    assert_int_equal(log_format_parse("xml", &f), ERR_ARG);
}

static void take_json(void *self, const char *line, size_t n) {
    *(size_t *)self = n;
    assert_int_equal(line[n - 1], '\n');
    json_t *o = json_loadb(line, n, JSON_REJECT_DUPLICATES, NULL);
    assert_true(json_is_object(o) && json_object_get(o, "msg") != NULL);
    json_decref(o);
}

static void take_line(void *self, const char *line, size_t n) {
    *(size_t *)self = n;
    assert_ptr_equal(memchr(line, '\n', n), line + n - 1);
}

// Whatever the sizes of message and fields: one line, closed, within its bound.
static void test_lines_are_cut_whole(void **state) {
    (void)state;
    static char big[5000];
    size_t      n = 0;
    memset(big, 'x', sizeof big - 1);
    for (size_t i = 0; i < 1200; i++) {
        size_t at = 3900 + i / 4;
        Log    log = {.clock = {fixed, &now}, .put = take_line, .self = &n};
        if (i % 2 == 0) {
            log.format = LOG_JSON;
            log.put = take_json;
        }
        const char *tail = big + sizeof big - 1 - at;
        log_with(&log, LOG_INFO, i % 4 < 2 ? tail : "a \"short\" one", log_text("field", tail),
                 log_int("after", 7));
        assert_in_range(n, 1, LOG_BYTES);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields_without_value),
        cmocka_unit_test(test_line),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_lines_are_cut_whole),
        cmocka_unit_test(test_escaping),
        cmocka_unit_test(test_keys_cannot_break_the_line),
        cmocka_unit_test(test_long_values_are_cut_cleanly),
        cmocka_unit_test(test_times_before_1970),
        cmocka_unit_test(test_lines_of_threads_do_not_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
