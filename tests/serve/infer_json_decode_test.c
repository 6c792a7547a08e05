// Malformed JSON requests of all kinds, and the error messages.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "serve/tensor/infer_request.h"
#include "tests/runner.h"

enum { ROOM = 1 << 26 };
static Arena arena;

// In memory that ends with the body, so that a sanitizer detects reads beyond it.
static Err decode_bytes(const void *text, size_t len, size_t header, InferRequest *r) {
    static unsigned char *body;
    free(body);
    body = malloc(len > 0 ? len : 1);
    assert_non_null(body);
    memcpy(body, text, len);
    arena_rewind(&arena, 0);
    return infer_json_decode(body, len, header, &arena, r);
}

static Err decode(const char *json, InferRequest *r) {
    return decode_bytes(json, strlen(json), SIZE_MAX, r);
}

// Refused with a sentence that says why.
static void refuse(const char *json, Err want, const char *why) {
    InferRequest r;
    Err          e = decode(json, &r);
    if (e != want || strstr(err_why(), why) == NULL)
        fail_msg("%.200s\n gives %s: %s", json, err_text(e), err_why());
}

// An input x of the given type, shape and data.
static const char *input(const char *type, const char *shape, const char *data) {
    static char text[1 << 16];
    (void)snprintf(text, sizeof text,
                   "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"%s\",\"shape\":%s,\"data\":%s}]}",
                   type, shape, data);
    return text;
}

static const Tensor *accept(const char *json) {
    static InferRequest r;
    if (decode(json, &r) != ERR_OK) fail_msg("%.200s: %s", json, err_why());
    return &r.inputs[0].t;
}

static void test_nesting(void **state) {  // J1
    (void)state;
    enum { DEEP = 1000000 };
    static const char *const ends[] = {"[", "{\"a\":", "]", "}"};
    char                    *text = malloc(DEEP * 6 + 64);
    assert_non_null(text);
    for (int kind = 0; kind < 2; kind++) {
        size_t       n = (size_t)sprintf(text, "{\"a\":");
        InferRequest r;
        for (int i = 0; i < DEEP; i++) n += (size_t)sprintf(text + n, "%s", ends[kind]);
        text[n++] = '1';
        for (int i = 0; i < DEEP; i++) n += (size_t)sprintf(text + n, "%s", ends[kind + 2]);
        text[n++] = '}';
        assert_int_equal(decode_bytes(text, n, SIZE_MAX, &r), ERR_PARSE);
        assert_non_null(strstr(err_why(), "nesting too deep"));
    }
    free(text);
    refuse(input("FP32", "[1]", "[[[[[[[[[[[[1]]]]]]]]]]]]"), ERR_INVALID, "inputs[0].data");
    refuse(input("FP32", "[1,1]", "[[[1]]]"), ERR_INVALID,
           "inputs[0].data: element 0 is not a number");
}

// Members that unknown members, and then a request.
static Err decode_among(int keys, InferRequest *r) {
    char  *text = malloc((size_t)keys * 6 + 128);
    size_t n = 1;
    assert_non_null(text);
    text[0] = '{';
    for (int i = 0; i < keys; i++, n += 6) memcpy(text + n, "\"k\":1,", 6);
    n += (size_t)snprintf(text + n, 128, "%s", input("FP32", "[1]", "[1]") + 1);
    Err e = decode_bytes(text, n, SIZE_MAX, r);
    free(text);
    return e;
}

static void test_keys(void **state) {  // J2
    (void)state;
    InferRequest r;
    assert_int_equal(decode_among(50000, &r), ERR_OK);
    assert_int_equal(r.n_inputs, 1);
    assert_int_equal(decode_among(1000000, &r), ERR_LIMIT);
    assert_non_null(strstr(err_why(), "unknown members"));
    refuse("{\"id\":\"a\",\"id\":\"b\"}", ERR_INVALID, "id occurs twice");
    refuse("{\"inputs\":[{\"name\":\"a\",\"n\\u0061me\":\"b\"}]}", ERR_INVALID,
           "inputs[0]: name occurs twice");
    refuse("{\"parameters\":{\"timeout\":1,\"timeout\":2}}", ERR_INVALID, "timeout occurs twice");
    refuse("{\"inputs\":[{\"data\":[1],\"data\":[2]}]}", ERR_INVALID, "data occurs twice");
}

