// Tensors encoded as a response and decoded as a request; JSON documents compared with jansson.
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/text.h"
#include "net/exchange.h"
#include "serve/tensor/infer_request.h"
#include "serve/rest/json_reader.h"
#include "tests/runner.h"

enum { ROOM = 1 << 24, TEXT = 1 << 20 };
static Arena arena;

static const DType types[] = {DT_F32, DT_F64, DT_I8,  DT_I16,  DT_I32, DT_I64, DT_U8,
                              DT_U16, DT_U32, DT_U64, DT_BOOL, DT_STR, DT_F16, DT_BF16};

static void fill(Rng *rng, Tensor *t) {
    int64_t n = tensor_count(t);
    for (int64_t i = 0; i < n; i++) {
        if (t->dtype == DT_STR) {
            char  *s = arena_new(&arena, char, 8);
            size_t len = rng_below(rng, 8);
            for (size_t k = 0; k < len; k++) s[k] = (char)rng_below(rng, 128);
            ((Str *)t->data)[i] = (Str){s, len};
            continue;
        }
        uint64_t bits = rng_u64(rng);
        float    f;
        double   d;
        memcpy(&f, &bits, sizeof f);
        memcpy(&d, &bits, sizeof d);
        if (t->dtype == DT_BOOL) bits &= 1;
        if ((t->dtype == DT_F32 && !isfinite(f)) || (t->dtype == DT_F64 && !isfinite(d))) bits = 0;
        memcpy((char *)t->data + (size_t)i * dtype_size(t->dtype), &bits, dtype_size(t->dtype));
    }
}

static Tensor random_tensor(Rng *rng, bool binary) {
    Tensor t = {.dtype = types[rng_below(rng, binary ? 14 : 12)],
                .rank = (int32_t)rng_below(rng, 5)};
    for (int32_t i = 0; i < t.rank; i++) t.dims[i] = (int64_t)rng_below(rng, i == 0 ? 6 : 4);
    assert_int_equal(tensor_alloc(&t, &arena), ERR_OK);
    fill(rng, &t);
    return t;
}

// An answer is a request if its outputs are called inputs: the same members mean the same.
static size_t as_request(const struct iovec *pieces, uint32_t n, unsigned char *body,
                         size_t *header) {
    size_t len = 0;
    for (uint32_t i = 0; i < n; i++) {
        memcpy(body + len, pieces[i].iov_base, pieces[i].iov_len);
        len += pieces[i].iov_len;
    }
    body[len] = '\0';
    char *outputs = strstr((char *)body, "\"outputs\"");
    assert_non_null(outputs);
    memmove(outputs + 8, outputs + 9, len - (size_t)(outputs + 9 - (char *)body));
    memcpy(outputs, "\"inputs\"", 8);
    if (*header != SIZE_MAX) --*header;
    return len - 1;
}

static void test_tensors_come_back(void **state) {
    (void)state;
    Rng            rng = {11};
    unsigned char *body = malloc(TEXT);
    assert_non_null(body);
    for (int round = 0; round < 3000; round++) {
        arena_rewind(&arena, 0);
        bool          binary[] = {rng_below(&rng, 2) == 0, rng_below(&rng, 2) == 0};
        Tensor        both[] = {random_tensor(&rng, binary[0]), random_tensor(&rng, binary[1])};
        TensorSpec    specs[] = {{.name = "first"}, {.name = "\xC3\xA9 \"quoted\"\n"}};
        InferResponse answer = {
            .model = "m", .specs = specs, .tensors = both, .binary = binary, .n = 2};
        struct iovec pieces[EXCHANGE_PIECES];
        uint32_t     n = 0;
        size_t       header = 0;
        InferRequest r;
        assert_int_equal(infer_json_encode(&answer, TEXT - 64, &arena, pieces, &n, &header),
                         ERR_OK);
        assert_true((header == SIZE_MAX) == (!binary[0] && !binary[1]));
        size_t len = as_request(pieces, n, body, &header);
        if (infer_json_decode(body, len, header, &arena, &r) != ERR_OK)
            fail_msg("%s: %s", (char *)body, err_why());
        for (int i = 0; i < 2; i++) {
            assert_true(text_equal(r.inputs[i].name, text_of(specs[i].name)));
            assert_true(tensor_equal(&r.inputs[i].t, &both[i]));
        }
    }
    free(body);
}

