// gRPC responses, read back by protobuf-c.
#include "tests/serve/proto_numbers.h"
#include "tests/runner.h"

static Response *encode(const InferResponse *a, bool raw, uint32_t *n_pieces) {
    struct iovec pieces[EXCHANGE_PIECES];
    assert_int_equal(infer_proto_encode(a, raw, 1 << 24, &arena, pieces, n_pieces), ERR_OK);
    size_t         len = 0, at = 0;
    unsigned char *all;
    for (uint32_t i = 0; i < *n_pieces; i++) len += pieces[i].iov_len;
    all = malloc(len);
    assert_non_null(all);
    for (uint32_t i = 0; i < *n_pieces; at += pieces[i++].iov_len)
        memcpy(all + at, pieces[i].iov_base, pieces[i].iov_len);
    Response *r = inference__model_infer_response__unpack(NULL, len, all);
    assert_non_null(r);
    free(all);
    return r;
}

static void same_contents(const Contents *got, const Contents *want) {
    assert_int_equal(inference__infer_tensor_contents__get_packed_size(got),
                     inference__infer_tensor_contents__get_packed_size(want));
    unsigned char a[512], b[512];
    size_t        n = inference__infer_tensor_contents__pack(got, a);
    assert_true(n < sizeof a && inference__infer_tensor_contents__pack(want, b) == n);
    assert_memory_equal(a, b, n);
}

static void answers_typed(void **state) {
    (void)state;
    Numbers    n = some_numbers();
    Tensor     t[TYPED];
    TensorSpec specs[TYPED];
    Contents   want[TYPED];
    int64_t    dims[] = {3, 2};
    for (size_t i = 0; i < TYPED; i++) {
        t[i] = tensor_of(typed[i], 2, dims, NULL);
        assert_int_equal(tensor_alloc(&t[i], &arena), ERR_OK);
        specs[i] = (TensorSpec){.name = infer_type_name(typed[i])};
        want[i] = contents_of(typed[i], &n);
        for (size_t k = 0; k < N; k++) switch (typed[i]) {
            case DT_BOOL: ((uint8_t *)t[i].data)[k] = (uint8_t)n.b[k]; break;
            case DT_I8: ((int8_t *)t[i].data)[k] = (int8_t)n.i8[k]; break;
            case DT_I16: ((int16_t *)t[i].data)[k] = (int16_t)n.i16[k]; break;
            case DT_I32: ((int32_t *)t[i].data)[k] = n.i32[k]; break;
            case DT_I64: ((int64_t *)t[i].data)[k] = n.i64[k]; break;
            case DT_U8: ((uint8_t *)t[i].data)[k] = (uint8_t)n.u8[k]; break;
            case DT_U16: ((uint16_t *)t[i].data)[k] = (uint16_t)n.u16[k]; break;
            case DT_U32: ((uint32_t *)t[i].data)[k] = n.u32[k]; break;
            case DT_U64: ((uint64_t *)t[i].data)[k] = n.u64[k]; break;
            case DT_F32: ((float *)t[i].data)[k] = n.f32[k]; break;
            case DT_F64: ((double *)t[i].data)[k] = n.f64[k]; break;
            default: ((Str *)t[i].data)[k] = (Str){(char *)n.text[k].data, n.text[k].len};
            }
    }
    InferParameter parameters[] = {{.key = "queue_ms", .number = 0.25},
                                   {.key = "cause", .text = "load"}};
    InferResponse  a = {.model = "m",
                        .version = "3",
                        .id = {"r-7", 3},
                        .specs = specs,
                        .tensors = t,
                        .n = TYPED,
                        .parameters = parameters,
                        .n_parameters = 2};
    uint32_t       pieces;
    Response      *r = encode(&a, false, &pieces);
    assert_string_equal(r->model_name, "m");
    assert_string_equal(r->model_version, "3");
    assert_string_equal(r->id, "r-7");
    assert_int_equal(r->n_outputs, TYPED);
    assert_int_equal(r->n_raw_output_contents, 0);
    for (size_t i = 0; i < TYPED; i++) {
        assert_string_equal(r->outputs[i]->name, specs[i].name);
        assert_string_equal(r->outputs[i]->datatype, infer_type_name(typed[i]));
        assert_true(r->outputs[i]->n_shape == 2 && r->outputs[i]->shape[0] == 3);
        same_contents(r->outputs[i]->contents, &want[i]);
    }
    assert_int_equal(r->n_parameters, 2);
    assert_string_equal(r->parameters[0]->key, "queue_ms");
    assert_true(r->parameters[0]->value->double_param == 0.25);
    assert_string_equal(r->parameters[1]->value->string_param, "load");
    inference__model_infer_response__free_unpacked(r, NULL);
}

