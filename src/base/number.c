#include "base/number.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/half.h"

// Types whose elements are plain C numbers: id, C type, smallest and largest value.
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

double number_f64(const Tensor *t, int64_t i) {
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

int64_t number_i64(const Tensor *t, int64_t i) {
    if (t->dtype == DT_U64) {
        uint64_t v = ((const uint64_t *)t->data)[i];
        return v > INT64_MAX ? INT64_MAX : (int64_t)v;
    }
    return t->dtype == DT_I64 ? ((const int64_t *)t->data)[i] : saturate(number_f64(t, i));
}

void number_set(Tensor *t, int64_t i, double v) {
    switch (t->dtype) {
// The limits as doubles may round up past the type, hence >= before the cast.
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

uint64_t number_key(const Tensor *t, int64_t i) {
    if (t->dtype == DT_U64) return ((const uint64_t *)t->data)[i];
    if (dtype_is_float(t->dtype)) return float_key(number_f64(t, i));
    return (uint64_t)number_i64(t, i) ^ top_bit;
}

bool number_is_zero(const Tensor *t, int64_t i) { return number_f64(t, i) == 0; }
