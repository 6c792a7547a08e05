// gRPC messages as protobuf-c structs, and test data of every type.
#pragma once

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
#include "serve/tensor/infer_request.h"

#define PROTO static __attribute__((unused))

typedef Inference__ModelInferRequest                             Request;
typedef Inference__ModelInferRequest__InferInputTensor           Input;
typedef Inference__ModelInferRequest__InferRequestedOutputTensor Wanted;
typedef Inference__ModelInferRequest__ParametersEntry            Entry;
typedef Inference__InferParameter                                Parameter;
typedef Inference__InferTensorContents                           Contents;
typedef Inference__ModelInferResponse                            Response;

enum { N = 6 };

PROTO Arena arena;

PROTO int begin(void **state) {
    (void)state;
    return arena_init(&arena, 1 << 26) == ERR_OK ? 0 : -1;
}

PROTO int finish(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

typedef struct Numbers {  // N of each type, the first ones at its ends
    int32_t             b[N], i8[N], i16[N], i32[N];
    uint32_t            u8[N], u16[N], u32[N];
    int64_t             i64[N];
    uint64_t            u64[N];
    float               f32[N];
    double              f64[N];
    ProtobufCBinaryData text[N];
} Numbers;

PROTO Numbers some_numbers(void) {
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

PROTO Contents contents_of(DType t, Numbers *n) {
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
PROTO void expect_numbers(const Tensor *t, const Numbers *n) {
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

PROTO const DType typed[] = {DT_BOOL, DT_I8,  DT_I16, DT_I32, DT_I64, DT_U8,
                             DT_U16,  DT_U32, DT_U64, DT_F32, DT_F64, DT_STR};
enum { TYPED = sizeof typed / sizeof *typed };
