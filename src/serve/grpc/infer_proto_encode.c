#include <string.h>

#include "base/coroutine.h"
#include "net/exchange.h"
#include "serve/grpc/infer_proto_int.h"

// Encodes ModelInferResponse: field numbers of it and of its outputs
enum { ANSWER_MODEL = 1, ANSWER_VERSION, ANSWER_ID, ANSWER_PARAMETERS, ANSWER_OUTPUTS, ANSWER_RAW };
enum { OUTPUT_NAME = 1, OUTPUT_TYPE, OUTPUT_SHAPE, OUTPUT_CONTENTS = 5 };
enum { PARAMETER_TEXT = 3, PARAMETER_DOUBLE = 4 };
enum { NUMBER_NS = 3, TEXT_NS = 10 };  // estimated time of an element
enum { BORROW_FROM = 2048 };           // bytes; shorter data is copied, since each piece has a cost

typedef struct ResponsePieces {  // finished pieces, and the block being written
    WireWriter    out;
    size_t        most, total;  // total: bytes of finished pieces
    struct iovec *pieces;
    uint32_t      n;
} ResponsePieces;

static void close_block(ResponsePieces *s) {
    if (s->out.len == 0) return;
    s->pieces[s->n++] = (struct iovec){s->out.at, s->out.len};
    s->total += s->out.len;
    bool full = s->out.full;
    s->out = wire_writer(s->out.arena, s->most - s->total);
    s->out.full = full;
}

// Tensor data is sent from where it lies, unless it is short or pieces run out.
static void put_numbers(ResponsePieces *s, const void *at, size_t len) {
    if (len < BORROW_FROM || s->n + 4 > EXCHANGE_PIECES) {
        wire_put(&s->out, at, len);
        return;
    }
    close_block(s);
    if (s->out.full || len > s->most - s->total) {
        s->out.full = true;
        return;
    }
    s->pieces[s->n++] = (struct iovec){(void *)(uintptr_t)at, len};
    s->total += len;
    s->out = wire_writer(s->out.arena, s->most - s->total);
}

static uint64_t wire_value(const Tensor *t, size_t i) {
    switch (t->dtype) {
    case DT_BOOL: return ((const uint8_t *)t->data)[i] != 0;
    case DT_I8: return (uint64_t)(int64_t)((const int8_t *)t->data)[i];
    case DT_I16: return (uint64_t)(int64_t)((const int16_t *)t->data)[i];
    case DT_I32: return (uint64_t)(int64_t)((const int32_t *)t->data)[i];
    case DT_I64: return (uint64_t)((const int64_t *)t->data)[i];
    case DT_U8: return ((const uint8_t *)t->data)[i];
    case DT_U16: return ((const uint16_t *)t->data)[i];
    case DT_U32: return ((const uint32_t *)t->data)[i];
    default: return ((const uint64_t *)t->data)[i];
    }
}

static size_t ints_bytes(const Tensor *t, size_t n) {
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        bytes += wire_varint_bytes(wire_value(t, i));
        coroutine_point(1);
    }
    return bytes;
}

// Encoded size of InferTensorContents.
static size_t contents_bytes(const Tensor *t, const InferProtoContents *row, size_t n) {
    size_t bytes = 0;
    if (row->kind == WIRE_BYTES) {
        const Str *s = t->data;
        for (size_t i = 0; i < n; i++) bytes += 1 + wire_varint_bytes(s[i].len) + s[i].len;
        return bytes;
    }
    bytes = row->kind == WIRE_VARINT ? ints_bytes(t, n) : n * dtype_size(t->dtype);
    return 1 + wire_varint_bytes(bytes) + bytes;
}

static void put_strings(ResponsePieces *s, const Tensor *t, uint32_t field, size_t n) {
    const Str *str = t->data;
    for (size_t i = 0; i < n; i++) {
        wire_put_tag(&s->out, field, WIRE_BYTES);
        wire_put_varint(&s->out, str[i].len);
        wire_put(&s->out, str[i].at, str[i].len);
        coroutine_point(TEXT_NS + (uint32_t)(str[i].len / 16));
    }
}

static void put_contents(ResponsePieces *s, const Tensor *t, const InferProtoContents *row,
                         size_t n) {
    if (row->kind == WIRE_BYTES) {
        put_strings(s, t, row->field, n);
        return;
    }
    bool   ints = row->kind == WIRE_VARINT;
    size_t bytes = ints ? ints_bytes(t, n) : n * dtype_size(t->dtype);
    wire_put_tag(&s->out, row->field, WIRE_BYTES);
    wire_put_varint(&s->out, bytes);
    for (size_t i = 0; ints && i < n && !s->out.full; i++) {
        wire_put_varint(&s->out, wire_value(t, i));
        coroutine_point(NUMBER_NS);
    }
    if (!ints) put_numbers(s, t->data, bytes);
}

