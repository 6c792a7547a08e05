#include "model/onnx/onnx_wire.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include <protobuf-c/protobuf-c.h>

#include "base/utf8.h"

enum { DEPTH_MAX = 64, FIELDS_MAX = 1 << 25, VARINT_BYTES = 10, PREFIX_BYTES = 5 };

typedef struct Level {
    const ProtobufCMessageDescriptor *type;
    const uint8_t                    *end;
    uint64_t                          seen;  // singular message fields met, by index
} Level;

typedef struct Walk {
    const uint8_t *base, *at;
    Level          levels[DEPTH_MAX];
    uint32_t       depth;
    size_t         fields;
} Walk;

// The length of the varint at `at`; 0 if it is not complete within max bytes and before end.
static size_t varint(const uint8_t *at, const uint8_t *end, size_t max, uint64_t *out) {
    uint64_t v = 0;
    for (size_t i = 0; i < max && at + i < end; i++) {
        v |= (uint64_t)(at[i] & 0x7f) << (7 * i);
        if ((at[i] & 0x80) == 0) {
            *out = v;
            return i + 1;
        }
    }
    return 0;
}

static Err bad(const uint8_t *base, const uint8_t *at, const char *what) {
    return err_set(ERR_PARSE, "byte %zu: %s; the file is damaged or not an ONNX file",
                   (size_t)(at - base), what);
}

static Err payload_length(const uint8_t *base, const uint8_t **at, const uint8_t *end,
                          ProtoField *f) {
    uint64_t v = 0;
    size_t   n = 0;
    switch ((int)f->type) {
    case PROTO_VARINT: f->len = varint(*at, end, VARINT_BYTES, &v); break;
    case PROTO_64: f->len = 8; break;
    case PROTO_32: f->len = 4; break;
    case PROTO_BYTES:
        n = varint(*at, end, PREFIX_BYTES, &v);
        if (n == 0) return bad(base, *at, "incomplete length");
        *at += n;
        if (v > INT_MAX) return bad(base, *at, "a length is 2 GiB or more");
        f->len = (size_t)v;
        break;
    default: return bad(base, *at, "unknown wire type");
    }
    if (f->type == PROTO_VARINT && f->len == 0) return bad(base, *at, "incomplete varint");
    if (f->len > (size_t)(end - *at)) return bad(base, *at, "a field exceeds its message");
    return ERR_OK;
}

Err onnx_wire_next(const uint8_t *base, const uint8_t **at, const uint8_t *end, ProtoField *out) {
    uint64_t tag = 0;
    size_t   n = varint(*at, end, PREFIX_BYTES, &tag);
    if (n == 0 || tag > UINT32_MAX || tag >> 3 == 0) return bad(base, *at, "invalid field tag");
    *at += n;
    *out = (ProtoField){.number = (uint32_t)(tag >> 3), .type = (ProtoWireType)(tag & 7)};
    TRY(payload_length(base, at, end, out));
    out->at = *at;
    *at += out->len;
    return ERR_OK;
}

static ProtoWireType wire_of(ProtobufCType t) {
    switch (t) {
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32: return PROTO_32;
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64: return PROTO_64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE: return PROTO_BYTES;
    default: return PROTO_VARINT;
    }
}

static Err check_packed(const Walk *w, const ProtoField *f, ProtoWireType want) {
    if (want == PROTO_32 || want == PROTO_64)
        return f->len % (want == PROTO_32 ? 4 : 8) != 0
                   ? bad(w->base, f->at, "truncated packed field")
                   : ERR_OK;
    size_t run = 0;
    for (size_t i = 0; i < f->len; i++) {
        run = (f->at[i] & 0x80) != 0 ? run + 1 : 0;
        if (run >= VARINT_BYTES)
            return bad(w->base, f->at + i, "incomplete varint in a packed field");
    }
    return run != 0 ? bad(w->base, f->at + f->len, "truncated packed field") : ERR_OK;
}

// Names are kept as C strings and appear in messages.
static bool is_text(const ProtoField *f) {
    return memchr(f->at, '\0', f->len) == NULL && utf8_ok((const char *)f->at, f->len);
}

static Err enter(Walk *w, const ProtobufCFieldDescriptor *d, const ProtoField *f) {
    Level *l = &w->levels[w->depth - 1];
    if (d->label != PROTOBUF_C_LABEL_REPEATED) {
        size_t index = (size_t)(d - l->type->fields);
        if (index >= 64 || (l->seen >> index & 1) != 0)
            return bad(w->base, f->at, "a singular message occurs twice");
        l->seen |= UINT64_C(1) << index;
    }
    if (w->depth == DEPTH_MAX)
        return err_set(ERR_LIMIT, "byte %zu: messages are nested deeper than %d",
                       (size_t)(f->at - w->base), DEPTH_MAX);
    w->levels[w->depth++] = (Level){.type = d->descriptor, .end = f->at + f->len};
    w->at = f->at;
    return ERR_OK;
}

static Err check_field(Walk *w, const ProtoField *f) {
    const ProtobufCFieldDescriptor *d =
        protobuf_c_message_descriptor_get_field(w->levels[w->depth - 1].type, f->number);
    if (d == NULL) return ERR_OK;  // a field of a newer schema, ignored
    ProtoWireType want = wire_of(d->type);
    if (f->type != want) {
        bool packed = f->type == PROTO_BYTES && d->label == PROTOBUF_C_LABEL_REPEATED;
        if (packed) return check_packed(w, f, want);
        return err_set(ERR_PARSE, "byte %zu: field '%s' has wire type %d, must be %d",
                       (size_t)(f->at - w->base), d->name, (int)f->type, (int)want);
    }
    if (d->type == PROTOBUF_C_TYPE_MESSAGE) return enter(w, d, f);
    bool prose = strcmp(d->name, "doc_string") == 0;
    if (d->type == PROTOBUF_C_TYPE_STRING && !prose && !is_text(f))
        return err_set(ERR_PARSE, "byte %zu: field '%s' is not UTF-8 text",
                       (size_t)(f->at - w->base), d->name);
    return ERR_OK;
}

Err onnx_wire_check(const ProtobufCMessageDescriptor *type, const void *bytes, size_t n,
                    size_t *fields) {
    if (n == 0) bytes = "";  // bytes may be NULL then
    Walk w = {.base = bytes, .at = bytes, .depth = 1};
    w.levels[0] = (Level){.type = type, .end = w.at + n};
    while (w.depth > 0) {
        const Level *l = &w.levels[w.depth - 1];
        if (w.at == l->end) {
            w.depth--;
            continue;
        }
        ProtoField f;
        TRY(onnx_wire_next(w.base, &w.at, l->end, &f));
        if (++w.fields > FIELDS_MAX)
            return err_set(ERR_LIMIT, "the file has more than %d fields", FIELDS_MAX);
        TRY(check_field(&w, &f));
    }
    *fields = w.fields;
    return ERR_OK;
}
