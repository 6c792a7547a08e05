#include <string.h>

#include "base/coroutine.h"
#include "net/exchange.h"
#include "serve/grpc/infer_proto_int.h"

// Encodes ModelInferResponse: field numbers of it and of its outputs
enum { ANSWER_MODEL = 1, ANSWER_VERSION, ANSWER_ID, ANSWER_PARAMETERS, ANSWER_OUTPUTS, ANSWER_RAW };
enum { OUTPUT_NAME = 1, OUTPUT_TYPE, OUTPUT_SHAPE };
enum { PARAMETER_BOOL = 1, PARAMETER_TEXT = 3, PARAMETER_DOUBLE = 4 };
enum { TEXT_NS = 10 };        // estimated time of an element
enum { BORROW_FROM = 2048 };  // bytes; shorter data is copied, since each piece has a cost

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

static void put_output(ResponsePieces *s, const TensorSpec *spec, const Tensor *t) {
    size_t output = wire_begin(&s->out, ANSWER_OUTPUTS);
    wire_put_text(&s->out, OUTPUT_NAME, spec->name);
    wire_put_text(&s->out, OUTPUT_TYPE, infer_type_name(t->dtype));
    wire_put_packed(&s->out, OUTPUT_SHAPE, t->dims, (size_t)t->rank);
    wire_end(&s->out, output);
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
    if (n->is_flag) {  // set even if it is false
        wire_put_tag(&s->out, PARAMETER_BOOL, WIRE_VARINT);
        wire_put_varint(&s->out, n->number != 0);
    } else if (n->text != NULL) {
        wire_put_tag(&s->out, PARAMETER_TEXT, WIRE_BYTES);
        wire_put_varint(&s->out, strlen(n->text));
        wire_put(&s->out, n->text, strlen(n->text));
    } else {
        wire_put_double(&s->out, PARAMETER_DOUBLE, n->number);
    }
    wire_end(&s->out, value);
    wire_end(&s->out, entry);
}

static Err check_types(const InferResponse *r) {
    for (uint32_t i = 0; i < r->n; i++)
        if (infer_type_name(r->tensors[i].dtype) == NULL)
            return err_set(ERR_UNSUPPORTED, "output '%s' is %s, which the protocol cannot carry",
                           r->specs[i].name, dtype_name(r->tensors[i].dtype));
    return ERR_OK;
}

Err infer_proto_encode(const InferResponse *r, size_t most, Arena *a, struct iovec *pieces,
                       uint32_t *n_pieces) {
    TRY(check_types(r));
    ResponsePieces s = {.out = wire_writer(a, most), .most = most, .pieces = pieces};
    wire_put_text(&s.out, ANSWER_MODEL, r->model);
    wire_put_text(&s.out, ANSWER_VERSION, r->version);
    wire_put_str(&s.out, ANSWER_ID, r->id);
    for (uint32_t i = 0; i < r->n_parameters; i++) put_parameter(&s, &r->parameters[i]);
    for (uint32_t i = 0; i < r->n; i++) put_output(&s, &r->specs[i], &r->tensors[i]);
    for (uint32_t i = 0; i < r->n; i++) put_raw(&s, &r->tensors[i]);
    close_block(&s);
    if (s.out.full) return err_set(ERR_LIMIT, "response exceeds %zu bytes", most);
    *n_pieces = s.n;
    return ERR_OK;
}
