// Encodes a REST inference response: JSON, then binary outputs.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/budget.h"
#include "base/coroutine.h"
#include "base/err.h"
#include "base/text.h"
#include "base/utf8.h"
#include "net/exchange.h"
#include "serve/tensor/infer_request.h"
#include "serve/tensor/float_format.h"

// Text growing at the end of an arena; nothing else may be allocated from it meanwhile.
typedef struct JsonWriter {
    Arena *a;
    char  *begin, *at, *end;
    size_t most;
} JsonWriter;

enum { STEP = 4096, NUMBER_NS = 30, TEXT_NS = 10 };

static Err no_room(const Arena *a, size_t more, size_t all) {
    const Budget *full = budget_short(a->budget, more);
    if (full == NULL || full->setting == NULL)
        return err_set(ERR_LIMIT, "out of memory for a response of %zu bytes", all);
    return err_set(ERR_LIMIT,
                   "the response needs %zu more bytes; %zu of the %zu that `%s` allows are in use",
                   more, budget_used(full), full->most, full->setting);
}

static Err room(JsonWriter *p, size_t bytes) {
    if ((size_t)(p->end - p->at) >= bytes) return ERR_OK;
    size_t used = (size_t)(p->at - p->begin), have = (size_t)(p->end - p->begin);
    size_t more = bytes + (have > STEP ? have : STEP);
    if (used > p->most)
        return err_set(ERR_LIMIT, "response exceeds %zu bytes (`response_mb`)", p->most);
    char *next = arena_try(p->a, more, 1, 1);
    if (next == NULL) return no_room(p->a, more, have + more);
    if (p->begin == NULL) p->begin = p->at = p->end = next;
    CHECK(next == p->end);
    p->end += more;
    return ERR_OK;
}

static Err put(JsonWriter *p, const char *text) {
    size_t len = strlen(text);
    TRY(room(p, len));
    memcpy(p->at, text, len);
    p->at += len;
    return ERR_OK;
}

static void put_escaped(JsonWriter *p, unsigned char c) {
    static const char hex[] = "0123456789abcdef", from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char       *known = c != 0 ? strchr(from, c) : NULL;
    if (known != NULL) {
        *p->at++ = '\\';
        *p->at++ = to[known - from];
    } else if (c < 0x20) {
        memcpy(p->at, "\\u00", 4);
        p->at[4] = hex[c >> 4];
        p->at[5] = hex[c & 15];
        p->at += 6;
    } else {
        *p->at++ = (char)c;
    }
}

static Err put_text(JsonWriter *p, Str s) {
    size_t worst = 0;
    if (__builtin_mul_overflow(s.len, (size_t)6, &worst) || worst > SIZE_MAX - 2)
        return err_set(ERR_LIMIT, "a string is too long");
    TRY(room(p, worst + 2));
    *p->at++ = '"';
    for (size_t i = 0; i < s.len; i++) {
        put_escaped(p, (unsigned char)s.at[i]);
        coroutine_point(1);
    }
    *p->at++ = '"';
    return ERR_OK;
}

static void write_unsigned(JsonWriter *p, uint64_t v) {
    char digits[24], *d = digits + sizeof digits;
    do {
        *--d = (char)('0' + v % 10);
        v /= 10;
    } while (v != 0);
    size_t n = (size_t)(digits + sizeof digits - d);
    memcpy(p->at, d, n);
    p->at += n;
}

static void write_signed(JsonWriter *p, int64_t v) {
    if (v < 0) *p->at++ = '-';
    write_unsigned(p, v < 0 ? (uint64_t)0 - (uint64_t)v : (uint64_t)v);
}

static Err put_signed(JsonWriter *p, int64_t v) {
    TRY(room(p, 24));
    write_signed(p, v);
    return ERR_OK;
}

static Err put_number(JsonWriter *p, double v) {
    if (!isfinite(v)) return put(p, "null");
    if (v == trunc(v) && fabs(v) < 0x1p53) return put_signed(p, (int64_t)v);
    TRY(room(p, FLOAT_FORMAT_ROOM));
    p->at += float_format_f64(v, p->at);
    return ERR_OK;
}