static void put_output(ResponsePieces *s, const TensorSpec *spec, const Tensor *t, bool raw) {
    const InferProtoContents *row = infer_proto_contents(t->dtype);
    size_t                    n = raw ? 0 : (size_t)tensor_count(t);
    size_t                    inner = n > 0 ? contents_bytes(t, row, n) : 0;
    WireWriter                head = wire_writer(s->out.arena, s->most);
    wire_put_text(&head, OUTPUT_NAME, spec->name);
    wire_put_text(&head, OUTPUT_TYPE, infer_type_name(t->dtype));
    wire_put_packed(&head, OUTPUT_SHAPE, t->dims, (size_t)t->rank);
    if (n > 0) {
        wire_put_tag(&head, OUTPUT_CONTENTS, WIRE_BYTES);
        wire_put_varint(&head, inner);
    }
    s->out.full |= head.full;
    wire_put_tag(&s->out, ANSWER_OUTPUTS, WIRE_BYTES);
    wire_put_varint(&s->out, head.len + inner);
    wire_put(&s->out, head.at, head.len);
    if (n > 0 && !s->out.full) put_contents(s, t, row, n);
}

static void put_raw_strings(ResponsePieces *s, const Tensor *t) {
    const Str *str = t->data;
    size_t     n = (size_t)tensor_count(t), bytes = 4 * n;
    for (size_t i = 0; i < n; i++) bytes += str[i].len;
    wire_put_varint(&s->out, bytes);
    for (size_t i = 0; i < n && !s->out.full; i++) {
        size_t        len = str[i].len;
        unsigned char b[4] = {(unsigned char)len, (unsigned char)(len >> 8),
                              (unsigned char)(len >> 16), (unsigned char)(len >> 24)};
        wire_put(&s->out, b, sizeof b);
        wire_put(&s->out, str[i].at, len);
        coroutine_point(TEXT_NS + (uint32_t)(len / 16));
    }
}

static void put_raw(ResponsePieces *s, const Tensor *t) {
    wire_put_tag(&s->out, ANSWER_RAW, WIRE_BYTES);
    if (t->dtype == DT_STR) {
        put_raw_strings(s, t);
        return;
    }
    size_t bytes = (size_t)tensor_count(t) * dtype_size(t->dtype);
    wire_put_varint(&s->out, bytes);
    put_numbers(s, t->data, bytes);
}

static void put_parameter(ResponsePieces *s, const InferParameter *n) {
    size_t entry = wire_begin(&s->out, ANSWER_PARAMETERS);
    wire_put_text(&s->out, 1, n->key);
    size_t value = wire_begin(&s->out, 2);
    if (n->text != NULL) {
        wire_put_tag(&s->out, PARAMETER_TEXT, WIRE_BYTES);
        wire_put_varint(&s->out, strlen(n->text));
        wire_put(&s->out, n->text, strlen(n->text));
    } else {
        wire_put_double(&s->out, PARAMETER_DOUBLE, n->number);
    }
    wire_end(&s->out, value);
    wire_end(&s->out, entry);
}

// A type without a field in InferTensorContents makes all outputs raw.
static Err settle(const InferResponse *r, bool *raw) {
    for (uint32_t i = 0; i < r->n; i++) {
        DType t = r->tensors[i].dtype;
        if (infer_type_name(t) == NULL)
            return err_set(ERR_UNSUPPORTED, "output '%s' is %s, which the protocol cannot carry",
                           r->specs[i].name, dtype_name(t));
        *raw |= infer_proto_contents(t) == NULL;
    }
    return ERR_OK;
}

Err infer_proto_encode(const InferResponse *r, bool raw, size_t most, Arena *a,
                       struct iovec *pieces, uint32_t *n_pieces) {
    TRY(settle(r, &raw));
    ResponsePieces s = {.out = wire_writer(a, most), .most = most, .pieces = pieces};
    wire_put_text(&s.out, ANSWER_MODEL, r->model);
    wire_put_text(&s.out, ANSWER_VERSION, r->version);
    wire_put_str(&s.out, ANSWER_ID, r->id);
    for (uint32_t i = 0; i < r->n_parameters; i++) put_parameter(&s, &r->parameters[i]);
    for (uint32_t i = 0; i < r->n; i++) put_output(&s, &r->specs[i], &r->tensors[i], raw);
    for (uint32_t i = 0; raw && i < r->n; i++) put_raw(&s, &r->tensors[i]);
    close_block(&s);
    if (s.out.full) return err_set(ERR_LIMIT, "response exceeds %zu bytes", most);
    *n_pieces = s.n;
    return ERR_OK;
}
