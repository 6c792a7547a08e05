#include "model/onnx_emit.h"

#include <string.h>

#include "model/onnx_wire.h"

void emit_raw(Emit *e, const void *at, size_t n) {
    e->n += n;
    if (e->out != NULL && n > 0) (void)fwrite(at, 1, n, e->out);  // the stream keeps the error
}

static void varint(Emit *e, uint64_t v) {
    uint8_t bytes[10];
    size_t  n = 0;
    for (; v >= 0x80; v >>= 7) bytes[n++] = (uint8_t)(v | 0x80);
    bytes[n++] = (uint8_t)v;
    emit_raw(e, bytes, n);
}

static void tag(Emit *e, uint32_t field, WireType type) { varint(e, field << 3 | (uint32_t)type); }

void emit_int(Emit *e, uint32_t field, int64_t v) {
    tag(e, field, WIRE_VARINT);
    varint(e, (uint64_t)v);
}

void emit_float(Emit *e, uint32_t field, float v) {
    tag(e, field, WIRE_32);
    emit_raw(e, &v, sizeof v);
}

void emit_head(Emit *e, uint32_t field, uint64_t n) {
    tag(e, field, WIRE_BYTES);
    varint(e, n);
}

void emit_bytes(Emit *e, uint32_t field, const void *at, size_t n) {
    emit_head(e, field, n);
    emit_raw(e, at, n);
}

void emit_text(Emit *e, uint32_t field, const char *s) { emit_bytes(e, field, s, strlen(s)); }

void emit_message(Emit *e, uint32_t field, EmitBody *body, const void *self) {
    Emit count = {0};
    body(&count, self);
    emit_head(e, field, count.n);
    if (e->out == NULL)
        e->n += count.n;
    else
        body(e, self);
}