static Err not_json(const TensorSpec *spec, int64_t i, const char *what) {
    return err_set(ERR_UNSUPPORTED,
                   "output '%s' has %s at element %" PRId64
                   ", which JSON cannot represent: request it with \"binary_data\": true",
                   spec->name, what, i);
}

#define INTS                                                                                       \
    I(U8, uint8_t, write_unsigned)                                                                 \
    I(U16, uint16_t, write_unsigned)                                                               \
    I(U32, uint32_t, write_unsigned)                                                               \
    I(U64, uint64_t, write_unsigned)                                                               \
    I(I8, int8_t, write_signed)                                                                    \
    I(I16, int16_t, write_signed)                                                                  \
    I(I32, int32_t, write_signed)                                                                  \
    I(I64, int64_t, write_signed)

static Err put_element(JsonWriter *p, const TensorSpec *spec, const Tensor *t, int64_t i) {
    TRY(room(p, FLOAT_FORMAT_ROOM));
    switch (t->dtype) {
#define I(id, T, write)                                                                            \
    case DT_##id: write(p, ((const T *)t->data)[i]); return ERR_OK;
        INTS
#undef I
            case DT_BOOL : return put(p, ((const uint8_t *)t->data)[i] != 0 ? "true" : "false");
    case DT_F32: {
        float v = ((const float *)t->data)[i];
        if (!isfinite(v)) return not_json(spec, i, isnan(v) ? "not-a-number" : "infinity");
        p->at += float_format_f32(v, p->at);
        return ERR_OK;
    }
    case DT_F64: {
        double v = ((const double *)t->data)[i];
        if (!isfinite(v)) return not_json(spec, i, isnan(v) ? "not-a-number" : "infinity");
        p->at += float_format_f64(v, p->at);
        return ERR_OK;
    }
    case DT_STR: {
        Str s = ((const Str *)t->data)[i];
        if (!utf8_ok(s.at, s.len)) return not_json(spec, i, "bytes that are not UTF-8");
        return put_text(p, s);
    }
    default:
        return err_set(ERR_UNSUPPORTED,
                       "output '%s' is %s, which JSON cannot represent: request it with "
                       "\"binary_data\": true",
                       spec->name, infer_type_name(t->dtype));
    }
}

static Err put_data(JsonWriter *p, const TensorSpec *spec, const Tensor *t) {
    int64_t n = tensor_count(t);
    TRY(put(p, ",\"data\":["));
    for (int64_t i = 0; i < n; i++) {
        TRY(room(p, 1));
        if (i > 0) *p->at++ = ',';
        TRY(put_element(p, spec, t, i));
        coroutine_point(NUMBER_NS);
    }
    return put(p, "]");
}

// Size of a tensor as binary data.
static Err measure(const Tensor *t, size_t *out) {
    TRY(tensor_measure(t, out));
    if (t->dtype != DT_STR) return ERR_OK;
    *out = 0;
    for (int64_t i = 0; i < tensor_count(t); i++) {
        size_t len = ((const Str *)t->data)[i].len;
        if (len > UINT32_MAX || __builtin_add_overflow(*out, len + 4, out))
            return err_set(ERR_LIMIT, "an element of BYTES is too long");
    }
    return ERR_OK;
}

static Err put_shape(JsonWriter *p, const Tensor *t) {
    TRY(put(p, ",\"shape\":["));
    for (int32_t i = 0; i < t->rank; i++) {
        if (i > 0) TRY(put(p, ","));
        TRY(put_signed(p, t->dims[i]));
    }
    return put(p, "]");
}

static Err put_output(JsonWriter *p, const TensorSpec *spec, const Tensor *t, bool binary) {
    size_t      bytes = 0;
    const char *type = infer_type_name(t->dtype);
    if (type == NULL)
        return err_set(ERR_UNSUPPORTED, "output '%s' is %s, which the protocol does not have",
                       spec->name, dtype_name(t->dtype));
    TRY(measure(t, &bytes));
    TRY(put(p, "{\"name\":"));
    TRY(put_text(p, text_of(spec->name)));
    TRY(put(p, ",\"datatype\":\""));
    TRY(put(p, type));
    TRY(put(p, "\""));
    TRY(put_shape(p, t));
    if (binary) {
        TRY(put(p, ",\"parameters\":{\"binary_data_size\":"));
        TRY(put_signed(p, (int64_t)bytes));
        TRY(put(p, "}"));
    } else {
        TRY(put_data(p, spec, t));
    }
    return put(p, "}");
}

