// Binary tensor data after the JSON: contradicting sizes, unaligned offsets, strings.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "serve/tensor/infer_request.h"
#include "tests/runner.h"

typedef struct Case {
    Arena          a;
    unsigned char *memory;
    InferRequest   r;
} Case;

// JSON and binary data one behind the other, the numbers `shift` bytes beside a multiple of 64.
static Err decode_at(Case *c, const char *json, const void *raw, size_t n, size_t header,
                     size_t shift) {
    size_t len = strlen(json), before = (64 - len % 64) % 64 + shift;
    assert_int_equal(arena_init(&c->a, 1 << 20), ERR_OK);
    assert_int_equal(posix_memalign((void **)&c->memory, 64, before + len + n + 1), 0);
    memcpy(c->memory + before, json, len);
    if (n > 0) memcpy(c->memory + before + len, raw, n);
    return infer_json_decode(c->memory + before, len + n, header, &c->a, &c->r);
}

static void drop(Case *c) {
    free(c->memory);
    arena_finish(&c->a);
}

static const char *input(const char *type, const char *shape, const char *size, const char *more) {
    static char text[512];
    (void)snprintf(text, sizeof text,
                   "{\"name\":\"x\",\"datatype\":\"%s\",\"shape\":%s,\"parameters\":{\"binary_data_"
                   "size\":%s}%s}",
                   type, shape, size, more);
    return text;
}

static const char *request(const char *inputs) {
    static char text[1024];
    (void)snprintf(text, sizeof text, "{\"inputs\":[%s]}", inputs);
    return text;
}

static void refuse(const char *json, size_t n, size_t header, const char *why) {
    static const unsigned char zeros[4096];
    Case                       c;
    Err                        e = decode_at(&c, json, zeros, n, header, 0);
    if (e != ERR_INVALID || strstr(err_why(), why) == NULL)
        fail_msg("%s: %s: %s, not %s", json, err_text(e), err_why(), why);
    drop(&c);
}

