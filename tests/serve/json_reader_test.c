// The JSON reader: numbers equal to the C library's to the last bit; only valid JSON is accepted.
#include "serve/rest/json_reader.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/text.h"
#include "serve/tensor/float_format.h"
#include "tests/runner.h"

enum { TEXT = 20000 };

// One element, and then what is behind it.
static JsonFault read_before(DType t, const char *text, const char *tail, void *out) {
    size_t         len = strlen(text), more = strlen(tail);
    unsigned char *body = malloc(len + more);
    int64_t        done = 0;
    assert_non_null(body);
    memcpy(body, text, len);
    memcpy(body + len, tail, more);
    JsonReader s = {.text = body, .at = body, .end = body + len + more};
    JsonFault  f = json_reader_row(&s, t, out, 1, &done);
    if (f == JSON_FAULT_NONE && s.at != body + len) f = JSON_FAULT_COMMA;
    if (t != DT_STR) assert_memory_equal(body, text, len);
    assert_memory_equal(body + len, tail, more);
    free(body);
    return f;
}

// At the very end of memory that may be read, and with much behind it: two ways through the reader.
static JsonFault read_one(DType t, const char *text, void *out) {
    unsigned char far[16] = {0};
    JsonFault     f = read_before(t, text, "]}", out);
    assert_int_equal(read_before(t, text, ",1234567890,1234567890,0]}", far), f);
    if (f == JSON_FAULT_NONE && t != DT_STR) assert_memory_equal(far, out, dtype_size(t));
    return f;
}

static void check_f32(const char *text) {
    float     got = 0, want = strtof(text, NULL);
    JsonFault f = read_one(DT_F32, text, &got);
    if (isinf(want)) {
        assert_int_equal(f, JSON_FAULT_RANGE);
    } else {
        assert_int_equal(f, JSON_FAULT_NONE);
        if (memcmp(&got, &want, sizeof got) != 0) fail_msg("%s: %a, not %a", text, got, want);
    }
}

static void check_f64(const char *text) {
    double    got = 0, want = strtod(text, NULL);
    JsonFault f = read_one(DT_F64, text, &got);
    if (isinf(want)) {
        assert_int_equal(f, JSON_FAULT_RANGE);
    } else {
        assert_int_equal(f, JSON_FAULT_NONE);
        if (memcmp(&got, &want, sizeof got) != 0) fail_msg("%s: %a, not %a", text, got, want);
    }
}

static uint64_t below_ten_to(Rng *rng, uint64_t digits) {
    uint64_t most = 1;
    for (uint64_t i = 0; i < digits; i++) most *= 10;
    return rng_below(rng, most);
}

// Numbers as programs write them, and unusual forms.
static void random_number(Rng *rng, char *out, size_t size) {
    const char *sign = rng_below(rng, 2) == 0 ? "" : "-";
    uint32_t    bits = (uint32_t)rng_u64(rng) & 0x7FFFFFFF;
    float       f;
    double      d;
    memcpy(&f, &bits, sizeof f);
    if (!isfinite(f)) f = 1;
    switch (rng_below(rng, 9)) {
    case 0: (void)snprintf(out, size, "%s%.9g", sign, (double)f); return;
    case 1: (void)snprintf(out, size, "%s%.17g", sign, (double)f); return;
    case 2:
        (void)snprintf(out, size, "%s%.*f", sign, (int)rng_below(rng, 12), rng_unit64(rng));
        return;
    case 3: (void)snprintf(out, size, "%s%.17g", sign, rng_unit64(rng) * 1000); return;
    case 4:
        (void)snprintf(out, size, "%s%" PRIu64 "e%d", sign,
                       below_ten_to(rng, 1 + rng_below(rng, 19)), (int)rng_below(rng, 120) - 75);
        return;
    case 5:
        (void)snprintf(out, size, "%s%" PRIu64 ".%0*" PRIu64, sign,
                       below_ten_to(rng, 1 + rng_below(rng, 19)), (int)rng_below(rng, 19) + 1,
                       below_ten_to(rng, 1 + rng_below(rng, 18)));
        return;
    case 7:  // the middle between two doubles, and next to it
        d = rng_unit64(rng) + (double)rng_below(rng, 3);
        (void)snprintf(out, size, "%s%.*Lf", sign, 17 + (int)rng_below(rng, 44),
                       ((long double)d + (long double)nextafter(d, 4)) / 2);
        return;
    case 6:  // the middle between two floats, to the last digit
        (void)snprintf(out, size, "%s%.60g", sign,
                       ((double)f + (double)nextafterf(f, HUGE_VALF)) / 2);
        return;
    default: (void)snprintf(out, size, "%s%" PRIu64, sign, rng_below(rng, 70000)); return;
    }
}

