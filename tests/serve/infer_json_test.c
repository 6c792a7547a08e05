// A request from JSON to tensors, and a response back.
#include "serve/tensor/infer_request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "net/exchange.h"
#include "tests/runner.h"

typedef struct Case {
    Arena          a;
    unsigned char *body;
    InferRequest   r;
} Case;

static Err decode_with(Case *c, const char *json, const void *binary, size_t n, size_t header) {
    size_t len = strlen(json);
    assert_int_equal(arena_init(&c->a, 1 << 24), ERR_OK);
    c->body = malloc(len + n + 1);
    assert_non_null(c->body);
    memcpy(c->body, json, len);
    if (n > 0) memcpy(c->body + len, binary, n);
    return infer_json_decode(c->body, len + n, header, &c->a, &c->r);
}

static Err decode(Case *c, const char *json) { return decode_with(c, json, NULL, 0, SIZE_MAX); }

static void drop(Case *c) {
    free(c->body);
    arena_finish(&c->a);
}

static void test_request_of_the_reference(void **state) {
    (void)state;
    Case c;
    assert_int_equal(
        decode(&c, "{\"id\":\"r-7\",\"parameters\":{\"priority\":1,\"timeout\":20000},\n"
                   " \"inputs\":[{\"name\":\"a\",\"shape\":[2,2],\"datatype\":\"INT32\","
                   "\"data\":[[1,2],[3,4]]},\n"
                   "{\"name\":\"flag\",\"shape\":[1],\"datatype\":\"BOOL\",\"data\":[true]}],\n"
                   "\"outputs\":[{\"name\":\"sum\"}]}"),
        ERR_OK);
    assert_true(text_equal(c.r.id, text_of("r-7")));
    assert_int_equal(c.r.priority, 1);
    assert_int_equal(c.r.timeout_us, 20000);
    assert_int_equal(c.r.n_inputs, 2);
    assert_int_equal(c.r.n_requested, 1);
    static const int32_t a[] = {1, 2, 3, 4};
    assert_int_equal(c.r.inputs[0].t.dtype, DT_I32);
    assert_int_equal(c.r.inputs[0].t.rank, 2);
    assert_memory_equal(c.r.inputs[0].t.data, a, sizeof a);
    assert_int_equal(*(uint8_t *)c.r.inputs[1].t.data, 1);
    drop(&c);
}

static void test_binary_request(void **state) {
    (void)state;
    const char *json =
        "{\"inputs\":[{\"name\":\"a\",\"shape\":[2,2],\"datatype\":\"INT32\",\"parameters\":{"
        "\"binary_data_size\":16}},{\"name\":\"flag\",\"shape\":[1],\"datatype\":\"BOOL\","
        "\"parameters\":{\"binary_data_size\":1}}]}";
    unsigned char raw[17] = {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 1};
    Case          c;
    assert_int_equal(decode_with(&c, json, raw, sizeof raw, strlen(json)), ERR_OK);
    assert_memory_equal(c.r.inputs[0].t.data, raw, 16);
    assert_int_equal(*(uint8_t *)c.r.inputs[1].t.data, 1);
    drop(&c);
}

static void test_answer(void **state) {
    (void)state;
    Arena          a;
    float          scores[] = {0.1F, -2.5F, 1e-20F};
    TensorSpec     specs[] = {{.name = "scores"}, {.name = "again"}};
    Tensor         t = tensor_of(DT_F32, 2, (int64_t[]){1, 3}, scores), both[] = {t, t};
    bool           binary[] = {false, true};
    InferParameter parameters[] = {{.key = "queue_us", .number = 12},
                                   {.key = "isa", .text = "avx2"}};
    InferResponse  r = {.model = "m",
                        .version = "1",
                        .id = text_of("r\"7"),
                        .specs = specs,
                        .tensors = both,
                        .binary = binary,
                        .n = 2,
                        .parameters = parameters,
                        .n_parameters = 2};
    struct iovec   pieces[EXCHANGE_PIECES];
    uint32_t       n = 0;
    size_t         header = 0;
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    assert_int_equal(infer_json_encode(&r, 1 << 20, &a, pieces, &n, &header), ERR_OK);
    const char *want =
        "{\"model_name\":\"m\",\"model_version\":\"1\",\"id\":\"r\\\"7\",\"parameters\":{"
        "\"queue_us\":12,\"isa\":\"avx2\"},\"outputs\":[{\"name\":\"scores\",\"datatype\":\"FP32\","
        "\"shape\":[1,3],\"data\":[0.1,-2.5,1e-20]},{\"name\":\"again\",\"datatype\":\"FP32\","
        "\"shape\":[1,3],\"parameters\":{\"binary_data_size\":12}}]}";
    assert_int_equal(n, 2);
    assert_int_equal(header, strlen(want));
    assert_int_equal(pieces[0].iov_len, header);
    assert_memory_equal(pieces[0].iov_base, want, header);
    assert_ptr_equal(pieces[1].iov_base, scores);
    assert_int_equal(pieces[1].iov_len, sizeof scores);
    assert_int_equal(infer_json_encode(&r, header + 11, &a, pieces, &n, &header), ERR_LIMIT);
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_of_the_reference),
        cmocka_unit_test(test_binary_request),
        cmocka_unit_test(test_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