static Err put_parameters(JsonWriter *p, const InferResponse *r) {
    TRY(put(p, ",\"parameters\":{"));
    for (uint32_t i = 0; i < r->n_parameters; i++) {
        const InferParameter *n = &r->parameters[i];
        if (i > 0) TRY(put(p, ","));
        TRY(put_text(p, text_of(n->key)));
        TRY(put(p, ":"));
        if (n->is_flag)
            TRY(put(p, n->number != 0 ? "true" : "false"));
        else
            TRY(n->text != NULL ? put_text(p, text_of(n->text)) : put_number(p, n->number));
    }
    return put(p, "}");
}

static Err put_answer(JsonWriter *p, const InferResponse *r) {
    TRY(put(p, "{\"model_name\":"));
    TRY(put_text(p, text_of(r->model)));
    if (r->version != NULL) {
        TRY(put(p, ",\"model_version\":"));
        TRY(put_text(p, text_of(r->version)));
    }
    if (r->id.at != NULL) {
        TRY(put(p, ",\"id\":"));
        TRY(put_text(p, r->id));
    }
    if (r->n_parameters > 0) TRY(put_parameters(p, r));
    TRY(put(p, ",\"outputs\":["));
    for (uint32_t i = 0; i < r->n; i++) {
        if (i > 0) TRY(put(p, ","));
        TRY(put_output(p, &r->specs[i], &r->tensors[i], r->binary[i]));
    }
    return put(p, "]}");
}

// Elements of BYTES, each after its 4-byte length.
static Err pack(const Tensor *t, size_t bytes, Arena *a, void **out) {
    char *p = arena_try(a, bytes, 1, 1);
    if (p == NULL) return no_room(a, bytes, bytes);
    *out = p;
    for (int64_t i = 0; i < tensor_count(t); i++) {
        Str      s = ((const Str *)t->data)[i];
        uint32_t len = (uint32_t)s.len;
        memcpy(p, &len, sizeof len);
        if (s.len > 0) memcpy(p + sizeof len, s.at, s.len);
        p += sizeof len + s.len;
        coroutine_point(TEXT_NS + len / 16);
    }
    return ERR_OK;
}

static Err add_binary(const InferResponse *r, size_t most, Arena *a, struct iovec *pieces,
                      uint32_t *n_pieces) {
    size_t left = most - pieces[0].iov_len;
    for (uint32_t i = 0; i < r->n; i++) {
        const Tensor *t = &r->tensors[i];
        size_t        bytes = 0;
        if (!r->binary[i]) continue;
        TRY(measure(t, &bytes));
        if (bytes > left) return err_set(ERR_LIMIT, "response exceeds %zu bytes", most);
        left -= bytes;
        if (bytes == 0) continue;
        struct iovec *piece = &pieces[(*n_pieces)++];
        *piece = (struct iovec){t->data, bytes};
        if (t->dtype == DT_STR) TRY(pack(t, bytes, a, &piece->iov_base));
    }
    return ERR_OK;
}

Err infer_json_encode(const InferResponse *r, size_t most, Arena *a, struct iovec *pieces,
                      uint32_t *n_pieces, size_t *header) {
    JsonWriter p = {.a = a, .most = most};
    bool       any = false;
    CHECK(r->n <= INFER_TENSORS && r->n < EXCHANGE_PIECES);
    TRY(put_answer(&p, r));
    size_t len = (size_t)(p.at - p.begin);
    arena_rewind(a, a->used - (size_t)(p.end - p.at));
    if (len > most) return err_set(ERR_LIMIT, "response exceeds %zu bytes", most);
    pieces[0] = (struct iovec){p.begin, len};
    *n_pieces = 1;
    TRY(add_binary(r, most, a, pieces, n_pieces));
    for (uint32_t i = 0; i < r->n; i++) any = any || r->binary[i];
    *header = any ? len : SIZE_MAX;
    return ERR_OK;
}