static void test_random_numbers(void **state) {
    (void)state;
    Rng  rng = {1};
    char text[512];
    for (int i = 0; i < 700000; i++) {
        random_number(&rng, text, sizeof text);
        if (strstr(text, "inf") != NULL) continue;
        check_f32(text);
        check_f64(text);
    }
}

static void test_odd_numbers(void **state) {
    (void)state;
    static const char *const rows[] = {"0",
                                       "-0",
                                       "0.0",
                                       "-0.0",
                                       "0e0",
                                       "1e0",
                                       "1E+2",
                                       "1e-2",
                                       "16777217",
                                       "16777217.0",
                                       "16777216.999999999999999999999999",
                                       "16777217.0000000000000000000000001",
                                       "1e38",
                                       "3.4028235e38",
                                       "3.4028235677973366e38",
                                       "3.4028236e38",
                                       "1e39",
                                       "-1e39",
                                       "1e-45",
                                       "7e-46",
                                       "7.1e-46",
                                       "1e-400",
                                       "1.7976931348623157e308",
                                       "1.7976931348623159e308",
                                       "1e309",
                                       "5e-324",
                                       "2e-324",
                                       "1.17549435e-38",
                                       "1.1754942e-38",
                                       "0.000000000000000000000000000000000000011754942",
                                       "123456789012345678901234567890",
                                       "0.1234567890123456789012345678901234567890",
                                       "9007199254740993",
                                       "9223372036854775807",
                                       "18446744073709551615",
                                       "99999999999999999999e-20",
                                       "1e99999999999999999999999",
                                       "1e-99999999999999999999999",
                                       "0e99999999999999999999999",
                                       "1.00000017881393432617187499",
                                       "1.00000017881393432617187500",
                                       "1.00000017881393432617187501"};
    char                     text[TEXT];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_f32(rows[i]);
        check_f64(rows[i]);
    }
    memset(text, '7', sizeof text);  // 10 kB of digits
    text[10000] = '\0';
    check_f32(text);
    check_f64(text);
    text[1] = '.';
    check_f32(text);
    check_f64(text);
    memset(text, '0', 10000);
    memcpy(text + 1, ".", 1);
    memcpy(text + 9000, "1e9010", 7);
    check_f32(text);
    check_f64(text);
}

static void test_no_numbers(void **state) {
    (void)state;
    static const char *const rows[] = {"-",        "+1",   ".5",
                                       "5.",       "01",   "-01",
                                       "00",       "0x10", "1e",
                                       "1e+",      "1.e5", "NaN",
                                       "nan",      "inf",  "-inf",
                                       "Infinity", "1_0",  "١",
                                       "\"1\"",    "true", "null",
                                       "[1]",      "{}",   "1.5.5",
                                       "1,5,",     "--1",  "1e5.5",
                                       "1f",       "1 2",  "- 1",
                                       "0b1",      "1d",   "1.2345678901234567x",
                                       "-",        "-a",   "123456789012345678901234x"};
    double                   out;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_not_equal(read_one(DT_F32, rows[i], &out), JSON_FAULT_NONE);
        assert_int_not_equal(read_one(DT_F64, rows[i], &out), JSON_FAULT_NONE);
        assert_int_not_equal(read_one(DT_I64, rows[i], &out), JSON_FAULT_NONE);
    }
}

