#include "model/onnx_tensor.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "model/onnx_external.h"
#include "onnx.pb-c.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "raw_data is little-endian");

static const size_t dense_max = (size_t)1 << 28;

OnnxStore onnx_store(Arena *a, const char *dir) {
    OnnxStore s = {.arena = a, .dir = dir, .dense_left = dense_max};
    map_init(&s.files, a);
    return s;
}

DType onnx_dtype(int32_t number) {
    return number >= DT_F32 && number <= DT_BF16 ? (DType)number : DT_NONE;
}

static Err read_type(const Onnx__TensorProto *p, Tensor *out, size_t *bytes) {
    *out = (Tensor){.dtype = onnx_dtype(p->data_type), .rank = (int32_t)p->n_dims};
    if (out->dtype == DT_NONE)
        return err_set(ERR_UNSUPPORTED, "element type %d is not supported", p->data_type);
    if (p->n_dims > TENSOR_MAX_RANK)
        return err_set(ERR_UNSUPPORTED, "rank %zu is above %d", p->n_dims, TENSOR_MAX_RANK);
    for (size_t i = 0; i < p->n_dims; i++) out->dims[i] = p->dims[i];
    if (p->segment != NULL) return err_set(ERR_UNSUPPORTED, "segments are not supported");
    return tensor_measure(out, bytes);
}

static void *room(OnnxStore *s, size_t bytes) {
    return arena_try(s->arena, 1, bytes, TENSOR_ALIGN);
}

static Err no_room(size_t bytes) { return err_set(ERR_LIMIT, "no room for its %zu bytes", bytes); }

static void normalise_bool(const Tensor *t) {
    uint8_t *at = t->data;
    int64_t  n = tensor_count(t);
    for (int64_t i = 0; t->dtype == DT_BOOL && i < n; i++) at[i] = at[i] != 0;
}

static Err from_raw(const Onnx__TensorProto *p, Tensor *out, size_t bytes) {
    if (out->dtype == DT_STR) return err_set(ERR_INVALID, "strings cannot be raw");
    if (p->raw_data.len != bytes)
        return err_set(ERR_INVALID, "its shape needs %zu bytes, raw_data has %zu", bytes,
                       p->raw_data.len);
    out->data = p->raw_data.data;
    return ERR_OK;
}

static Err wrong_count(int64_t want, size_t have) {
    return err_set(ERR_INVALID, "its shape needs %" PRId64 " numbers, the file has %zu", want,
                   have);
}

// What int32_data may hold for a narrow type. Half floats travel as their bits.
static bool fits(DType t, int32_t v) {
    switch (t) {
    case DT_U8: return v >= 0 && v <= UINT8_MAX;
    case DT_I8: return v >= INT8_MIN && v <= INT8_MAX;
    case DT_I16: return v >= INT16_MIN && v <= INT16_MAX;
    case DT_U16: return v >= 0 && v <= UINT16_MAX;
    default: return v >= INT16_MIN && v <= UINT16_MAX;
    }
}

static Err from_int32(OnnxStore *s, const Onnx__TensorProto *p, Tensor *out, size_t bytes) {
    out->data = p->int32_data;
    if (out->dtype == DT_I32) return ERR_OK;
    out->data = room(s, bytes);
    if (out->data == NULL) return no_room(bytes);
    uint8_t  *narrow = out->data;
    uint16_t *wide = out->data;
    for (size_t i = 0; i < p->n_int32_data; i++) {
        int32_t v = p->int32_data[i];
        if (out->dtype == DT_BOOL) {
            narrow[i] = v != 0;
            continue;
        }
        if (!fits(out->dtype, v))
            return err_set(ERR_INVALID, "element %zu is %d, which does not fit %s", i, v,
                           dtype_name(out->dtype));
        if (dtype_size(out->dtype) == 1)
            narrow[i] = (uint8_t)v;
        else
            wide[i] = (uint16_t)v;
    }
    return ERR_OK;
}

