// Onnx wire: the protobuf wire format, checked before a message is unpacked.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct ProtobufCMessageDescriptor ProtobufCMessageDescriptor;

typedef enum ProtoWireType {
    PROTO_VARINT = 0,
    PROTO_64 = 1,
    PROTO_BYTES = 2,
    PROTO_32 = 5
} ProtoWireType;

typedef struct ProtoField {
    uint32_t       number;
    ProtoWireType  type;
    const uint8_t *at;  // payload, without the length of PROTO_BYTES
    size_t         len;
} ProtoField;

// Reads the field at *at and advances *at behind it. Byte offsets in reasons count from base.
MUST_USE Err onnx_wire_next(const uint8_t *base, const uint8_t **at, const uint8_t *end,
                            ProtoField *out);

// Checks a whole message without recursion: lengths, wire types, varints, UTF-8, nesting depth and
// the number of fields, which it returns.
MUST_USE Err onnx_wire_check(const ProtobufCMessageDescriptor *type, const void *bytes, size_t n,
                             size_t *fields);