static void test_whole_numbers_by_range(void **state) {
    (void)state;
    static const struct {
        DType       t;
        const char *text;
        JsonFault   fault;
    } rows[] = {{DT_U8, "255", JSON_FAULT_NONE},
                {DT_U8, "256", JSON_FAULT_RANGE},
                {DT_U8, "-1", JSON_FAULT_RANGE},
                {DT_U8, "-0", JSON_FAULT_NONE},
                {DT_I8, "-128", JSON_FAULT_NONE},
                {DT_I8, "-129", JSON_FAULT_RANGE},
                {DT_I8, "127", JSON_FAULT_NONE},
                {DT_I8, "128", JSON_FAULT_RANGE},
                {DT_U16, "65535", JSON_FAULT_NONE},
                {DT_U16, "65536", JSON_FAULT_RANGE},
                {DT_I16, "-32768", JSON_FAULT_NONE},
                {DT_I16, "32768", JSON_FAULT_RANGE},
                {DT_U32, "4294967295", JSON_FAULT_NONE},
                {DT_U32, "4294967296", JSON_FAULT_RANGE},
                {DT_I32, "-2147483648", JSON_FAULT_NONE},
                {DT_I32, "-2147483649", JSON_FAULT_RANGE},
                {DT_I64, "9223372036854775807", JSON_FAULT_NONE},
                {DT_I64, "9223372036854775808", JSON_FAULT_RANGE},
                {DT_I64, "-9223372036854775808", JSON_FAULT_NONE},
                {DT_I64, "-9223372036854775809", JSON_FAULT_RANGE},
                {DT_U64, "18446744073709551615", JSON_FAULT_NONE},
                {DT_U64, "18446744073709551616", JSON_FAULT_RANGE},
                {DT_U64, "99999999999999999999999999999", JSON_FAULT_RANGE},
                {DT_I32, "1.0", JSON_FAULT_FRACTION},
                {DT_I32, "1e3", JSON_FAULT_FRACTION},
                {DT_I32, "1E3", JSON_FAULT_FRACTION},
                {DT_BOOL, "true", JSON_FAULT_NONE},
                {DT_BOOL, "false", JSON_FAULT_NONE},
                {DT_BOOL, "1", JSON_FAULT_NONE},
                {DT_BOOL, "0", JSON_FAULT_NONE},
                {DT_BOOL, "2", JSON_FAULT_KIND},
                {DT_BOOL, "01", JSON_FAULT_KIND},
                {DT_BOOL, "\"true\"", JSON_FAULT_KIND},
                {DT_BOOL, "tru", JSON_FAULT_KIND},
                {DT_STR, "\"x\"", JSON_FAULT_NONE},
                {DT_STR, "1", JSON_FAULT_KIND},
                {DT_I64, "\"1\"", JSON_FAULT_KIND}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t out[2] = {0};
        assert_int_equal(read_one(rows[i].t, rows[i].text, out), rows[i].fault);
    }
    int64_t  i64 = 0;
    uint64_t u64 = 0;
    assert_int_equal(read_one(DT_I64, "-9223372036854775808", &i64), JSON_FAULT_NONE);
    assert_true(i64 == INT64_MIN);
    assert_int_equal(read_one(DT_U64, "18446744073709551615", &u64), JSON_FAULT_NONE);
    assert_true(u64 == UINT64_MAX);
}

// A locale with a decimal comma makes no difference; it is compiled for the purpose.
static void test_locale(void **state) {
    (void)state;
    char dir[] = "locale_XXXXXX", command[512];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(
        command, sizeof command,
        "printf 'LC_NUMERIC\\ndecimal_point \",\"\\nthousands_sep \".\"\\ngrouping 3;3\\n"
        "END LC_NUMERIC\\nLC_CTYPE\\ncopy \"POSIX\"\\nEND LC_CTYPE\\n' >%s/source && "
        "localedef -c -f ANSI_X3.4-1968 -i %s/source %s/xx_XX >%s/log 2>&1",
        dir, dir, dir, dir);
    (void)!system(command);
    assert_int_equal(setenv("LOCPATH", dir, 1), 0);
    const bool comma = setlocale(LC_NUMERIC, "xx_XX") != NULL && strtof("1,5", NULL) > 1.4F;
    char       text[2 * FLOAT_FORMAT_ROOM];
    float      f = 0, third = 0, other;
    if (comma) {
        assert_int_equal(read_one(DT_F32, "16777217.0", &f), JSON_FAULT_NONE);  // the slow way
        assert_int_equal(read_one(DT_F32, "1.5", &third), JSON_FAULT_NONE);
        assert_int_equal(read_one(DT_F32, "1,5", &other), JSON_FAULT_COMMA);
        assert_int_equal(float_format_f64(0.1 + 0.2, text), 19);
        assert_int_equal(float_format_f32(1e-20F, text + 19), 5);
    }
    (void)setlocale(LC_NUMERIC, "C");
    (void)unsetenv("LOCPATH");
    (void)snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
    if (!comma) skip();
    assert_true(f == 16777216.0F && third == 1.5F);
    assert_memory_equal(text, "0.300000000000000041e-20", 24);
}

