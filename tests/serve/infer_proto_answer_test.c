// gRPC responses, read back by protobuf-c.
#include "tests/serve/proto_numbers.h"
#include "tests/runner.h"

static Response *encode(const InferResponse *a, uint32_t *n_pieces) {
    struct iovec pieces[EXCHANGE_PIECES];
    assert_int_equal(infer_proto_encode(a, 1 << 24, &arena, pieces, n_pieces), ERR_OK);
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

static void answers_all_types(void **state) {
    (void)state;
    Tensor     t[TYPED];
    TensorSpec specs[TYPED];
    int64_t    dims[] = {3, 2};
    Rng        rng = {3};
    for (size_t i = 0; i < TYPED; i++) {
        t[i] = tensor_of(typed[i], 2, dims, NULL);
        assert_int_equal(tensor_alloc(&t[i], &arena), ERR_OK);
        specs[i] = (TensorSpec){.name = infer_type_name(typed[i])};
        unsigned char *bytes = t[i].data;
        for (size_t k = 0; typed[i] != DT_STR && k < 6 * dtype_size(typed[i]); k++)
            bytes[k] = (unsigned char)rng_u64(&rng);
        for (size_t k = 0; typed[i] == DT_STR && k < 6; k++) ((Str *)t[i].data)[k] = (Str){"x", 1};
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
    assert_int_equal(infer_add_flag(&a, "triton_final_response", true, &arena), ERR_OK);
    assert_int_equal(infer_add_flag(&a, "no", false, &arena), ERR_OK);
    uint32_t  pieces;
    Response *r = encode(&a, &pieces);
    assert_string_equal(r->model_name, "m");
    assert_string_equal(r->model_version, "3");
    assert_string_equal(r->id, "r-7");
    assert_int_equal(r->n_outputs, TYPED);
    assert_int_equal(r->n_raw_output_contents, TYPED);
    for (size_t i = 0; i < TYPED; i++) {
        assert_string_equal(r->outputs[i]->name, specs[i].name);
        assert_string_equal(r->outputs[i]->datatype, infer_type_name(typed[i]));
        assert_true(r->outputs[i]->n_shape == 2 && r->outputs[i]->shape[0] == 3);
        assert_null(r->outputs[i]->contents);
        if (typed[i] == DT_STR) continue;
        assert_int_equal(r->raw_output_contents[i].len, 6 * dtype_size(typed[i]));
        assert_memory_equal(r->raw_output_contents[i].data, t[i].data, 6 * dtype_size(typed[i]));
    }
    assert_int_equal(r->n_parameters, 4);
    assert_string_equal(r->parameters[0]->key, "queue_ms");
    assert_true(r->parameters[0]->value->double_param == 0.25);
    assert_string_equal(r->parameters[1]->value->string_param, "load");
    assert_string_equal(r->parameters[2]->key, "triton_final_response");
    assert_true(r->parameters[2]->value->bool_param);
    assert_int_equal(r->parameters[3]->value->parameter_choice_case,
                     INFERENCE__INFER_PARAMETER__PARAMETER_CHOICE_BOOL_PARAM);
    assert_false(r->parameters[3]->value->bool_param);
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
    uint32_t      pieces;
    Response     *r = encode(&a, &pieces);
    assert_true(pieces > 200 && pieces <= EXCHANGE_PIECES - 1);
    assert_int_equal(r->n_outputs, MANY);
    assert_int_equal(r->n_raw_output_contents, MANY);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(r->raw_output_contents[i].len, EACH * dtype_size(t[i].dtype));
        assert_memory_equal(r->raw_output_contents[i].data, t[i].data,
                            r->raw_output_contents[i].len);
    }
    inference__model_infer_response__free_unpacked(r, NULL);
    struct iovec to[EXCHANGE_PIECES];
    uint32_t     n;
    assert_int_equal(infer_proto_encode(&a, 1 << 20, &arena, to, &n), ERR_LIMIT);
    t[1].dtype = DT_SEQ;
    assert_int_equal(infer_proto_encode(&a, 1 << 24, &arena, to, &n), ERR_UNSUPPORTED);
}

static void answers_raw_strings(void **state) {
    (void)state;
    Str           s[] = {{"hi", 2}, {"", 0}};
    int64_t       dims[] = {2}, none[] = {0};
    Tensor        t[] = {tensor_of(DT_STR, 1, dims, s), tensor_of(DT_F32, 1, none, NULL)};
    TensorSpec    specs[] = {{.name = "s"}, {.name = "e"}};
    InferResponse a = {.model = "m", .specs = specs, .tensors = t, .n = 2};
    uint32_t      pieces;
    Response     *r = encode(&a, &pieces);
    assert_int_equal(r->n_raw_output_contents, 2);
    assert_int_equal(r->raw_output_contents[0].len, 10);
    assert_memory_equal(r->raw_output_contents[0].data, "\2\0\0\0hi\0\0\0\0", 10);
    assert_int_equal(r->raw_output_contents[1].len, 0);
    inference__model_infer_response__free_unpacked(r, NULL);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers_all_types, begin, finish),
        cmocka_unit_test_setup_teardown(answers_raw, begin, finish),
        cmocka_unit_test_setup_teardown(answers_raw_strings, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
