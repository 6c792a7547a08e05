// WideType: blocks of any number type as one of four wide types, so that a kernel is written once.
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

WideType
wide_type_of(DType t);  // F32 also for 16-bit floats, I64 for signed, U64 for unsigned and bool
WideType wide_sum_type_of(DType t);  // the same, but F64 for every float: what sums are kept in
bool     wide_is_native(WideType w, DType t);  // memory of type t already is an array of w

// n <= WIDE_BLOCK elements from element at on, stride elements apart (0 repeats one). Floats never
// load as I64 or U64.
void wide_load(WideType w, const Tensor *t, int64_t at, int64_t stride, int64_t n, WideBlock *out);

// Into any number type or bool: floats to integers cut the fraction and saturate (not-a-number is
// 0), integers to narrower ones wrap, everything but 0 is true.
void wide_store(WideType w, const WideBlock *in, Tensor *t, int64_t at, int64_t stride, int64_t n);

// Any number of elements as doubles, and back: the same rules.
void wide_read(const Tensor *t, int64_t at, int64_t stride, int64_t n, double *out);
void wide_write(Tensor *t, int64_t at, int64_t stride, int64_t n, const double *in);

// The elements in place where wide_is_native holds, otherwise loaded into block.
const void *wide_view(WideType w, const Tensor *t, int64_t at, int64_t stride, int64_t n,
                      WideBlock *block);
