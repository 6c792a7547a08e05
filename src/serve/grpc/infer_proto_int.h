// Infer proto: what decoding and encoding of gRPC's tensors share.
#pragma once

#include "serve/tensor/infer_request.h"
#include "serve/grpc/wire.h"

typedef struct InferProtoContents {  // where InferTensorContents has the elements of a type
    DType    dtype;
    uint32_t field;
    WireType kind;
} InferProtoContents;

const InferProtoContents *infer_proto_contents(DType t);  // NULL: such numbers go raw only

// Bytes that are the tensor's elements, without copying where they are aligned. in->t has type and
// shape.
MUST_USE Err infer_proto_raw(InferTensor *in, Str raw, Arena *a);
// Elements of all InferTensorContents within an input's message; *n: how many there are.
MUST_USE Err infer_proto_count_typed(const InferTensor *in, const WireReader *message, size_t *n);
MUST_USE Err infer_proto_typed(InferTensor *in, const WireReader *message, size_t n, Arena *a);

// What a request calls its model, as far as a broken one lets itself be read; "" where it does not.
void infer_proto_names(Str message, Str *model, Str *version);
