// ModelInferRequest packed by protobuf-c and decoded by the server.
#include "tests/serve/proto_numbers.h"
#include "tests/runner.h"

// The message in a block of exactly its size, from malloc.
static unsigned char *pack(const Request *r, size_t *len) {
    *len = inference__model_infer_request__get_packed_size(r);
    unsigned char *bytes = malloc(*len > 0 ? *len : 1);
    assert_non_null(bytes);
    assert_int_equal(inference__model_infer_request__pack(r, bytes), *len);
    return bytes;
}

static Err decode(const Request *r, InferRequest *out, unsigned char **bytes) {
    size_t len;
    *bytes = pack(r, &len);
    return infer_proto_decode(*bytes, len, &arena, out);
}

static void refused(const Request *r, Err e, const char *why) {
    InferRequest   out;
    unsigned char *bytes;
    assert_int_equal(decode(r, &out, &bytes), e);
    if (strstr(err_why(), why) == NULL) fail_msg("'%s', not '%s'", err_why(), why);
    free(bytes);
}

static bool same(Str s, const char *t) { return s.len == strlen(t) && memcmp(s.at, t, s.len) == 0; }

static void typed_contents(void **state) {
    (void)state;
    Numbers  n = some_numbers();
    int64_t  shape[] = {2, 3};
    Request  r = INFERENCE__MODEL_INFER_REQUEST__INIT;
    Input    in[TYPED];
    Input   *inputs[TYPED];
    Contents c[TYPED];
    char     names[TYPED][8];
    for (size_t i = 0; i < TYPED; i++) {
        inference__model_infer_request__infer_input_tensor__init(&in[i]);
        names[i][0] = (char)('a' + i), names[i][1] = '\0';
        c[i] = contents_of(typed[i], &n);
        in[i].name = names[i];
        in[i].datatype = (char *)(uintptr_t)infer_type_name(typed[i]);
        in[i].n_shape = 2, in[i].shape = shape;
        in[i].contents = &c[i];
        inputs[i] = &in[i];
    }
    r.model_name = (char *)(uintptr_t) "m", r.model_version = (char *)(uintptr_t) "12";
    r.id = (char *)(uintptr_t) "r-7";
    r.n_inputs = TYPED, r.inputs = inputs;
    InferRequest   out;
    unsigned char *bytes;
    assert_int_equal(decode(&r, &out, &bytes), ERR_OK);
    assert_true(same(out.model, "m") && same(out.version, "12") && same(out.id, "r-7"));
    assert_true(out.timeout_us == -1 && out.priority == 0 && !out.raw && !out.timing);
    assert_int_equal(out.n_inputs, TYPED);
    for (size_t i = 0; i < TYPED; i++) {
        assert_true(same(out.inputs[i].name, names[i]));
        const Tensor *t = &out.inputs[i].t;
        assert_true(t->dtype == typed[i] && t->rank == 2 && t->dims[0] == 2 && t->dims[1] == 3);
        assert_int_equal((uintptr_t)t->data % TENSOR_ALIGN, 0);
        expect_numbers(t, &n);
    }
    free(bytes);
}

static Input input_of(const char *name, const char *type, size_t rank, int64_t *shape) {
    Input in = INFERENCE__MODEL_INFER_REQUEST__INFER_INPUT_TENSOR__INIT;
    in.name = (char *)(uintptr_t)name, in.datatype = (char *)(uintptr_t)type;
    in.n_shape = rank, in.shape = shape;
    return in;
}

