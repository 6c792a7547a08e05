// Tensors of an ONNX file, dense and sparse, and declared types of values.
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "model/onnx/onnx_int.h"
#include "onnx.pb-c.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "raw_data is little-endian");

static const size_t dense_max = (size_t)1 << 28;

OnnxStore onnx_store(Arena *a, const OnnxPlace *place) {
    OnnxStore s = {.arena = a, .place = place, .dense_left = dense_max};
    string_map_init(&s.files, a);
    return s;
}

static DType dtype_of(int32_t number) {
    return number >= DT_F32 && number <= DT_BF16 ? (DType)number : DT_NONE;
}

static Err read_type(const Onnx__TensorProto *p, Tensor *out, size_t *bytes) {
    *out = (Tensor){.dtype = dtype_of(p->data_type), .rank = (int32_t)p->n_dims};
    if (out->dtype == DT_NONE)
        return err_set(ERR_UNSUPPORTED, "element type %d is not supported", p->data_type);
    if (p->n_dims > TENSOR_MAX_RANK)
        return err_set(ERR_UNSUPPORTED, "rank %zu is above %d", p->n_dims, TENSOR_MAX_RANK);
    for (size_t i = 0; i < p->n_dims; i++) out->dims[i] = p->dims[i];
    if (p->segment != NULL) return err_set(ERR_UNSUPPORTED, "segments are not supported");
    return tensor_measure(out, bytes);
}

static void *alloc(OnnxStore *s, size_t bytes) {
    return arena_try(s->arena, 1, bytes, TENSOR_ALIGN);
}

static Err no_memory(size_t bytes) {
    return err_set(ERR_LIMIT, "out of memory for its %zu bytes", bytes);
}

static void normalise_bool(const Tensor *t) {
    uint8_t *at = t->data;
    int64_t  n = tensor_count(t);
    for (int64_t i = 0; t->dtype == DT_BOOL && i < n; i++) at[i] = at[i] != 0;
}

static Err from_raw(const Onnx__TensorProto *p, Tensor *out, size_t bytes) {
    if (out->dtype == DT_STR) return err_set(ERR_INVALID, "strings cannot be in raw_data");
    if (p->raw_data.len != bytes)
        return err_set(ERR_INVALID, "its shape needs %zu bytes, raw_data has %zu", bytes,
                       p->raw_data.len);
    out->data = p->raw_data.data;
    return ERR_OK;
}

static Err wrong_count(int64_t want, size_t have) {
    return err_set(ERR_INVALID, "its shape needs %" PRId64 " elements, the file has %zu", want,
                   have);
}

// The range of int32_data for a narrow type. 16-bit floats are stored as their bits.
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
    out->data = alloc(s, bytes);
    if (out->data == NULL) return no_memory(bytes);
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
    uint32_t *at = out->data = alloc(s, bytes);
    if (at == NULL) return no_memory(bytes);
    for (size_t i = 0; i < p->n_uint64_data; i++) {
        if (p->uint64_data[i] > UINT32_MAX)
            return err_set(ERR_INVALID, "element %zu does not fit uint32", i);
        at[i] = (uint32_t)p->uint64_data[i];
    }
    return ERR_OK;
}

static Err from_strings(OnnxStore *s, const Onnx__TensorProto *p, Tensor *out, size_t bytes) {
    Str *at = out->data = alloc(s, bytes);
    if (at == NULL) return no_memory(bytes);
    for (size_t i = 0; i < p->n_string_data; i++) {
        const ProtobufCBinaryData *b = &p->string_data[i];
        at[i] = b->len > 0 ? (Str){(const char *)b->data, b->len} : (Str){"", 0};
    }
    return ERR_OK;
}

