// Onnx proto: messages of ONNX's schema, unpacked into an arena under a cap.
#pragma once

#include <stddef.h>

#include "base/arena.h"

typedef struct ProtobufCMessageDescriptor ProtobufCMessageDescriptor;

// Checks the bytes, then unpacks them. The message lives in the arena and borrows nothing from
// them.
MUST_USE Err onnx_unpack(const ProtobufCMessageDescriptor *type, const void *bytes, size_t n,
                         Arena *a, void **out);
