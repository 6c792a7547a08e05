// Shared by decoding and encoding of ModelInfer messages; all in infer_proto_decode.c.
#pragma once

#include "serve/tensor/infer_request.h"
#include "serve/grpc/wire.h"

typedef struct InferProtoContents {  // field of InferTensorContents for a data type
    DType    dtype;
    uint32_t field;
    WireType kind;
} InferProtoContents;

const InferProtoContents *infer_proto_contents(DType t);  // NULL: the type needs raw contents

// Model and version of a message that failed to decode, as far as they can be read; else "".
void infer_proto_names(Str message, Str *model, Str *version);