static void raw_contents(void **state) {
    (void)state;
    float               f[4] = {1, -2, 3.5f, 4};
    uint16_t            h[2] = {0x3c00, 0xbc00};
    unsigned char       s[] = "\2\0\0\0hi\0\0\0\0\1\0\0\0\xff";
    int64_t             four[] = {2, 2}, two[] = {2}, three[] = {3}, none[] = {5, 0};
    Input               in[] = {input_of("f", "FP32", 2, four), input_of("h", "FP16", 1, two),
                                input_of("s", "BYTES", 1, three), input_of("e", "INT64", 2, none)};
    Input              *inputs[] = {&in[0], &in[1], &in[2], &in[3]};
    ProtobufCBinaryData raw[] = {
        {sizeof f, (uint8_t *)f}, {sizeof h, (uint8_t *)h}, {sizeof s - 1, s}, {0, NULL}};
    Request r = INFERENCE__MODEL_INFER_REQUEST__INIT;
    r.n_inputs = 4, r.inputs = inputs;
    r.n_raw_input_contents = 4, r.raw_input_contents = raw;
    InferRequest   out;
    unsigned char *bytes;
    assert_int_equal(decode(&r, &out, &bytes), ERR_OK);
    assert_true(out.raw && out.n_inputs == 4);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal((uintptr_t)out.inputs[i].t.data % (i < 2 ? TENSOR_ALIGN : 8), 0);
    assert_memory_equal(out.inputs[0].t.data, f, sizeof f);
    assert_memory_equal(out.inputs[1].t.data, h, sizeof h);
    const Str *str = out.inputs[2].t.data;
    assert_true(same(str[0], "hi") && same(str[1], "") && same(str[2], "\xff"));
    free(bytes);

    raw[0].len--;
    refused(&r, ERR_INVALID, "input 'f': shape 2x2 needs 16 bytes");
    raw[0].len++;
    raw[2].len--;
    refused(&r, ERR_INVALID, "input 's': element 2 exceeds its");
    raw[2].len++;
    s[6] = 0xff, s[7] = 0xff, s[8] = 0xff, s[9] = 0xff;
    refused(&r, ERR_INVALID, "input 's': element 1 exceeds its");
    s[6] = s[7] = s[8] = s[9] = 0;
    two[0] = 1;
    refused(&r, ERR_INVALID, "input 'h': shape");
    two[0] = 2;
    three[0] = 2;
    refused(&r, ERR_INVALID, "input 's': 2 elements end at byte 10 of 15");
    three[0] = 3;
    r.n_raw_input_contents = 3;
    refused(&r, ERR_INVALID, "4 inputs but 3 raw contents");
    r.n_raw_input_contents = 4;
    Contents c = INFERENCE__INFER_TENSOR_CONTENTS__INIT;
    in[0].contents = &c;  // empty: not a contradiction
    assert_int_equal(decode(&r, &out, &bytes), ERR_OK);
    free(bytes);
    c.n_fp32_contents = 4, c.fp32_contents = f;
    refused(&r, ERR_INVALID, "input 'f': both contents and raw contents are given");
}

// Numbers that are aligned in the message are not copied.
static void aligned_numbers_stay(void **state) {
    (void)state;
    float               f[64] = {1, 2, 3};
    int64_t             shape[] = {64};
    Input               in = input_of("f", "FP32", 1, shape), *inputs[] = {&in};
    ProtobufCBinaryData raw[] = {{sizeof f, (uint8_t *)f}};
    Request             r = INFERENCE__MODEL_INFER_REQUEST__INIT;
    r.n_inputs = 1, r.inputs = inputs;
    r.n_raw_input_contents = 1, r.raw_input_contents = raw;
    size_t         len;
    unsigned char *bytes = pack(&r, &len), *room = aligned_alloc(64, 1024);
    assert_non_null(room);
    for (size_t shift = 0; shift < 64; shift++) {
        InferRequest   out;
        unsigned char *at = memcpy(room + shift, bytes, len);
        assert_int_equal(infer_proto_decode(at, len, &arena, &out), ERR_OK);
        unsigned char *data = out.inputs[0].t.data;
        bool           aligned = (uintptr_t)(at + len - sizeof f) % 64 == 0;
        assert_true(aligned == (data == at + len - sizeof f));
        assert_int_equal((uintptr_t)data % 64, 0);
        assert_memory_equal(data, f, sizeof f);
    }
    free(room);
    free(bytes);
}