static void answers_raw(void **state) {
    (void)state;
    enum { MANY = INFER_TENSORS, EACH = 5000 };
    static Tensor     t[MANY];
    static TensorSpec specs[MANY];
    int64_t           dims[] = {EACH};
    Rng               rng = {1};
    for (size_t i = 0; i < MANY; i++) {
        t[i] = tensor_of(i % 3 == 0 ? DT_F16 : DT_I32, 1, dims, NULL);
        assert_int_equal(tensor_alloc(&t[i], &arena), ERR_OK);
        specs[i] = (TensorSpec){.name = "same"};
        uint16_t *v = t[i].data;
        for (size_t k = 0; k < EACH; k++) v[k] = (uint16_t)rng_u64(&rng);
    }
    InferResponse a = {.model = "m", .specs = specs, .tensors = t, .n = MANY};
    for (int asked = 0; asked < 2; asked++) {  // FP16 goes raw, asked or not
        uint32_t  pieces;
        Response *r = encode(&a, asked != 0, &pieces);
        assert_true(pieces > 200 && pieces <= EXCHANGE_PIECES - 1);
        assert_int_equal(r->n_outputs, MANY);
        assert_int_equal(r->n_raw_output_contents, MANY);
        for (size_t i = 0; i < MANY; i++) {
            assert_null(r->outputs[i]->contents);
            assert_int_equal(r->raw_output_contents[i].len, EACH * dtype_size(t[i].dtype));
            assert_memory_equal(r->raw_output_contents[i].data, t[i].data,
                                r->raw_output_contents[i].len);
        }
        inference__model_infer_response__free_unpacked(r, NULL);
    }
    struct iovec to[EXCHANGE_PIECES];
    uint32_t     n;
    assert_int_equal(infer_proto_encode(&a, true, 1 << 20, &arena, to, &n), ERR_LIMIT);
    t[1].dtype = DT_SEQ;
    assert_int_equal(infer_proto_encode(&a, true, 1 << 24, &arena, to, &n), ERR_UNSUPPORTED);
}

static void answers_raw_strings(void **state) {
    (void)state;
    Str           s[] = {{"hi", 2}, {"", 0}};
    int64_t       dims[] = {2}, none[] = {0};
    Tensor        t[] = {tensor_of(DT_STR, 1, dims, s), tensor_of(DT_F32, 1, none, NULL)};
    TensorSpec    specs[] = {{.name = "s"}, {.name = "e"}};
    InferResponse a = {.model = "m", .specs = specs, .tensors = t, .n = 2};
    uint32_t      pieces;
    Response     *r = encode(&a, true, &pieces);
    assert_int_equal(r->n_raw_output_contents, 2);
    assert_int_equal(r->raw_output_contents[0].len, 10);
    assert_memory_equal(r->raw_output_contents[0].data, "\2\0\0\0hi\0\0\0\0", 10);
    assert_int_equal(r->raw_output_contents[1].len, 0);
    inference__model_infer_response__free_unpacked(r, NULL);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers_typed, begin, finish),
        cmocka_unit_test_setup_teardown(answers_raw, begin, finish),
        cmocka_unit_test_setup_teardown(answers_raw_strings, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