static void test_text(void **state) {  // J3
    (void)state;
    refuse("{\"id\":\"\xFF\"}", ERR_PARSE, "not UTF-8");
    refuse("{\"other\":\"\xC0\x80\"}", ERR_PARSE, "not UTF-8");
    refuse("{\"id\":\"\\ud800\"}", ERR_PARSE, "escape");
    refuse("{\"inputs\":[{\"name\":\"a\\u0000b\"}]}", ERR_INVALID,
           "inputs[0]: name contains a NUL byte");
    refuse("{\"id\":\"a\\u0000\"}", ERR_INVALID, "id contains a NUL byte");
    refuse("{\"outputs\":[{\"name\":\"\\u0000\"}]}", ERR_INVALID,
           "outputs[0]: name contains a NUL byte");
    const Str *s = accept(input("BYTES", "[2]", "[\"a\\u0000b\",\"\\\"\xC3\xA9\"]"))->data;
    assert_true(s[0].len == 3 && memcmp(s[0].at, "a\0b", 3) == 0);
    assert_true(s[1].len == 3 && memcmp(s[1].at, "\"\xC3\xA9", 3) == 0);
}

static void test_numbers(void **state) {  // J4, and J8: strings for numbers and the reverse
    (void)state;
    static const char *const none[] = {"NaN", "Infinity", "-Infinity", "01",   "+1", ".5", "5.",
                                       "1e",  "\"1\"",    "null",      "true", "{}", "[]"};
    char                     data[64];
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        (void)snprintf(data, sizeof data, "[7,%s]", none[i]);
        refuse(input("FP32", "[2]", data), ERR_INVALID,
               "inputs[0].data: element 1 is not a number");
    }
    refuse(input("FP32", "[2]", "[7,0x10]"), ERR_PARSE, "missing comma after element 1");
    refuse(input("FP32", "[1]", "[1e999]"), ERR_INVALID, "element 0 is out of the range of FP32");
    refuse(input("FP32", "[1]", "[1e39]"), ERR_INVALID, "element 0 is out of the range of FP32");
    refuse(input("FP64", "[1]", "[-1e309]"), ERR_INVALID, "element 0 is out of the range of FP64");
    refuse(input("INT8", "[1]", "[128]"), ERR_INVALID, "element 0 is out of the range of INT8");
    refuse(input("UINT64", "[1]", "[-1]"), ERR_INVALID, "element 0 is out of the range of UINT64");
    refuse(input("INT32", "[3]", "[1,2,1.5]"), ERR_INVALID,
           "element 2 of INT32 is not a whole number");
    refuse(input("INT32", "[1]", "[\"1\"]"), ERR_INVALID, "element 0 is not a number");
    refuse(input("BYTES", "[1]", "[1]"), ERR_INVALID, "element 0 is not a string");
    refuse(input("BOOL", "[2]", "[true,2]"), ERR_INVALID, "element 1 is not true or false");
    refuse(input("BOOL", "[1]", "[\"true\"]"), ERR_INVALID, "element 0 is not true or false");
    refuse(input("FP16", "[1]", "[1]"), ERR_INVALID,
           "FP16 cannot be sent as JSON; use binary data");
    refuse(input("BF16", "[1]", "[1]"), ERR_INVALID,
           "BF16 cannot be sent as JSON; use binary data");
    const float *f = accept(input("FP32", "[3]", "[-0, 1e-999 ,16777217]"))->data;
    const float  want[] = {-0.0F, 0.0F, 16777216.0F};
    assert_memory_equal(f, want, sizeof want);
    char digits[12000];
    memset(digits, '1', sizeof digits);
    digits[0] = '[';
    memcpy(digits + 11000, "]", 2);
    refuse(input("FP32", "[1]", digits), ERR_INVALID, "out of the range");
    digits[2] = '.';
    assert_true(*(float *)accept(input("FP32", "[1]", digits))->data == 1.1111112F);
}

