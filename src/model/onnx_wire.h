// Onnx wire: protobuf's bytes, walked and checked before anything is built from them.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct ProtobufCMessageDescriptor ProtobufCMessageDescriptor;

typedef enum WireType { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 } WireType;

typedef struct WireField {
    uint32_t       number;
    WireType       type;
    const uint8_t *at;  // its payload, without the length of WIRE_BYTES
    size_t         len;
} WireField;

// The field at *at, which moves behind it. base is where byte offsets in reasons count from.
MUST_USE Err onnx_wire_next(const uint8_t *base, const uint8_t **at, const uint8_t *end,
                            WireField *out);

// Walks a whole message without recursion: lengths, wire types, varints, UTF-8, nesting depth and
// the number of fields, which it counts.
MUST_USE Err onnx_wire_check(const ProtobufCMessageDescriptor *type, const void *bytes, size_t n,
                             size_t *fields);