// What JSON cannot say, and too much of what it can.
static void test_answers_that_cannot_be(void **state) {
    (void)state;
    float        f[] = {1, NAN, INFINITY};
    Str          s = {"\xFF", 1};
    uint16_t     h = 0;
    const Tensor rows[] = {tensor_of(DT_F32, 1, (int64_t[]){2}, f),
                           tensor_of(DT_F32, 0, NULL, f + 2), tensor_of(DT_STR, 0, NULL, &s),
                           tensor_of(DT_F16, 0, NULL, &h), tensor_of(DT_C64, 0, NULL, f)};
    const char  *why[] = {"output 'y' has not-a-number at element 1", "infinity at element 0",
                          "not UTF-8", "output 'y' is FP16, which JSON cannot represent",
                          "complex64"};
    struct iovec pieces[EXCHANGE_PIECES];
    uint32_t     n;
    size_t       header;
    TensorSpec   spec = {.name = "y"};
    bool         binary = false;
    for (size_t i = 0; i < 5; i++) {
        InferResponse r = {
            .model = "m", .specs = &spec, .tensors = &rows[i], .binary = &binary, .n = 1};
        arena_rewind(&arena, 0);
        assert_int_equal(infer_json_encode(&r, TEXT, &arena, pieces, &n, &header), ERR_UNSUPPORTED);
        assert_non_null(strstr(err_why(), why[i]));
        if (i < 4) assert_non_null(strstr(err_why(), "\"binary_data\": true"));
    }
    float       *many = arena_new(&arena, float, 100000);
    const Tensor big = tensor_of(DT_F32, 1, (int64_t[]){100000}, many);
    for (int i = 0; i < 2; i++) {  // T7
        binary = i == 1;
        InferResponse r = {
            .model = "m", .specs = &spec, .tensors = &big, .binary = &binary, .n = 1};
        assert_int_equal(infer_json_encode(&r, 390000, &arena, pieces, &n, &header), ERR_LIMIT);
        assert_non_null(strstr(err_why(), "exceeds 390000 bytes"));
        assert_int_equal(infer_json_encode(&r, 410000, &arena, pieces, &n, &header), ERR_OK);
        assert_int_equal(n, 1 + i);
    }
    Arena tight;
    assert_int_equal(arena_init(&tight, 1 << 14), ERR_OK);
    binary = false;
    InferResponse r = {.model = "m", .specs = &spec, .tensors = &big, .binary = &binary, .n = 1};
    assert_int_equal(infer_json_encode(&r, SIZE_MAX, &tight, pieces, &n, &header), ERR_LIMIT);
    arena_finish(&tight);
}

typedef struct Doc {
    Rng   *rng;
    char  *at;
    size_t left;
} Doc;

static void add(Doc *d, const char *text) {
    size_t n = strlen(text);
    if (n >= d->left) return;
    memcpy(d->at, text, n);
    d->at += n;
    d->left -= n;
}

static void add_leaf(Doc *d) {
    static const char *const leaves[] = {"1",
                                         "-0",
                                         "0.5",
                                         "1e5",
                                         "-1.25E-3",
                                         "true",
                                         "false",
                                         "null",
                                         "\"\"",
                                         "\"plain\"",
                                         "\"\\u00e9\\n\"",
                                         "\"\xE2\x82\xAC\"",
                                         "\"\\ud83d\\ude00\"",
                                         "12345678901234567",
                                         "3.14159265358979",
                                         "[]",
                                         "{}",
                                         " 7 ",
                                         "\t\"x\"\n",
                                         "01",
                                         "1.",
                                         ".5",
                                         "+1",
                                         "nul",
                                         "True",
                                         "'x'",
                                         "\"\\x\"",
                                         "\"\t\"",
                                         "NaN",
                                         "\"\xFF\"",
                                         "\"\\ud800\"",
                                         "1e",
                                         "-",
                                         "[1,]",
                                         "{\"a\"}",
                                         "{,}",
                                         "\"open"};
    bool                     wrong = rng_below(d->rng, 40) == 0;
    add(d, leaves[wrong ? 19 + rng_below(d->rng, 18) : rng_below(d->rng, 19)]);
}