static void test_truncation(void **state) {  // J5
    (void)state;
    static const char *const bodies[] = {
        "{\"id\":\"r-7\",\"parameters\":{\"priority\":1,\"timeout\":20000,\"x\":{\"y\":[1,{}]}},"
        "\"inputs\":[{\"name\":\"a\",\"shape\":[2,2],\"datatype\":\"INT32\",\"data\":[[1,2],[3,4]]}"
        ","
        "{\"name\":\"flag\",\"shape\":[1],\"datatype\":\"BOOL\",\"data\":[true]}],"
        "\"outputs\":[{\"name\":\"sum\",\"parameters\":{\"binary_data\":true}}]}",
        "{\"inputs\":[{\"data\":[1.5e0, -2.25 ,3.125],\"datatype\":\"FP32\",\"shape\":[3],"
        "\"name\":\"\\u00e9\\ud83d\\ude00\"}]}\n",
        " {\"inputs\" : [ {\"name\":\"s\",\"datatype\":\"BYTES\",\"shape\":[1,2],"
        "\"data\":[[\"a\\n\",\"\xE2\x82\xAC\"]]} ] }",
    };
    InferRequest r;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        const char *b = bodies[i];
        size_t      len = strlen(b), whole = len;
        while (b[whole - 1] != '}') whole--;
        for (size_t n = 0; n < whole; n++) {
            Err e = decode_bytes(b, n, SIZE_MAX, &r);
            assert_true(e == ERR_PARSE || e == ERR_INVALID);
        }
        assert_int_equal(decode_bytes(b, len, SIZE_MAX, &r), ERR_OK);
    }
}

static void test_shapes(void **state) {  // J6, T1, T2
    (void)state;
    static const char *const none[] = {"-1",   "1.5", "\"3\"", "9223372036854775808",    "1e2",
                                       "null", "[3]", "true",  "99999999999999999999999"};
    char                     shape[64];
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        (void)snprintf(shape, sizeof shape, "[2,%s]", none[i]);
        refuse(input("FP32", shape, "[1,2]"), ERR_INVALID,
               "inputs[0]: shape[1] is not a whole number");
    }
    refuse(input("FP32", "3", "[1]"), ERR_INVALID, "shape is not an array");
    refuse(input("FP32", "[1,1,1,1,1,1,1,1,1]", "[1]"), ERR_INVALID, "more than 8 dimensions");
    refuse(input("FP32", "[65536,65536,65536,65536]", "[1]"), ERR_INVALID, "too large");
    refuse(input("FP32", "[0,65536,65536,65536,65536]", "[]"), ERR_INVALID, "too large");
    refuse(input("FP32", "[9223372036854775807]", "[1]"), ERR_INVALID, "too large");
    refuse(input("FP32", "[1000000000000]", "[1]"), ERR_INVALID, "fewer elements");
    char many[30000] = "[1";
    for (size_t i = 0; i < 10000; i++) memcpy(many + 2 + 2 * i, ",1", 3);
    strcat(many, "]");
    refuse(input("FP32", many, "[1]"), ERR_INVALID, "more than 8 dimensions");
    static const struct {
        const char *shape, *data;
        int         rank;
    } empty[] = {{"[0]", "[]", 1},
                 {"[0,3]", "[]", 2},
                 {"[2,0]", "[]", 2},
                 {"[2,0]", "[[],[]]", 2},
                 {"[2,0]", " [ [ ] , [] ] ", 2},
                 {"[0,2]", "[ ]", 2}};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        const Tensor *t = accept(input("FP32", empty[i].shape, empty[i].data));
        assert_int_equal(t->rank, empty[i].rank);
        assert_int_equal(tensor_count(t), 0);
        assert_non_null(t->data);
    }
    refuse(input("FP32", "[0]", "[1]"), ERR_INVALID, "more elements than the 0 of shape 0");
    refuse(input("FP32", "[2,0]", "[[]]"), ERR_INVALID, "fewer");
    refuse(input("FP32", "[2,0]", "[[],[1]]"), ERR_INVALID, "more");
}