static Err from_uint64(OnnxStore *s, const Onnx__TensorProto *p, Tensor *out, size_t bytes) {
    out->data = p->uint64_data;
    if (out->dtype == DT_U64) return ERR_OK;
    uint32_t *at = out->data = room(s, bytes);
    if (at == NULL) return no_room(bytes);
    for (size_t i = 0; i < p->n_uint64_data; i++) {
        if (p->uint64_data[i] > UINT32_MAX)
            return err_set(ERR_INVALID, "element %zu does not fit uint32", i);
        at[i] = (uint32_t)p->uint64_data[i];
    }
    return ERR_OK;
}

static Err from_strings(OnnxStore *s, const Onnx__TensorProto *p, Tensor *out, size_t bytes) {
    Str *at = out->data = room(s, bytes);
    if (at == NULL) return no_room(bytes);
    for (size_t i = 0; i < p->n_string_data; i++) {
        const ProtobufCBinaryData *b = &p->string_data[i];
        at[i] = b->len > 0 ? (Str){(const char *)b->data, b->len} : (Str){"", 0};
    }
    return ERR_OK;
}

// The one typed field that may hold a type's numbers, and how many it has per element.
static size_t typed_count(const Onnx__TensorProto *p, DType t, int64_t *each) {
    *each = t == DT_C64 || t == DT_C128 ? 2 : 1;
    switch (t) {
    case DT_F32:
    case DT_C64: return p->n_float_data;
    case DT_F64:
    case DT_C128: return p->n_double_data;
    case DT_I64: return p->n_int64_data;
    case DT_U32:
    case DT_U64: return p->n_uint64_data;
    case DT_STR: return p->n_string_data;
    default: return p->n_int32_data;
    }
}

static Err from_typed(OnnxStore *s, const Onnx__TensorProto *p, Tensor *out, size_t bytes) {
    switch (out->dtype) {
    case DT_F32:
    case DT_C64: out->data = p->float_data; return ERR_OK;
    case DT_F64:
    case DT_C128: out->data = p->double_data; return ERR_OK;
    case DT_I64: out->data = p->int64_data; return ERR_OK;
    case DT_U32:
    case DT_U64: return from_uint64(s, p, out, bytes);
    case DT_STR: return from_strings(s, p, out, bytes);
    default: return from_int32(s, p, out, bytes);
    }
}

static size_t typed_total(const Onnx__TensorProto *p) {
    return p->n_float_data + p->n_double_data + p->n_int64_data + p->n_uint64_data +
           p->n_int32_data + p->n_string_data;
}

static Err from_inline(OnnxStore *s, const Onnx__TensorProto *p, Tensor *out, size_t bytes) {
    if (p->raw_data.len > 0 && typed_total(p) > 0)
        return err_set(ERR_INVALID, "it has both raw and typed numbers");
    if (p->has_raw_data && typed_total(p) == 0) return from_raw(p, out, bytes);
    int64_t each = 1, want = tensor_count(out);
    size_t  have = typed_count(p, out->dtype, &each);
    if (have != typed_total(p))
        return err_set(ERR_INVALID, "its numbers are in a field of another type");
    if (have != (size_t)(want * each)) return wrong_count(want * each, have);
    return from_typed(s, p, out, bytes);
}

static Err read_numbers(OnnxStore *s, const Onnx__TensorProto *p, Tensor *out) {
    size_t bytes = 0;
    TRY(read_type(p, out, &bytes));
    if (p->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        TRY(onnx_external_read(s, p, out, bytes));
    else
        TRY(from_inline(s, p, out, bytes));
    if (out->data == NULL) out->data = room(s, 0);  // no elements, yet a tensor with data
    normalise_bool(out);
    return ERR_OK;
}

Err onnx_tensor(OnnxStore *s, const Onnx__TensorProto *p, Tensor *out) {
    Err e = read_numbers(s, p, out);
    return e == ERR_OK ? e : err_add(e, "tensor '%s'", p->name != NULL ? p->name : "");
}
