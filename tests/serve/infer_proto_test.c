// gRPC's inference messages against protobuf-c: it packs what we read, and reads what we pack.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "inference.pb-c.h"
#include "net/exchange.h"
#include "serve/infer.h"

typedef Inference__ModelInferRequest                             Request;
typedef Inference__ModelInferRequest__InferInputTensor           Input;
typedef Inference__ModelInferRequest__InferRequestedOutputTensor Wanted;
typedef Inference__ModelInferRequest__ParametersEntry            Entry;
typedef Inference__InferParameter                                Parameter;
typedef Inference__InferTensorContents                           Contents;
typedef Inference__ModelInferResponse                            Response;

enum { N = 6 };

static Arena arena;

static int begin(void **state) {
    (void)state;
    return arena_init(&arena, 1 << 26) == ERR_OK ? 0 : -1;
}

static int finish(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

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

typedef struct Numbers {  // N of each type, the first ones at its ends
    int32_t             b[N], i8[N], i16[N], i32[N];
    uint32_t            u8[N], u16[N], u32[N];
    int64_t             i64[N];
    uint64_t            u64[N];
    float               f32[N];
    double              f64[N];
    ProtobufCBinaryData text[N];
} Numbers;

static Numbers some_numbers(void) {
    Numbers n = {.b = {0, 1, 1, 0, 0, 1},
                 .i8 = {INT8_MIN, INT8_MAX, -1, 0, 5, 9},
                 .i16 = {INT16_MIN, INT16_MAX, -1, 0, 500, 9},
                 .i32 = {INT32_MIN, INT32_MAX, -1, 0, 70000, 9},
                 .u8 = {0, UINT8_MAX, 128, 7, 8, 9},
                 .u16 = {0, UINT16_MAX, 128, 7, 8, 9},
                 .u32 = {0, UINT32_MAX, 128, 7, 8, 9},
                 .i64 = {INT64_MIN, INT64_MAX, -1, 0, 1, 9},
                 .u64 = {0, UINT64_MAX, 128, 7, 8, 9},
                 .f32 = {0, -0.0f, 1.5f, 3e38f, -1e-40f, 9},
                 .f64 = {0, -0.0, 1.5, 1e300, -1e-310, 9}};
    for (size_t i = 0; i < N; i++)
        n.text[i] = (ProtobufCBinaryData){i, (unsigned char *)(uintptr_t) "ab\0\xff"
                                                                          "e"};
    return n;
}

static Contents contents_of(DType t, Numbers *n) {
    Contents c = INFERENCE__INFER_TENSOR_CONTENTS__INIT;
    switch (t) {
    case DT_BOOL: c.n_bool_contents = N, c.bool_contents = n->b; break;
    case DT_I8: c.n_int_contents = N, c.int_contents = n->i8; break;
    case DT_I16: c.n_int_contents = N, c.int_contents = n->i16; break;
    case DT_I32: c.n_int_contents = N, c.int_contents = n->i32; break;
    case DT_I64: c.n_int64_contents = N, c.int64_contents = n->i64; break;
    case DT_U8: c.n_uint_contents = N, c.uint_contents = n->u8; break;
    case DT_U16: c.n_uint_contents = N, c.uint_contents = n->u16; break;
    case DT_U32: c.n_uint_contents = N, c.uint_contents = n->u32; break;
    case DT_U64: c.n_uint64_contents = N, c.uint64_contents = n->u64; break;
    case DT_F32: c.n_fp32_contents = N, c.fp32_contents = n->f32; break;
    case DT_F64: c.n_fp64_contents = N, c.fp64_contents = n->f64; break;
    case DT_STR: c.n_bytes_contents = N, c.bytes_contents = n->text; break;
    default: fail();
    }
    return c;
}

// What the tensor must hold, element by element in its own type.
static void expect_numbers(const Tensor *t, const Numbers *n) {
    for (size_t i = 0; i < N; i++) switch (t->dtype) {
        case DT_BOOL: assert_int_equal(((const uint8_t *)t->data)[i], n->b[i]); break;
        case DT_I8: assert_int_equal(((const int8_t *)t->data)[i], n->i8[i]); break;
        case DT_I16: assert_int_equal(((const int16_t *)t->data)[i], n->i16[i]); break;
        case DT_I32: assert_int_equal(((const int32_t *)t->data)[i], n->i32[i]); break;
        case DT_I64: assert_true(((const int64_t *)t->data)[i] == n->i64[i]); break;
        case DT_U8: assert_int_equal(((const uint8_t *)t->data)[i], n->u8[i]); break;
        case DT_U16: assert_int_equal(((const uint16_t *)t->data)[i], n->u16[i]); break;
        case DT_U32: assert_int_equal(((const uint32_t *)t->data)[i], n->u32[i]); break;
        case DT_U64: assert_true(((const uint64_t *)t->data)[i] == n->u64[i]); break;
        case DT_F32: assert_memory_equal((const float *)t->data + i, &n->f32[i], 4); break;
        case DT_F64: assert_memory_equal((const double *)t->data + i, &n->f64[i], 8); break;
        case DT_STR:
            assert_int_equal(((const Str *)t->data)[i].len, n->text[i].len);
            assert_memory_equal(((const Str *)t->data)[i].at, n->text[i].data, n->text[i].len);
            break;
        default: fail();
        }
}

static const DType typed[] = {DT_BOOL, DT_I8,  DT_I16, DT_I32, DT_I64, DT_U8,
                              DT_U16,  DT_U32, DT_U64, DT_F32, DT_F64, DT_STR};
enum { TYPED = sizeof typed / sizeof *typed };

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
    refused(&r, ERR_INVALID, "input 'f': its shape and datatype need 16 bytes");
    raw[0].len++;
    raw[2].len--;
    refused(&r, ERR_INVALID, "input 's': string 2 is cut short");
    raw[2].len++;
    s[6] = 0xff, s[7] = 0xff, s[8] = 0xff, s[9] = 0xff;
    refused(&r, ERR_INVALID, "input 's': string 1 is cut short");
    s[6] = s[7] = s[8] = s[9] = 0;
    two[0] = 1;
    refused(&r, ERR_INVALID, "input 'h': its shape and datatype need 2 bytes");
    two[0] = 2;
    three[0] = 2;
    refused(&r, ERR_INVALID, "input 's': 5 bytes follow the last string");
    three[0] = 3;
    r.n_raw_input_contents = 3;
    refused(&r, ERR_INVALID, "4 inputs have 3 raw contents");
    r.n_raw_input_contents = 4;
    Contents c = INFERENCE__INFER_TENSOR_CONTENTS__INIT;
    in[0].contents = &c;  // empty: not a contradiction
    assert_int_equal(decode(&r, &out, &bytes), ERR_OK);
    free(bytes);
    c.n_fp32_contents = 4, c.fp32_contents = f;
    refused(&r, ERR_INVALID, "input 'f': it has contents, and raw contents besides");
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
    refused(&r, ERR_INVALID, "parameter 'timeout' is no number");
    p[0].parameter_choice_case = INFERENCE__INFER_PARAMETER__PARAMETER_CHOICE_STRING_PARAM;
    p[0].string_param = keys[0];
    refused(&r, ERR_INVALID, "parameter 'timeout' is no number");
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
    refused(&r, ERR_LIMIT, "at most 256 inputs");
    r.n_inputs = 1;
    c.n_fp32_contents = 3;
    refused(&r, ERR_INVALID, "input 'x': its shape needs 4 numbers, its contents have 3");
    c.n_fp32_contents = 4;
    in.datatype = (char *)(uintptr_t) "INT8";
    refused(&r, ERR_INVALID, "do not suit datatype INT8");
    c.n_fp32_contents = 0, c.n_int_contents = 4, c.int_contents = wide;
    refused(&r, ERR_INVALID, "number 2 is beyond INT8");
    in.datatype = (char *)(uintptr_t) "FP16";
    refused(&r, ERR_INVALID, "goes raw only");
    c.n_int_contents = 0;
    refused(&r, ERR_INVALID, "needs raw contents");
    in.datatype = (char *)(uintptr_t) "FLOAT";
    refused(&r, ERR_INVALID, "datatype 'FLOAT' is unknown");
    in.datatype = (char *)(uintptr_t) "";
    refused(&r, ERR_INVALID, "no datatype");
    in.datatype = (char *)(uintptr_t) "FP32";
    shape[0] = -1;
    refused(&r, ERR_INVALID, "input 'x'");
    for (size_t i = 0; i < 10; i++) shape[i] = 65536;
    in.n_shape = 4;
    refused(&r, ERR_LIMIT, "input 'x'");
    in.n_shape = 10;
    refused(&r, ERR_INVALID, "over 8 dimensions");
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
    Wanted w[2], *wanted[] = {&w[0], &w[1]};
    for (size_t i = 0; i < 2; i++)
        inference__model_infer_request__infer_requested_output_tensor__init(&w[i]);
    w[0].name = (char *)(uintptr_t) "a", w[1].name = (char *)(uintptr_t) "b";
    Request r = INFERENCE__MODEL_INFER_REQUEST__INIT;
    r.n_outputs = 2, r.outputs = wanted;
    InferRequest   out;
    unsigned char *bytes;
    assert_int_equal(decode(&r, &out, &bytes), ERR_OK);
    assert_true(out.n_wanted == 2 && same(out.wanted[0].name, "a") &&
                same(out.wanted[1].name, "b"));
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

static Response *encode(const InferAnswer *a, bool raw, uint32_t *n_pieces) {
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
    Numbers   n = some_numbers();
    Tensor    t[TYPED];
    InferSlot slots[TYPED];
    Contents  want[TYPED];
    int64_t   dims[] = {3, 2};
    for (size_t i = 0; i < TYPED; i++) {
        t[i] = tensor_of(typed[i], 2, dims, NULL);
        assert_int_equal(tensor_room(&t[i], &arena), ERR_OK);
        slots[i] = (InferSlot){.name = infer_type_name(typed[i])};
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
    InferNote   notes[] = {{.key = "queue_ms", .number = 0.25}, {.key = "cause", .text = "load"}};
    InferAnswer a = {.model = "m",
                     .version = "3",
                     .id = {"r-7", 3},
                     .slots = slots,
                     .tensors = t,
                     .n = TYPED,
                     .notes = notes,
                     .n_notes = 2};
    uint32_t    pieces;
    Response   *r = encode(&a, false, &pieces);
    assert_string_equal(r->model_name, "m");
    assert_string_equal(r->model_version, "3");
    assert_string_equal(r->id, "r-7");
    assert_int_equal(r->n_outputs, TYPED);
    assert_int_equal(r->n_raw_output_contents, 0);
    for (size_t i = 0; i < TYPED; i++) {
        assert_string_equal(r->outputs[i]->name, slots[i].name);
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
    static Tensor    t[MANY];
    static InferSlot slots[MANY];
    int64_t          dims[] = {EACH};
    Rng              rng = {1};
    for (size_t i = 0; i < MANY; i++) {
        t[i] = tensor_of(i % 3 == 0 ? DT_F16 : DT_I32, 1, dims, NULL);
        assert_int_equal(tensor_room(&t[i], &arena), ERR_OK);
        slots[i] = (InferSlot){.name = "same"};
        uint16_t *v = t[i].data;
        for (size_t k = 0; k < EACH; k++) v[k] = (uint16_t)rng_u64(&rng);
    }
    InferAnswer a = {.model = "m", .slots = slots, .tensors = t, .n = MANY};
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
    Str         s[] = {{"hi", 2}, {"", 0}};
    int64_t     dims[] = {2}, none[] = {0};
    Tensor      t[] = {tensor_of(DT_STR, 1, dims, s), tensor_of(DT_F32, 1, none, NULL)};
    InferSlot   slots[] = {{.name = "s"}, {.name = "e"}};
    InferAnswer a = {.model = "m", .slots = slots, .tensors = t, .n = 2};
    uint32_t    pieces;
    Response   *r = encode(&a, true, &pieces);
    assert_int_equal(r->n_raw_output_contents, 2);
    assert_int_equal(r->raw_output_contents[0].len, 10);
    assert_memory_equal(r->raw_output_contents[0].data, "\2\0\0\0hi\0\0\0\0", 10);
    assert_int_equal(r->raw_output_contents[1].len, 0);
    inference__model_infer_response__free_unpacked(r, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(typed_contents, begin, finish),
        cmocka_unit_test_setup_teardown(raw_contents, begin, finish),
        cmocka_unit_test_setup_teardown(aligned_numbers_stay, begin, finish),
        cmocka_unit_test_setup_teardown(parameters, begin, finish),
        cmocka_unit_test_setup_teardown(bad_inputs_are_refused, begin, finish),
        cmocka_unit_test_setup_teardown(wanted_outputs, begin, finish),
        cmocka_unit_test_setup_teardown(parts_add_up, begin, finish),
        cmocka_unit_test_setup_teardown(answers_typed, begin, finish),
        cmocka_unit_test_setup_teardown(answers_raw, begin, finish),
        cmocka_unit_test_setup_teardown(answers_raw_strings, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
