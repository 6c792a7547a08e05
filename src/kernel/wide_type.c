#include "kernel/wide_type.h"

#include <string.h>

#include "base/err.h"
#include "base/fp.h"
#include "base/work_stop.h"

WideType wide_type_of(DType t) {
    switch (t) {
    case DT_F32:
    case DT_F16:
    case DT_BF16: return WIDE_F32;
    case DT_F64: return WIDE_F64;
    case DT_I8:
    case DT_I16:
    case DT_I32:
    case DT_I64: return WIDE_I64;
    default: CHECK(t == DT_BOOL || dtype_is_int(t)); return WIDE_U64;
    }
}

WideType wide_sum_type_of(DType t) { return dtype_is_float(t) ? WIDE_F64 : wide_type_of(t); }

bool wide_is_native(WideType w, DType t) {
    static const DType same[] = {
        [WIDE_F32] = DT_F32, [WIDE_F64] = DT_F64, [WIDE_I64] = DT_I64, [WIDE_U64] = DT_U64};
    return same[w] == t;
}

// id, C type, smallest, largest, first double above the largest
#define INTS(X)                                                                                    \
    X(I8, int8_t, INT8_MIN, INT8_MAX, 0x1p7)                                                       \
    X(I16, int16_t, INT16_MIN, INT16_MAX, 0x1p15)                                                  \
    X(I32, int32_t, INT32_MIN, INT32_MAX, 0x1p31)                                                  \
    X(I64, int64_t, INT64_MIN, INT64_MAX, 0x1p63)                                                  \
    X(U8, uint8_t, 0, UINT8_MAX, 0x1p8)                                                            \
    X(U16, uint16_t, 0, UINT16_MAX, 0x1p16)                                                        \
    X(U32, uint32_t, 0, UINT32_MAX, 0x1p32)                                                        \
    X(U64, uint64_t, 0, UINT64_MAX, 0x1p64)

// A case of a load: out[i] = expr for element v.
#define EACH(id, T, expr)                                                                          \
    case DT_##id: {                                                                                \
        const T *p = (const T *)t->data + at;                                                      \
        if (stride == 1) {                                                                         \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const T v = p[i];                                                                  \
                out[i] = (expr);                                                                   \
            }                                                                                      \
            break;                                                                                 \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const T v = p[i * stride];                                                             \
            out[i] = (expr);                                                                       \
        }                                                                                          \
        break;                                                                                     \
    }
#define LOAD_INT(id, T, low, high, above) EACH(id, T, (Out)v)
#define WITH_FLOATS                                                                                \
    EACH(F32, float, (Out)v)                                                                       \
    EACH(F64, double, (Out)v)                                                                      \
    EACH(F16, uint16_t, (Out)half_to_f32(v))                                                       \
    EACH(BF16, uint16_t, (Out)bf16_to_f32(v))
#define WITHOUT_FLOATS

#define LOAD(name, O, FLOATS)                                                                      \
    static void name(const Tensor *t, int64_t at, int64_t stride, int64_t n, O *out) {             \
        typedef O Out;                                                                             \
        switch (t->dtype) {                                                                        \
            INTS(LOAD_INT)                                                                         \
            EACH(BOOL, uint8_t, v != 0)                                                            \
            FLOATS                                                                                 \
        default: check_fail("a number type", __FILE__, __LINE__);                                  \
        }                                                                                          \
    }

LOAD(load_f32, float, WITH_FLOATS)
LOAD(load_f64, double, WITH_FLOATS)
LOAD(load_i64, int64_t, WITHOUT_FLOATS)
LOAD(load_u64, uint64_t, WITHOUT_FLOATS)

void wide_load(WideType w, const Tensor *t, int64_t at, int64_t stride, int64_t n, WideBlock *out) {
    switch (w) {
    case WIDE_F32: load_f32(t, at, stride, n, out->f32); break;
    case WIDE_F64: load_f64(t, at, stride, n, out->f64); break;
    case WIDE_I64: load_i64(t, at, stride, n, out->i64); break;
    case WIDE_U64: load_u64(t, at, stride, n, out->u64); break;
    }
}