static void parameters(void **state) {
    (void)state;
    Parameter p[4];
    Entry     e[4], *entries[] = {&e[0], &e[1], &e[2], &e[3]};
    char     *keys[] = {(char *)(uintptr_t) "timeout", (char *)(uintptr_t) "priority",
                        (char *)(uintptr_t) "timing", (char *)(uintptr_t) "unheard-of"};
    for (size_t i = 0; i < 4; i++) {
        inference__infer_parameter__init(&p[i]);
        inference__model_infer_request__parameters_entry__init(&e[i]);
        e[i].key = keys[i], e[i].value = &p[i];
    }
    Request r = INFERENCE__MODEL_INFER_REQUEST__INIT;
    r.n_parameters = 4, r.parameters = entries;
    p[0].parameter_choice_case = INFERENCE__INFER_PARAMETER__PARAMETER_CHOICE_INT64_PARAM;
    p[0].int64_param = 20000;
    p[1].parameter_choice_case = INFERENCE__INFER_PARAMETER__PARAMETER_CHOICE_UINT64_PARAM;
    p[1].uint64_param = 1;
    p[2].parameter_choice_case = INFERENCE__INFER_PARAMETER__PARAMETER_CHOICE_BOOL_PARAM;
    p[2].bool_param = 1;
    p[3].parameter_choice_case = INFERENCE__INFER_PARAMETER__PARAMETER_CHOICE_STRING_PARAM;
    p[3].string_param = keys[3];
    InferRequest   out;
    unsigned char *bytes;
    assert_int_equal(decode(&r, &out, &bytes), ERR_OK);
    assert_true(out.timeout_us == 20000 && out.priority == 1 && out.timing);
    free(bytes);
    p[0].parameter_choice_case = INFERENCE__INFER_PARAMETER__PARAMETER_CHOICE_UINT64_PARAM;
    p[0].uint64_param = UINT64_C(1) << 63;
    assert_int_equal(decode(&r, &out, &bytes), ERR_OK);
    assert_true(out.timeout_us == INT64_MAX);
    free(bytes);
    p[0].parameter_choice_case = INFERENCE__INFER_PARAMETER__PARAMETER_CHOICE_DOUBLE_PARAM;
    p[0].double_param = 1e300;
    assert_int_equal(decode(&r, &out, &bytes), ERR_OK);
    assert_true(out.timeout_us == INT64_MAX);
    free(bytes);
    p[0].double_param = -1;
    refused(&r, ERR_INVALID, "parameter 'timeout' is not a number");
    p[0].parameter_choice_case = INFERENCE__INFER_PARAMETER__PARAMETER_CHOICE_STRING_PARAM;
    p[0].string_param = keys[0];
    refused(&r, ERR_INVALID, "parameter 'timeout' is not a number");
    e[0].key = keys[3];
    p[2].parameter_choice_case = INFERENCE__INFER_PARAMETER__PARAMETER_CHOICE_INT64_PARAM;
    refused(&r, ERR_INVALID, "neither true nor false");
}

static void bad_inputs_are_refused(void **state) {
    (void)state;
    float    f[4] = {1, 2, 3, 4};
    int32_t  wide[4] = {1, 2, 300, 4};
    int64_t  shape[10] = {2, 2};
    Input    in = input_of("x", "FP32", 2, shape), *inputs[INFER_TENSORS + 1];
    Contents c = INFERENCE__INFER_TENSOR_CONTENTS__INIT;
    Request  r = INFERENCE__MODEL_INFER_REQUEST__INIT;
    in.contents = &c;
    c.n_fp32_contents = 4, c.fp32_contents = f;
    for (size_t i = 0; i <= INFER_TENSORS; i++) inputs[i] = &in;
    r.n_inputs = INFER_TENSORS + 1, r.inputs = inputs;
    refused(&r, ERR_LIMIT, "more than 256 inputs");
    r.n_inputs = 1;
    c.n_fp32_contents = 3;
    refused(&r, ERR_INVALID, "input 'x': shape needs 4 numbers, contents have 3");
    c.n_fp32_contents = 4;
    in.datatype = (char *)(uintptr_t) "INT8";
    refused(&r, ERR_INVALID, "do not match datatype INT8");
    c.n_fp32_contents = 0, c.n_int_contents = 4, c.int_contents = wide;
    refused(&r, ERR_INVALID, "number 2 is out of the range of INT8");
    in.datatype = (char *)(uintptr_t) "FP16";
    refused(&r, ERR_INVALID, "needs raw contents");
    c.n_int_contents = 0;
    refused(&r, ERR_INVALID, "needs raw contents");
    in.datatype = (char *)(uintptr_t) "FLOAT";
    refused(&r, ERR_INVALID, "datatype 'FLOAT' is unknown");
    in.datatype = (char *)(uintptr_t) "";
    refused(&r, ERR_INVALID, "datatype is missing");
    in.datatype = (char *)(uintptr_t) "FP32";
    shape[0] = -1;
    refused(&r, ERR_INVALID, "input 'x'");
    for (size_t i = 0; i < 10; i++) shape[i] = 65536;
    in.n_shape = 4;
    refused(&r, ERR_LIMIT, "input 'x'");
    in.n_shape = 10;
    refused(&r, ERR_INVALID, "more than 8 dimensions");
    in.n_shape = 2;
    shape[0] = INT64_MAX, shape[1] = 0;  // nothing, however large the other dimension
    unsigned char *bytes;
    InferRequest   out;
    Err            e = decode(&r, &out, &bytes);
    assert_true(e == ERR_OK || e == ERR_LIMIT || e == ERR_INVALID);
    free(bytes);
    shape[0] = shape[1] = 2;
    in.name = (char *)(uintptr_t) "\xff";
    refused(&r, ERR_PARSE, "not UTF-8");
}

