// Onnx wire: protobuf's bytes, walked and checked before anything is built from them.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"
#include "model/graph.h"

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
    const uint8_t *at;  // its payload, without the length of PROTO_BYTES
    size_t         len;
} ProtoField;

// The field at *at, which moves behind it. base is where byte offsets in reasons count from.
MUST_USE Err onnx_wire_next(const uint8_t *base, const uint8_t **at, const uint8_t *end,
                            ProtoField *out);

// Walks a whole message without recursion: lengths, wire types, varints, UTF-8, nesting depth and
// the number of fields, which it counts.
MUST_USE Err onnx_wire_check(const ProtobufCMessageDescriptor *type, const void *bytes, size_t n,
                             size_t *fields);

// Onnx emit: protobuf fields into a stream, or only counted: a message needs its size up front.

typedef struct Emit {
    FILE    *out;  // NULL: count only
    uint64_t n;    // bytes so far
} Emit;

typedef void EmitBody(Emit *e, const void *self);  // must give the same bytes every time

void emit_int(Emit *e, uint32_t field, int64_t v);
void emit_float(Emit *e, uint32_t field, float v);
void emit_text(Emit *e, uint32_t field, const char *s);
void emit_bytes(Emit *e, uint32_t field, const void *at, size_t n);
void emit_head(Emit *e, uint32_t field, uint64_t n);  // of a field whose n bytes the caller adds
void emit_raw(Emit *e, const void *at, size_t n);
void emit_message(Emit *e, uint32_t field, EmitBody *body, const void *self);

// Onnx write value: tensors and declared types as ONNX's messages.

typedef struct EmitTensor {
    const char       *name;  // NULL: none
    const Tensor     *t;
    const RandomFill *fill;     // NULL: the tensor has its data
    Arena            *scratch;  // room for the numbers of one fill; given back
} EmitTensor;

EmitBody onnx_emit_tensor;  // self: EmitTensor
EmitBody onnx_emit_type;    // self: Value, of which type, symbols and elem count
EmitBody onnx_emit_info;    // self: Value
