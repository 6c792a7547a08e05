// Internals of ModelInfer messages, in infer_proto_decode.c.
#pragma once

#include "serve/tensor/infer_request.h"
#include "serve/grpc/wire.h"

// Model and version of a message that failed to decode, as far as they can be read; else "".
void infer_proto_names(Str message, Str *model, Str *version);