static void test_nested_as_the_shape_says(void **state) {
    (void)state;
    static const struct {
        const char *shape, *data;
    } good[] = {{"[2,3]", "[1,2,3,4,5,6]"},
                {"[2,3]", "[[1,2,3],[4,5,6]]"},
                {"[1,2,3]", "[[[1,2,3],[4,5,6]]]"},
                {"[6]", "[1,2,3,4,5,6]"},
                {"[6,1]", "[[1],[2],[3],[4],[5],[6]]"},
                {"[2,3]", "\n[ [ 1 ,\t2, 3 ]\r, [4,5 , 6 ] ] "},
                {"[1,1,1,1,1,1,2,3]", "[[[[[[[[1,2,3],[4,5,6]]]]]]]]"}};
    static const struct {
        const char *shape, *data, *why;
    } bad[] = {{"[2,3]", "[1,2,3,4,5]", "fewer elements than the 6 of shape 2x3"},
               {"[2,3]", "[1,2,3,4,5,6,7]", "more elements than the 6 of shape 2x3"},
               {"[2,3]", "[[1,2,3],[4,5]]", "dimension 1 has fewer elements than the 3"},
               {"[2,3]", "[[1,2],[3,4,5,6]]", "dimension 1 has fewer"},
               {"[2,3]", "[[1,2,3,4],[5,6]]", "dimension 1 has more"},
               {"[2,3]", "[[1,2,3]]", "dimension 0 has fewer elements than the 2"},
               {"[2,3]", "[[1,2,3],[4,5,6],[7,8,9]]", "dimension 0 has more"},
               {"[2,3]", "[[1,2,3],4,5,6]", "is not nested like the others"},
               {"[2,3]", "[1,2,3,[4,5,6]]", "element 3 is not a number"},
               {"[2,3]", "[[1,2,3],[4,5,[6]]]", "element 5 is not a number"},
               {"[2,3]", "[[1,2],[3,4],[5,6]]", "dimension 1 has fewer"},
               {"[1,2,3]", "[[1,2,3],[4,5,6]]", "is not nested like the others"},
               {"[2,3]", "[]", "fewer elements"},
               {"[2,1]", "[[]    ]", "dimension 1 has fewer"},
               {"[2,3]", "7", "expected an array"},
               {"[2,3]", "\"123456\"", "expected an array"},
               {"[2,3]", "{\"0\":1}", "expected an array"},
               {"[]", "[]", "fewer"},
               {"[]", "[1,2]", "more"}};
    const float want[] = {1, 2, 3, 4, 5, 6};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_memory_equal(accept(input("FP32", good[i].shape, good[i].data))->data, want,
                            sizeof want);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refuse(input("FP32", bad[i].shape, bad[i].data), ERR_INVALID, bad[i].why);
    assert_true(*(float *)accept(input("FP32", "[]", "2.5"))->data == 2.5F);
    assert_true(*(float *)accept(input("FP32", "[]", "[2.5]"))->data == 2.5F);
    refuse(input("FP32", "[2]", "[1 2]"), ERR_PARSE,
           "inputs[0].data: missing comma after element 0");
    refuse(input("FP32", "[2]", "[1,2,]"), ERR_INVALID, "more elements");
    refuse(input("FP32", "[2]", "[,1]"), ERR_INVALID, "element 0 is not a number");
}

static void test_outputs(void **state) {  // J7
    (void)state;
    enum { MANY = 100000 };
    char        *text = malloc(MANY * 16 + 64);
    size_t       n = (size_t)sprintf(text, "{\"outputs\":[");
    InferRequest r;
    for (int i = 0; i < MANY; i++)
        n += (size_t)sprintf(text + n, "%s{\"name\":\"y\"}", i > 0 ? "," : "");
    n += (size_t)sprintf(text + n, "]}");
    assert_int_equal(decode_bytes(text, n, SIZE_MAX, &r), ERR_INVALID);
    assert_non_null(strstr(err_why(), "more than 256 outputs"));
    free(text);
    refuse("{\"outputs\":[{}]}", ERR_INVALID, "outputs[0]: name is missing");
    refuse("{\"outputs\":[{\"name\":7}]}", ERR_INVALID, "outputs[0]: name is not a string");
    refuse("{\"outputs\":[7]}", ERR_PARSE, "outputs[0]");
    refuse("{\"outputs\":{}}", ERR_INVALID, "outputs is not an array");
    refuse("{\"outputs\":[{\"name\":\"y\",\"parameters\":{\"binary_data\":1}}]}", ERR_INVALID,
           "parameters.binary_data is neither true nor false");
    refuse("{\"outputs\":[{\"name\":\"y\",\"parameters\":{\"classification\":-5}}]}", ERR_INVALID,
           "parameters.classification is not a whole number of at least 0");
    InferRequest q;
    assert_int_equal(
        decode("{\"outputs\":[{\"name\":\"y\",\"parameters\":{\"classification\":5}}]}", &q),
        ERR_OK);
    assert_true(q.n_requested == 1 && q.requested[0].classes == 5);
}