static void test_sizes_that_do_not_agree(void **state) {
    (void)state;
    const char  *good = request(input("FP32", "[2,2]", "16", ""));
    const size_t len = strlen(good);
    Case         c;
    assert_int_equal(decode_at(&c, good, "0123456789abcdef", 16, len, 0), ERR_OK);
    assert_memory_equal(c.r.inputs[0].t.data, "0123456789abcdef", 16);
    drop(&c);
    refuse(good, 0, SIZE_MAX, "needs the header Inference-Header-Content-Length");  // B1
    refuse(good, 16, len + 17, "Inference-Header-Content-Length is");               // B2
    refuse(good, 15, len, "inputs[0]: binary_data_size is 16, 15 bytes are left");  // B4
    refuse(good, 17, len, "1 bytes of the body belong to no input");                // B4
    refuse(good, 0, len, "16, 0 bytes are left");
    refuse(request(input("FP32", "[2,2]", "12", "")), 12,
           strlen(request(input("FP32", "[2,2]", "12", ""))),
           "inputs[0]: shape 2x2 needs 16 bytes, got 12");  // B5
    static const struct {
        const char *type, *shape, *size, *more, *why;
    } rows[] = {{"FP32", "[65536,65536,65536,65536]", "16", "", "shape is too large"},  // B6
                {"FP32", "[4611686018427387904,4]", "0", "", "shape is too large"},
                {"FP32", "[4]", "16", ",\"data\":[1,2,3,4]", "both data and binary data"},  // B8
                {"FP32", "[4]", "-16", "", "parameters.binary_data_size is not a whole number"},
                {"FP32", "[4]", "1.6e1", "", "parameters.binary_data_size"},
                {"FP32", "[4]", "\"16\"", "", "parameters.binary_data_size"},
                {"FP32", "[4]", "18446744073709551632", "", "parameters.binary_data_size"},
                {"FP32", "[4]", "9223372036854775807", "", "16 bytes are left"},
                {"FP32", "[4]", "18446744073709551600", "", "16 bytes are left"},
                {"BYTES", "[5]", "16", "", "5 elements of BYTES need more than 16 bytes"},
                {"BYTES", "[3]", "16", "", "3 elements end at byte 12 of 16"},
                {"BYTES", "[1000000000]", "16", "", "need more than 16 bytes"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *json = request(input(rows[i].type, rows[i].shape, rows[i].size, rows[i].more));
        refuse(json, 16, strlen(json), rows[i].why);
    }
}

// The JSON says data first, binary data behind it, and the other way round.
static void test_both_kinds_of_data(void **state) {  // B8
    (void)state;
    const char *json =
        request("{\"data\":[1],\"parameters\":{\"binary_data_size\":4},\"name\":\"x\","
                "\"shape\":[1],\"datatype\":\"FP32\"}");
    refuse(json, 4, strlen(json), "both data and binary data");
}

static void
test_header_within_the_json(void **state) {  // B3: numbers that cannot be are the front's
    (void)state;
    const char *json = request(input("FP32", "[2,2]", "16", ""));
    Case        c;
    for (size_t n = 1; n < strlen(json); n++) {
        assert_int_not_equal(decode_at(&c, json, "0123456789abcdef", 16, n, 0), ERR_OK);
        drop(&c);
    }
    assert_int_not_equal(decode_at(&c, json, "0123456789abcdef", 16, SIZE_MAX - 1, 0), ERR_OK);
    drop(&c);
}

static void test_alignment(void **state) {  // B9
    (void)state;
    const char *json = request(input("INT64", "[2]", "16", ""));
    for (size_t shift = 0; shift < 9; shift++) {
        Case c;
        assert_int_equal(decode_at(&c, json, "0123456789abcdef", 16, strlen(json), shift), ERR_OK);
        const int64_t *v = c.r.inputs[0].t.data;
        assert_int_equal((uintptr_t)v % sizeof *v, 0);
        assert_memory_equal(v, "0123456789abcdef", 16);
        const bool within =
            (const unsigned char *)v > c.memory && (const char *)v < (char *)c.memory + 512;
        assert_true(within == (shift % 8 == 0));
        drop(&c);
    }
}

static void test_bools(void **state) {
    (void)state;
    const char *json = request(input("BOOL", "[3]", "3", ""));
    Case        c;
    assert_int_equal(decode_at(&c, json, "\1\0\1", 3, strlen(json), 0), ERR_OK);
    drop(&c);
    assert_int_equal(decode_at(&c, json, "\1\0\2", 3, strlen(json), 0), ERR_INVALID);
    assert_non_null(strstr(err_why(), "inputs[0]: element 2 is 2: a BOOL is 0 or 1"));
    drop(&c);
}

static void test_strings(void **state) {  // T4
    (void)state;
    static const struct {
        const char *bytes;
        size_t      len;
        Err         e;
    } rows[] = {{"\3\0\0\0abc\0\0\0\0", 11, ERR_OK},
                {"\3\0\0\0abc\1\0\0\0", 11, ERR_INVALID},
                {"\xFF\xFF\xFF\xFF"
                 "abc\0\0\0\0",
                 11, ERR_INVALID},
                {"\3\0\0\0abc\xFF\xFF\xFF\xFF", 11, ERR_INVALID},
                {"\7\0\0\0abc\0\0\0\0", 11, ERR_INVALID},
                {"\4\0\0\0abc\0\0\0\0", 11, ERR_INVALID},
                {"\2\0\0\0abc\0\0\0\0", 11, ERR_INVALID}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *json = request(input("BYTES", "[1,2]", "11", ""));
        Case        c;
        assert_int_equal(decode_at(&c, json, rows[i].bytes, rows[i].len, strlen(json), 3),
                         rows[i].e);
        if (rows[i].e == ERR_OK) {
            const Str *s = c.r.inputs[0].t.data;
            assert_true(s[0].len == 3 && memcmp(s[0].at, "abc", 3) == 0 && s[1].len == 0);
        }
        drop(&c);
    }
}

static void test_the_same_input_twice(void **state) {  // B7
    (void)state;
    char        both[1024];
    const char *one = input("FP32", "[1]", "4", "");
    (void)snprintf(both, sizeof both, "%.300s,%.300s", one, one);
    const char          *json = request(both);
    const TensorSpec     spec = {.name = "x", .type = {.dtype = DT_F32, .rank = 1, .dims = {1}}};
    const ModelSignature signature = {&spec, NULL, 1, 0};
    Tensor               bound;
    Case                 c;
    assert_int_equal(decode_at(&c, json, "01234567", 8, strlen(json), 0), ERR_OK);
    assert_memory_equal(c.r.inputs[1].t.data, "4567", 4);
    assert_int_equal(infer_bind_inputs(&signature, &c.r, &c.a, &bound), ERR_INVALID);
    assert_non_null(strstr(err_why(), "inputs[1]: 'x' repeats inputs[0]"));
    drop(&c);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_that_do_not_agree),
        cmocka_unit_test(test_both_kinds_of_data),
        cmocka_unit_test(test_header_within_the_json),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_bools),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_the_same_input_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
