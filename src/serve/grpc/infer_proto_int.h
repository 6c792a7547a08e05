// Internals of ModelInfer messages, in infer_proto_decode.c.
#pragma once

#include "serve/tensor/infer_request.h"
#include "serve/grpc/wire.h"

// What the first fields of a message tell before it is decoded: model, version and id, "" if they
// are missing; bytes of raw contents.
void   infer_proto_names(Str message, uint32_t fields, InferRequest *out);
size_t infer_proto_raw_bytes(Str message, uint32_t fields);
