// WideType: loads blocks of any numeric type as one of four wide types, so that a reference kernel
// is written once per wide type instead of once per element type.
#pragma once

#include "base/tensor.h"

typedef enum WideType { WIDE_F32, WIDE_F64, WIDE_I64, WIDE_U64 } WideType;

enum { WIDE_BLOCK = 256 };

typedef union WideBlock {
    float    f32[WIDE_BLOCK];
    double   f64[WIDE_BLOCK];
    int64_t  i64[WIDE_BLOCK];
    uint64_t u64[WIDE_BLOCK];
} WideBlock;

// F32 for f32 and 16-bit floats, F64 for f64, I64 for signed, U64 for unsigned integers and bool.
WideType wide_type_of(DType t);
WideType wide_sum_type_of(DType t);  // accumulator type: F64 for every float, else as above
bool     wide_is_native(WideType w, DType t);  // an array of t is an array of w

// Loads n <= WIDE_BLOCK elements from element `at` on, `stride` elements apart (0 repeats one).
// Floats never load as I64 or U64.
void wide_load(WideType w, const Tensor *t, int64_t at, int64_t stride, int64_t n, WideBlock *out);

// Converts to any numeric type or bool: float to integer truncates and saturates (NaN becomes 0),
// integers narrow by wrapping, nonzero is true.
void wide_store(WideType w, const WideBlock *in, Tensor *t, int64_t at, int64_t stride, int64_t n);

// Any number of elements to and from doubles, by the same rules.
void wide_read(const Tensor *t, int64_t at, int64_t stride, int64_t n, double *out);
void wide_write(Tensor *t, int64_t at, int64_t stride, int64_t n, const double *in);

// Returns the elements in place if wide_is_native and stride is 1, else loads them into block.
const void *wide_view(WideType w, const Tensor *t, int64_t at, int64_t stride, int64_t n,
                      WideBlock *block);
