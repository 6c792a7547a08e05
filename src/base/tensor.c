#include "base/tensor.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/fp.h"

typedef struct DTypeRow {
    const char *name, *numpy;
    size_t      bytes;
} DTypeRow;

static const DTypeRow rows[DT_COUNT] = {
#define X(id, number, size, text, npy) [number] = {text, npy, size},
#include "base/dtype.def"
#undef X
};

static const DTypeRow *row(DType t) {
    return (unsigned)t < DT_COUNT && rows[t].name != NULL ? &rows[t] : NULL;
}

const char *dtype_name(DType t) { return row(t) != NULL ? row(t)->name : "unknown"; }
const char *dtype_numpy(DType t) { return row(t) != NULL ? row(t)->numpy : NULL; }
size_t      dtype_size(DType t) { return row(t) != NULL ? row(t)->bytes : 0; }

DType dtype_from_numpy(const char *descr, size_t len) {
    for (int t = 0; t < DT_COUNT; t++)
        if (rows[t].numpy != NULL && strlen(rows[t].numpy) == len &&
            memcmp(rows[t].numpy, descr, len) == 0)
            return (DType)t;
    return DT_NONE;
}

bool dtype_is_float(DType t) { return t == DT_F32 || t == DT_F64 || t == DT_F16 || t == DT_BF16; }

bool dtype_is_int(DType t) {
    return t == DT_U8 || t == DT_I8 || t == DT_U16 || t == DT_I16 || t == DT_I32 || t == DT_I64 ||
           t == DT_U32 || t == DT_U64;
}

bool dtype_is_number(DType t) { return dtype_is_float(t) || dtype_is_int(t); }

Tensor tensor_of(DType t, int32_t rank, const int64_t *dims, void *data) {
    CHECK(rank <= TENSOR_MAX_RANK);
    Tensor out = {.dtype = t, .rank = rank, .data = data};
    for (int32_t i = 0; i < rank; i++) out.dims[i] = dims[i];
    return out;
}

bool tensor_known(const Tensor *t) {
    if (t->dtype == DT_NONE || t->rank < 0) return false;
    for (int32_t i = 0; i < t->rank; i++)
        if (t->dims[i] < 0) return false;
    return true;
}

int64_t tensor_count(const Tensor *t) {
    int64_t n = 1;
    for (int32_t i = 0; i < t->rank; i++) n *= t->dims[i];
    return n;
}

bool tensor_same_shape(const Tensor *a, const Tensor *b) {
    if (a->rank != b->rank) return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return false;
    return true;
}

bool tensor_equal(const Tensor *a, const Tensor *b) {
    if (a->dtype != b->dtype || !tensor_same_shape(a, b)) return false;
    if (a->data == NULL || b->data == NULL) return a->data == b->data;
    int64_t n = tensor_count(a);
    if (a->dtype == DT_STR) {
        const Str *x = a->data, *y = b->data;
        for (int64_t i = 0; i < n; i++)
            if (x[i].len != y[i].len || (x[i].len > 0 && memcmp(x[i].at, y[i].at, x[i].len) != 0))
                return false;
        return true;
    }
    if (a->dtype == DT_SEQ || a->dtype == DT_OPT) {
        const Tensor *x = a->data, *y = b->data;
        for (int64_t i = 0; i < n; i++)
            if (!tensor_equal(&x[i], &y[i])) return false;
        return true;
    }
    return memcmp(a->data, b->data, (size_t)n * dtype_size(a->dtype)) == 0;
}

void tensor_shape_text(const Tensor *t, char *out, size_t size) {
    if (t->rank < 0) {
        (void)snprintf(out, size, "?");
        return;
    }
    if (t->rank == 0) (void)snprintf(out, size, "scalar");
    size_t used = 0;
    for (int32_t i = 0; i < t->rank && used < size; i++) {
        const char *sep = i > 0 ? "x" : "";
        int         n = t->dims[i] < 0 ? snprintf(out + used, size - used, "%s?", sep)
                                       : snprintf(out + used, size - used, "%s%" PRId64, sep, t->dims[i]);
        if (n < 0) return;
        used += (size_t)n;
    }
}

Err tensor_measure(const Tensor *t, size_t *bytes) {
    if (t->rank < 0 || t->rank > TENSOR_MAX_RANK || dtype_size(t->dtype) == 0)
        return err_set(ERR_INVALID, "tensor type or rank is unknown");
    const int64_t limit = INT64_C(1) << 47;
    int64_t       n = (int64_t)dtype_size(t->dtype);
    bool          empty = false;
    for (int32_t i = 0; i < t->rank; i++) {
        if (t->dims[i] < 0) return err_set(ERR_INVALID, "a tensor dimension is unknown");
        if (t->dims[i] == 0) empty = true;
        if (t->dims[i] > limit || (t->dims[i] > 0 && n > limit / t->dims[i]))
            return err_set(ERR_LIMIT, "tensor exceeds 2^47 bytes");
        if (t->dims[i] > 0) n *= t->dims[i];
    }
    *bytes = empty ? 0 : (size_t)n;
    return ERR_OK;
}