#define CLAMP(id, T, low, high, above)                                                             \
    static T clamp_##id(double v) {                                                                \
        if (v >= (above)) return (high);                                                           \
        if (v > (double)(low)) return (T)v;                                                        \
        return v != v ? 0 : (low);                                                                 \
    }
INTS(CLAMP)

// Rounds to odd, so that rounding the float again to 16 bits equals rounding the double directly.
static float odd_f32(double v) {
    float    f = (float)v;
    uint32_t bits;
    if ((double)f == v || v != v || f - f != 0) return f;
    memcpy(&bits, &f, sizeof bits);
    double size = v < 0 ? -v : v, got = f < 0 ? -(double)f : (double)f;
    if (got > size) bits--;
    bits |= 1u;
    memcpy(&f, &bits, sizeof f);
    return f;
}

#define PUT(id, T, expr)                                                                           \
    case DT_##id: {                                                                                \
        T *p = (T *)t->data + at;                                                                  \
        for (int64_t i = 0; i < n; i++) p[i * stride] = (expr);                                    \
        break;                                                                                     \
    }
#define PUT_CLAMPED(id, T, low, high, above) PUT(id, T, clamp_##id((double)in[i]))
#define PUT_WRAPPED(id, T, low, high, above) PUT(id, T, (T)in[i])

#define STORE(name, I, PUT_INT, narrow)                                                            \
    static void name(const I *in, Tensor *t, int64_t at, int64_t stride, int64_t n) {              \
        switch (t->dtype) {                                                                        \
            INTS(PUT_INT)                                                                          \
            PUT(F32, float, (float)in[i])                                                          \
            PUT(F64, double, (double)in[i])                                                        \
            PUT(F16, uint16_t, half_from_f32(narrow(in[i])))                                       \
            PUT(BF16, uint16_t, bf16_from_f32(narrow(in[i])))                                      \
            PUT(BOOL, uint8_t, in[i] != 0)                                                         \
        default: check_fail("a number type", __FILE__, __LINE__);                                  \
        }                                                                                          \
    }

STORE(store_f32, float, PUT_CLAMPED, (float))
STORE(store_f64, double, PUT_CLAMPED, odd_f32)
STORE(store_i64, int64_t, PUT_WRAPPED, (float))
STORE(store_u64, uint64_t, PUT_WRAPPED, (float))

void wide_read(const Tensor *t, int64_t at, int64_t stride, int64_t n, double *out) {
    if (n <= WORK_BLOCK) {
        load_f64(t, at, stride, n, out);
        return;
    }
    for (int64_t i = 0, part; i < n && !work_stopped(); i += part) {
        part = n - i < WORK_BLOCK ? n - i : WORK_BLOCK;
        load_f64(t, at + i * stride, stride, part, out + i);
    }
}

void wide_write(Tensor *t, int64_t at, int64_t stride, int64_t n, const double *in) {
    if (n <= WORK_BLOCK) {
        store_f64(in, t, at, stride, n);
        return;
    }
    for (int64_t i = 0, part; i < n && !work_stopped(); i += part) {
        part = n - i < WORK_BLOCK ? n - i : WORK_BLOCK;
        store_f64(in + i, t, at + i * stride, stride, part);
    }
}

void wide_store(WideType w, const WideBlock *in, Tensor *t, int64_t at, int64_t stride, int64_t n) {
    switch (w) {
    case WIDE_F32: store_f32(in->f32, t, at, stride, n); break;
    case WIDE_F64: store_f64(in->f64, t, at, stride, n); break;
    case WIDE_I64: store_i64(in->i64, t, at, stride, n); break;
    case WIDE_U64: store_u64(in->u64, t, at, stride, n); break;
    }
}

const void *wide_view(WideType w, const Tensor *t, int64_t at, int64_t stride, int64_t n,
                      WideBlock *block) {
    if (stride == 1 && wide_is_native(w, t->dtype))
        return (const char *)t->data + (size_t)at * dtype_size(t->dtype);
    wide_load(w, t, at, stride, n, block);
    return block;
}
