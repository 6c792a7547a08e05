// Onnx emit: protobuf fields into a stream, or only counted: a message needs its size up front.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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