Err tensor_alloc(Tensor *t, Arena *a) {
    size_t bytes = 0;
    TRY(tensor_measure(t, &bytes));
    void *data = arena_try(a, 1, bytes, TENSOR_ALIGN);
    if (data == NULL) return err_set(ERR_LIMIT, "no memory for a tensor of %zu bytes", bytes);
    t->data = data;
    return ERR_OK;
}

// Integer types: id, C type, minimum, maximum.
#define INTS                                                                                       \
    I(U8, uint8_t, 0, UINT8_MAX)                                                                   \
    I(I8, int8_t, INT8_MIN, INT8_MAX)                                                              \
    I(U16, uint16_t, 0, UINT16_MAX)                                                                \
    I(I16, int16_t, INT16_MIN, INT16_MAX)                                                          \
    I(U32, uint32_t, 0, UINT32_MAX)                                                                \
    I(I32, int32_t, INT32_MIN, INT32_MAX)                                                          \
    I(U64, uint64_t, 0, UINT64_MAX)                                                                \
    I(I64, int64_t, INT64_MIN, INT64_MAX)

static const uint64_t top_bit = UINT64_C(1) << 63;

double tensor_get_f64(const Tensor *t, int64_t i) {
    switch (t->dtype) {
#define I(id, T, lo, hi)                                                                           \
    case DT_##id: return (double)((const T *)t->data)[i];
        INTS;
#undef I
    case DT_BOOL: return ((const uint8_t *)t->data)[i] != 0;
    case DT_F32: return ((const float *)t->data)[i];
    case DT_F64: return ((const double *)t->data)[i];
    case DT_F16: return half_to_f32(((const uint16_t *)t->data)[i]);
    case DT_BF16: return bf16_to_f32(((const uint16_t *)t->data)[i]);
    default: check_fail("a numeric type", __FILE__, __LINE__);
    }
}

static int64_t saturate(double v) {
    if (isnan(v)) return 0;
    if (v >= 0x1p63) return INT64_MAX;
    return v <= -0x1p63 ? INT64_MIN : (int64_t)v;
}

int64_t tensor_get_i64(const Tensor *t, int64_t i) {
    if (t->dtype == DT_U64) {
        uint64_t v = ((const uint64_t *)t->data)[i];
        return v > INT64_MAX ? INT64_MAX : (int64_t)v;
    }
    return t->dtype == DT_I64 ? ((const int64_t *)t->data)[i] : saturate(tensor_get_f64(t, i));
}

void tensor_set(Tensor *t, int64_t i, double v) {
    switch (t->dtype) {
// A limit may round up when converted to double, hence >= before the cast.
#define I(id, T, lo, hi)                                                                           \
    case DT_##id:                                                                                  \
        ((T *)t->data)[i] = isnan(v)            ? (T)0                                             \
                            : v >= (double)(hi) ? (T)(hi)                                          \
                            : v <= (double)(lo) ? (T)(lo)                                          \
                                                : (T)v;                                            \
        return;
        INTS;
#undef I
    case DT_BOOL: ((uint8_t *)t->data)[i] = v != 0; return;
    case DT_F32: ((float *)t->data)[i] = (float)v; return;
    case DT_F64: ((double *)t->data)[i] = v; return;
    case DT_F16: ((uint16_t *)t->data)[i] = half_from_f32((float)v); return;
    case DT_BF16: ((uint16_t *)t->data)[i] = bf16_from_f32((float)v); return;
    default: check_fail("a numeric type", __FILE__, __LINE__);
    }
}

static uint64_t float_key(double v) {
    uint64_t bits;
    if (isnan(v)) return UINT64_MAX;
    v += 0.0;  // -0 becomes 0
    memcpy(&bits, &v, sizeof bits);
    return (bits & top_bit) != 0 ? ~bits : bits | top_bit;
}

uint64_t tensor_sort_key(const Tensor *t, int64_t i) {
    if (t->dtype == DT_U64) return ((const uint64_t *)t->data)[i];
    if (dtype_is_float(t->dtype)) return float_key(tensor_get_f64(t, i));
    return (uint64_t)tensor_get_i64(t, i) ^ top_bit;
}

bool tensor_is_zero(const Tensor *t, int64_t i) { return tensor_get_f64(t, i) == 0; }