static void wanted_outputs(void **state) {
    (void)state;
    Wanted w[2], *requested[] = {&w[0], &w[1]};
    for (size_t i = 0; i < 2; i++)
        inference__model_infer_request__infer_requested_output_tensor__init(&w[i]);
    w[0].name = (char *)(uintptr_t) "a", w[1].name = (char *)(uintptr_t) "b";
    Request r = INFERENCE__MODEL_INFER_REQUEST__INIT;
    r.n_outputs = 2, r.outputs = requested;
    InferRequest   out;
    unsigned char *bytes;
    assert_int_equal(decode(&r, &out, &bytes), ERR_OK);
    assert_true(out.n_requested == 2 && same(out.requested[0].name, "a") &&
                same(out.requested[1].name, "b"));
    free(bytes);
}

// Numbers that are packed, alone and in several parts of one field add up.
static void parts_add_up(void **state) {
    (void)state;
    static const unsigned char m[] = {0x2a, 37,                              // an input
                                      0x12, 5,  'I',  'N', 'T',  '3',  '2',  // datatype
                                      0x18, 2,  0x1a, 1,   3,                // shape: alone, packed
                                      0x2a, 5,  0x12, 3,   1,    0x80, 1,    // contents: 1, 128
                                      0x2a, 12, 0x10, 3,   0x12, 1,    4,    // 3, 4
                                      0xa8, 6,  9,                           // an unknown field
                                      0x12, 0,  0x10, 5,                     // none, 5
                                      0x2a, 2,  0x10, 6};                    // 6
    const int32_t              want[] = {1, 128, 3, 4, 5, 6};
    InferRequest               out;
    assert_int_equal(infer_proto_decode(m, sizeof m, &arena, &out), ERR_OK);
    assert_int_equal(out.n_inputs, 1);
    assert_memory_equal(out.inputs[0].t.data, want, sizeof want);
    for (size_t n = 0; n < sizeof m; n++) {  // cut anywhere: an error, or nothing at all
        unsigned char *cut = malloc(n > 0 ? n : 1);
        assert_non_null(cut);
        memcpy(cut, m, n);
        assert_true(infer_proto_decode(cut, n, &arena, &out) != ERR_OK || n == 0);
        free(cut);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(typed_contents, begin, finish),
        cmocka_unit_test_setup_teardown(raw_contents, begin, finish),
        cmocka_unit_test_setup_teardown(aligned_numbers_stay, begin, finish),
        cmocka_unit_test_setup_teardown(parameters, begin, finish),
        cmocka_unit_test_setup_teardown(bad_inputs_are_refused, begin, finish),
        cmocka_unit_test_setup_teardown(wanted_outputs, begin, finish),
        cmocka_unit_test_setup_teardown(parts_add_up, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