// The length of the typed field of t, and its entries per element.
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
        return err_set(ERR_INVALID, "it has both raw_data and typed data");
    if (p->has_raw_data && typed_total(p) == 0) return from_raw(p, out, bytes);
    int64_t each = 1, want = tensor_count(out);
    size_t  have = typed_count(p, out->dtype, &each);
    if (have != typed_total(p))
        return err_set(ERR_INVALID, "its data is in a field of another type");
    if (have != (size_t)(want * each)) return wrong_count(want * each, have);
    return from_typed(s, p, out, bytes);
}

static Err read_data(OnnxStore *s, const Onnx__TensorProto *p, Tensor *out) {
    size_t bytes = 0;
    TRY(read_type(p, out, &bytes));
    if (p->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        TRY(onnx_external_read(s, p, out, bytes));
    else
        TRY(from_inline(s, p, out, bytes));
    if (out->data == NULL) out->data = alloc(s, 0);  // no elements, but data is not NULL
    normalise_bool(out);
    return ERR_OK;
}

Err onnx_read_tensor(OnnxStore *s, const Onnx__TensorProto *p, Tensor *out) {
    Err e = read_data(s, p, out);
    return e == ERR_OK ? e : err_add(e, "tensor '%s'", p->name != NULL ? p->name : "");
}

static Err dense_type(OnnxStore *s, const Onnx__SparseTensorProto *p, DType t, Tensor *out,
                      size_t *bytes) {
    if (p->n_dims > TENSOR_MAX_RANK)
        return err_set(ERR_UNSUPPORTED, "rank %zu is above %d", p->n_dims, TENSOR_MAX_RANK);
    *out = tensor_of(t, (int32_t)p->n_dims, p->dims, NULL);
    TRY(tensor_measure(out, bytes));
    if (*bytes > s->dense_left)
        return err_set(ERR_LIMIT, "would be %zu bytes as a dense tensor, which exceeds the limit",
                       *bytes);
    s->dense_left -= *bytes;
    out->data = alloc(s, *bytes);
    return out->data != NULL ? ERR_OK : no_memory(*bytes);
}

// The position of value i: indices hold one linear index per value, or one row of coordinates.
static Err position_of(const Tensor *dense, const Tensor *indices, int64_t i, int64_t *at) {
    const int64_t *row = (const int64_t *)indices->data;
    int64_t        linear = 0;
    if (indices->rank == 1) linear = row[i];
    for (int32_t d = 0; indices->rank == 2 && d < dense->rank; d++) {
        int64_t x = row[i * dense->rank + d];
        if (x < 0 || x >= dense->dims[d])
            return err_set(ERR_INVALID, "index %" PRId64 " is outside of dimension %d", x, d);
        linear = linear * dense->dims[d] + x;
    }
    if (linear < 0 || linear >= tensor_count(dense))
        return err_set(ERR_INVALID, "index %" PRId64 " is outside of the tensor", linear);
    *at = linear;
    return ERR_OK;
}

static Err check_parts(const Tensor *values, const Tensor *indices, size_t rank) {
    if (values->rank != 1) return err_set(ERR_INVALID, "its values are not a list");
    bool linear = indices->rank == 1, rows = indices->rank == 2;
    if (indices->dtype != DT_I64 || (!linear && !rows) || indices->dims[0] != values->dims[0] ||
        (rows && (rank == 0 || (uint64_t)indices->dims[1] != rank)))
        return err_set(ERR_INVALID, "its indices do not match its values and shape");
    return ERR_OK;
}

static void clear_strings(const Tensor *t) {
    Str    *at = t->data;
    int64_t n = tensor_count(t);
    for (int64_t i = 0; t->dtype == DT_STR && i < n; i++) at[i] = (Str){"", 0};
}

static Err scatter(const Tensor *values, const Tensor *indices, Tensor *out) {
    size_t      width = dtype_size(out->dtype);
    const char *from = values->data;
    for (int64_t i = 0, at = 0; i < values->dims[0]; i++) {
        TRY(position_of(out, indices, i, &at));
        memcpy((char *)out->data + (size_t)at * width, from + (size_t)i * width, width);
    }
    return ERR_OK;
}

static Err make_dense(OnnxStore *s, const Onnx__SparseTensorProto *p, Tensor *out) {
    Tensor values, indices;
    size_t bytes = 0;
    TRY(onnx_read_tensor(s, p->values, &values));
    TRY(onnx_read_tensor(s, p->indices, &indices));
    TRY(check_parts(&values, &indices, p->n_dims));
    TRY(dense_type(s, p, values.dtype, out, &bytes));
    clear_strings(out);
    return scatter(&values, &indices, out);
}

Err onnx_read_sparse(OnnxStore *s, const Onnx__SparseTensorProto *p, Tensor *out) {
    if (p->values == NULL || p->indices == NULL)
        return err_set(ERR_INVALID, "a sparse tensor lacks its values or indices");
    Err e = make_dense(s, p, out);
    return e == ERR_OK
               ? e
               : err_add(e, "sparse tensor '%s'", p->values->name != NULL ? p->values->name : "");
}

static Err read_dims(Arena *a, const Onnx__TensorShapeProto *p, Value *v) {
    if (p->n_dim > TENSOR_MAX_RANK)
        return err_set(ERR_UNSUPPORTED, "rank %zu is above %d", p->n_dim, TENSOR_MAX_RANK);
    v->type.rank = (int32_t)p->n_dim;
    for (size_t i = 0; i < p->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *d = p->dim[i];
        v->type.dims[i] = DIM_UNKNOWN;
        if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
            v->type.dims[i] = d->dim_value < 0 ? DIM_UNKNOWN : d->dim_value;
        if (d->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM) continue;
        if (d->dim_param == NULL || d->dim_param[0] == '\0') continue;
        if (v->symbols == NULL) v->symbols = arena_new(a, const char *, p->n_dim);
        v->symbols[i] = d->dim_param;
    }
    return ERR_OK;
}

static Err read_tensor(Arena *a, const Onnx__TypeProto__Tensor *p, Value *v) {
    v->type.dtype = dtype_of(p->elem_type);
    if (v->type.dtype == DT_NONE && p->elem_type != 0)
        return err_set(ERR_UNSUPPORTED, "element type %d is not supported", p->elem_type);
    return p->shape != NULL ? read_dims(a, p->shape, v) : ERR_OK;
}

// A sequence or optional; onnx_wire_check bounds how deep element types nest.
static Err read_nested(Arena *a, DType dtype, const Onnx__TypeProto *elem, Value *v) {
    int64_t open = DIM_UNKNOWN;
    v->type = tensor_of(dtype, 1, &open, NULL);
    if (elem == NULL) return ERR_OK;
    Value inner = {0};
    TRY(onnx_read_type(a, elem, &inner));
    Tensor *kept = arena_new(a, Tensor, 1);
    *kept = inner.type;
    kept->data = (void *)inner.elem;
    v->elem = kept;
    return ERR_OK;
}

static Err read_value_type(Arena *a, const Onnx__TypeProto *p, Value *v) {
    switch ((int)p->value_case) {
    case ONNX__TYPE_PROTO__VALUE__NOT_SET: return ERR_OK;
    case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE: return read_tensor(a, p->tensor_type, v);
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
        return read_nested(a, DT_SEQ, p->sequence_type->elem_type, v);
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
        return read_nested(a, DT_OPT, p->optional_type->elem_type, v);
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE:
        return err_set(ERR_UNSUPPORTED, "maps are not supported");
    default: return err_set(ERR_UNSUPPORTED, "sparse values are not supported");
    }
}

Err onnx_read_type(Arena *a, const Onnx__TypeProto *p, Value *v) {
    Value now = *v;
    now.type = (Tensor){.rank = RANK_UNKNOWN};
    now.symbols = NULL;
    now.elem = NULL;
    TRY(read_value_type(a, p, &now));
    *v = now;
    return ERR_OK;
}