static void test_fields(void **state) {  // T3, of a request by itself
    (void)state;
    InferRequest none;  // of a model without inputs
    assert_int_equal(decode("{}", &none), ERR_OK);
    assert_int_equal(none.n_inputs, 0);
    assert_int_equal(decode("{\"inputs\":[]}", &none), ERR_OK);
    assert_int_equal(none.n_inputs, 0);
    assert_int_equal(decode("{\"inputs\":null}", &none), ERR_OK);
    assert_int_equal(none.n_inputs, 0);
    refuse("{\"inputs\":[{}]}", ERR_INVALID, "inputs[0]: name is missing");
    refuse("{\"inputs\":[{\"name\":\"x\"}]}", ERR_INVALID, "inputs[0]: datatype is missing");
    refuse("{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\"}]}", ERR_INVALID,
           "shape is missing");
    refuse("{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1]}]}", ERR_INVALID,
           "inputs[0]: data is missing");
    refuse("{\"inputs\":[{\"datatype\":\"fp32\"}]}", ERR_INVALID, "datatype 'fp32' is not known");
    refuse("{\"inputs\":[{\"datatype\":\"\"}]}", ERR_INVALID, "datatype '' is not known");
    refuse("{\"inputs\":[{\"datatype\":1}]}", ERR_INVALID, "datatype is not a string");
    refuse("{\"inputs\":[{\"parameters\":{\"shared_memory_region\":\"a\"}}]}", ERR_UNSUPPORTED,
           "shared memory is not supported");
    refuse("{\"id\":7}", ERR_INVALID, "id is not a string");
    refuse("{\"parameters\":[]}", ERR_PARSE, "expected an object");
    refuse("{\"parameters\":{\"timeout\":-1}}", ERR_INVALID,
           "parameters.timeout is not a whole number");
    refuse("{\"parameters\":{\"timeout\":\"5\"}}", ERR_INVALID, "parameters.timeout");
    refuse("{\"parameters\":{\"priority\":1.5}}", ERR_INVALID, "parameters.priority");
    refuse("{\"parameters\":{\"binary_data_output\":\"yes\"}}", ERR_INVALID, "binary_data_output");
    refuse("{\"parameters\":{\"timing\":2}}", ERR_INVALID, "parameters.timing");
    InferRequest r;
    assert_int_equal(
        decode(
            "{\"unknown\":[{\"a\":[]}],\"parameters\":{\"timeout\":18446744073709551615,\"timing\":"
            "true,\"headers\":{\"a\":1}},\"id\":null,\"outputs\":null,\"inputs\":[{\"data\":[1,2],"
            "\"parameters\":null,\"shape\":[2],\"name\":\"x\",\"datatype\":\"UINT8\",\"more\":{}}]"
            "}",
            &r),
        ERR_OK);
    assert_true(r.timeout_us == INT64_MAX && r.timing && r.id.at == NULL && r.n_requested == 0);
    assert_memory_equal(r.inputs[0].t.data, "\1\2", 2);
    assert_int_equal(decode(input("FP32", "[1]", "[1]"), &r), ERR_OK);
    assert_true(r.timeout_us == -1 && r.priority == 0 && !r.timing && !r.binary && !r.raw_body);
}

static void test_no_room(void **state) {
    (void)state;
    Arena         tight;
    InferRequest  r;
    unsigned char body[256];
    size_t        limits = 0;
    size_t        len = strlen(input("FP32", "[2,3]", "[1,2,3,4,5,6]"));
    assert_int_equal(arena_init(&tight, 4096), ERR_OK);
    for (size_t used = 0; used <= 4096; used += 8) {
        memcpy(body, input("FP32", "[2,3]", "[1,2,3,4,5,6]"), len);
        arena_rewind(&tight, 0);
        assert_non_null(arena_try(&tight, used, 1, 1));
        Err e = infer_json_decode(body, len, SIZE_MAX, &tight, &r);
        assert_true(e == ERR_LIMIT || (e == ERR_OK && limits == 0));
        if (e == ERR_LIMIT) limits++;
    }
    assert_in_range(limits, 2, 4096 / 8);  // for the list of inputs, and for the numbers
    arena_finish(&tight);
}

static int begin(void **state) {
    (void)state;
    return arena_init(&arena, ROOM) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_truncation),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_nested_as_the_shape_says),
        cmocka_unit_test(test_outputs),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_no_room),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