// A document, nested by a few levels; now and then something is wrong with it.
static void add_value(Doc *d, int depth) {
    static const char *const commas[] = {",", ", ", " ,\n", ",,", "", ";"};
    char                     key[32];
    uint64_t                 kind = depth > 4 ? 2 : rng_below(d->rng, 3), n = rng_below(d->rng, 4);
    if (kind == 2) {
        add_leaf(d);
        return;
    }
    add(d, kind == 0 ? "[" : "{");
    for (uint64_t i = 0; i < n; i++) {
        bool wrong = rng_below(d->rng, 100) == 0;
        if (i > 0) add(d, commas[wrong ? 3 + rng_below(d->rng, 3) : rng_below(d->rng, 3)]);
        (void)snprintf(key, sizeof key, "\"k%d%s:", (int)rng_below(d->rng, 1000),
                       wrong ? "" : "\"");
        if (kind == 1) add(d, key);
        add_value(d, depth + 1);
    }
    add(d, rng_below(d->rng, 100) == 0 ? "" : kind == 0 ? "]" : "}");
}

static bool ours_takes(const char *text, size_t len) {
    unsigned char *body = malloc(len + 1);
    JsonReader     s;
    assert_non_null(body);
    memcpy(body, text, len);
    Err e = json_reader_begin(&s, body, len);
    if (e == ERR_OK) e = json_reader_skip(&s, SIZE_MAX);
    if (e == ERR_OK) e = json_reader_finish(&s);
    free(body);
    return e == ERR_OK;
}

// Both take a document or neither does. Two things differ, and are not made up here: jansson
// refuses
// "\u0000" and numbers that a double or a 64-bit integer cannot hold, even in members that are
// skipped.
static void test_jansson_agrees(void **state) {
    (void)state;
    Rng      rng = {5};
    char     text[4096];
    uint32_t taken = 0, refused = 0;
    for (int i = 0; i < 200000; i++) {
        Doc d = {&rng, text, sizeof text};
        add(&d, "{\"a\":");
        add_value(&d, 0);
        add(&d, rng_below(&rng, 50) == 0 ? "]" : "}");
        size_t  len = (size_t)(d.at - text);
        json_t *doc = json_loadb(text, len, 0, NULL);
        bool    ours = ours_takes(text, len);
        if (ours != (doc != NULL)) fail_msg("%.*s: ours %d", (int)len, text, ours);
        if (ours)
            taken++;
        else
            refused++;
        json_decref(doc);
    }
    assert_true(taken > 10000 && refused > 10000);
}

// A valid document with one byte changed.
static void test_jansson_agrees_about_changes(void **state) {
    (void)state;
    const char  *body = "{\"id\":\"r\\u00e9\\n\",\"parameters\":{\"priority\":1,\"x\":[true,false,"
                        "null]},\"inputs\":"
                        "[{\"name\":\"a\",\"shape\":[2,2],\"data\":[[1.5,-2e3],[3,4]]}]}";
    char         text[256];
    const size_t len = strlen(body);
    for (size_t i = 0; i < len; i++)
        for (int c = 1; c < 256; c++) {
            memcpy(text, body, len);
            text[i] = (char)c;
            json_t *doc = json_loadb(text, len, 0, NULL);
            bool    ours = ours_takes(text, len);
            if (ours != (doc != NULL)) fail_msg("%.*s: ours %d", (int)len, text, ours);
            json_decref(doc);
        }
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
        cmocka_unit_test(test_tensors_come_back),
        cmocka_unit_test(test_answers_that_cannot_be),
        cmocka_unit_test(test_jansson_agrees),
        cmocka_unit_test(test_jansson_agrees_about_changes),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
