// Tensor: element type, shape and borrowed row-major data; shared by models and kernels.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

// Values are ONNX's. A sequence is a rank-1 tensor of Tensor elements, an optional the same with
// zero or one element; a string tensor has Str elements.
typedef enum DType {
    DT_NONE = 0,
#define X(id, number, bytes, name, npy) DT_##id = (number),
#include "base/dtype.def"
#undef X
    DT_COUNT
} DType;

enum { TENSOR_MAX_RANK = 8, TENSOR_ALIGN = 64, RANK_UNKNOWN = -1, DIM_UNKNOWN = -1 };
enum { TENSOR_SLACK = 64 };  // bytes: kernels may read one vector past the last channel

typedef struct Str {
    const char *at;
    size_t      len;  // not '\0'-terminated
} Str;

typedef struct Tensor {
    DType   dtype;
    int32_t rank;  // RANK_UNKNOWN: shape unknown
    int64_t dims[TENSOR_MAX_RANK];
    void   *data;  // NULL: type and shape only
} Tensor;

const char            *dtype_name(DType t);   // "float32"; "unknown" for DT_NONE and invalid values
const char            *dtype_numpy(DType t);  // NULL if NumPy has no such type
DType                  dtype_from_numpy(const char *descr, size_t len);  // DT_NONE if unknown
size_t                 dtype_size(DType t);       // 0 for DT_NONE and invalid values
bool                   dtype_is_float(DType t);   // F16, BF16, F32, F64
bool                   dtype_is_int(DType t);     // signed and unsigned integers, no BOOL
bool                   dtype_is_number(DType t);  // float or int
static inline uint64_t dtype_bit(DType t) { return UINT64_C(1) << t; }  // for sets of types

Tensor  tensor_of(DType t, int32_t rank, const int64_t *dims, void *data);
bool    tensor_known(const Tensor *t);  // type, rank and every dimension are known
int64_t tensor_count(const Tensor *t);  // elements; the shape has passed tensor_measure
bool    tensor_same_shape(const Tensor *a, const Tensor *b);
bool    tensor_equal(const Tensor *a, const Tensor *b);              // type, shape and bytes (deep)
void    tensor_shape_text(const Tensor *t, char *out, size_t size);  // "1x3x224x224", "scalar"

// Bytes of data; an error if a dimension is unknown or the product exceeds 2^47.
MUST_USE Err tensor_measure(const Tensor *t, size_t *bytes);

MUST_USE Err tensor_alloc(Tensor *t, Arena *a);  // data for t: zeroed, aligned

// One element of a tensor of any numeric type or bool.
double  tensor_get_f64(const Tensor *t, int64_t i);
int64_t tensor_get_i64(const Tensor *t, int64_t i);  // truncates and saturates; NaN gives 0

void tensor_set(Tensor *t, int64_t i, double v);  // rounds to the type; integers truncate, saturate

// An unsigned key that sorts like the number: -0 equals 0, NaN comes last.
uint64_t tensor_sort_key(const Tensor *t, int64_t i);
bool     tensor_is_zero(const Tensor *t, int64_t i);