// The text of the only member, or how the document failed.
static Err text_in(const char *json, char *out, size_t *len) {
    size_t         n = strlen(json);
    unsigned char *body = malloc(n + 1);
    JsonReader     s;
    Str            key, value = {0};
    bool           more;
    assert_non_null(body);
    memcpy(body, json, n);
    Err e = json_reader_begin(&s, body, n);
    if (e == ERR_OK) e = json_reader_open(&s, '{');
    if (e == ERR_OK) e = json_reader_member(&s, true, &key, &more);
    if (e == ERR_OK) e = json_reader_string(&s, &value);
    if (e == ERR_OK) e = json_reader_member(&s, false, &key, &more);
    if (e == ERR_OK) e = json_reader_finish(&s);
    if (e == ERR_OK) memcpy(out, value.at, value.len);
    *len = value.len;
    free(body);
    return e;
}

static void test_strings(void **state) {
    (void)state;
    static const struct {
        const char *json, *text;
        size_t      len;
    } rows[] = {{"{\"a\":\"\"}", "", 0},
                {"{\"a\":\"plain and longer than eight\"}", "plain and longer than eight", 27},
                {"{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}", "\"\\/\b\f\n\r\t", 8},
                {"{\"a\":\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00!\"}",
                 "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80!", 11},
                {"{\"a\":\"x\\u0000y\"}", "x\0y", 3},
                {"{\"a\":\"\xC3\xA9 \xF0\x9F\x98\x80 and so on\"}",
                 "\xC3\xA9 \xF0\x9F\x98\x80 and so on", 17}};
    static const char *const wrong[] = {"{\"a\":\"\\ud83d\"}",
                                        "{\"a\":\"\\ude00\"}",
                                        "{\"a\":\"\\ud83d\\u0041\"}",
                                        "{\"a\":\"\\ud83dx\"}",
                                        "{\"a\":\"\\x41\"}",
                                        "{\"a\":\"\\u12g4\"}",
                                        "{\"a\":\"\\u12\"}",
                                        "{\"a\":\"tab\there\"}",
                                        "{\"a\":\"line\nhere\"}",
                                        "{\"a\":\"\xC0\xAF\"}",
                                        "{\"a\":\"\xED\xA0\x80\"}",
                                        "{\"a\":\"\xFF\"}",
                                        "{\"a\":\"\xC3\"}",
                                        "{\"a\":\"\xF4\x90\x80\x80\"}",
                                        "{\"a\":\"open}",
                                        "{\"a\":\"open\\\"}",
                                        "{\"a\":\"\\\"}",
                                        "{\"a\":'x'}",
                                        "{a:\"x\"}",
                                        "{\"a\" \"x\"}",
                                        "{\"a\":\"x\"",
                                        "{\"a\":\"x\"}}",
                                        "{\"a\":\"x\"} x",
                                        "{\"a\":\"x\",}",
                                        "",
                                        "   ",
                                        "[]",
                                        "1",
                                        "{",
                                        "}",
                                        "{\"a\":\"\\ud83d\\}"};
    char                     text[64];
    size_t                   len;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(text_in(rows[i].json, text, &len), ERR_OK);
        assert_int_equal(len, rows[i].len);
        assert_memory_equal(text, rows[i].text, len);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(text_in(wrong[i], text, &len), ERR_PARSE);
}

static Err skip_all(const char *json, size_t n) {
    unsigned char *body = malloc(n + 1);
    JsonReader     s;
    assert_non_null(body);
    memcpy(body, json, n);
    Err e = json_reader_begin(&s, body, n);
    if (e == ERR_OK) e = json_reader_skip(&s, SIZE_MAX);
    if (e == ERR_OK) e = json_reader_finish(&s);
    assert_memory_equal(body, json, n);
    free(body);
    return e;
}

static void test_depth(void **state) {
    (void)state;
    enum { DEEP = 1000000 };
    char *text = malloc(DEEP * 6 + 8);
    assert_non_null(text);
    for (int depth = 1; depth <= DEEP; depth = depth < 70                          ? depth + 1
                                               : depth * 10 > DEEP && depth < DEEP ? DEEP
                                                                                   : depth * 10) {
        size_t n = 0;
        for (int i = 0; i < depth; i++, n += 5) memcpy(text + n, "{\"a\":", 5);
        text[n++] = '1';
        for (int i = 0; i < depth; i++) text[n++] = '}';
        assert_int_equal(skip_all(text, n), depth <= JSON_READER_DEPTH ? ERR_OK : ERR_PARSE);
    }
    free(text);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_numbers), cmocka_unit_test(test_odd_numbers),
        cmocka_unit_test(test_no_numbers),     cmocka_unit_test(test_whole_numbers_by_range),
        cmocka_unit_test(test_locale),         cmocka_unit_test(test_strings),
        cmocka_unit_test(test_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
