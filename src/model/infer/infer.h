// Infer: type and shape inference, one function per operator family, and the helpers they share.
//
// Inference runs before a run, when only constants have data, and again during it. Where an
// output's shape depends on data that is NULL, its rank becomes RANK_UNKNOWN.
#pragma once

#include "model/attr.h"
#include "model/graph.h"
#include "model/op.h"

#define XD(id, name, domain, since, in_min, in_max, out_min, out_max, family)                      \
    InferFn infer_##family;
#include "model/op.def"
#undef XD

// Runs the operator's inference and checks that the outputs' sizes fit size_t; the reason of a
// failure names node and operator.
MUST_USE Err infer_node(const OpCall *c, Tensor *out);

const Tensor *infer_input(const OpCall *c, uint32_t i);    // NULL if input i is absent
MUST_USE Err  infer_present(const OpCall *c, uint32_t i);  // fails if input i is absent
Tensor        infer_like(const Tensor *t);                 // t's type and shape, without data
bool          infer_has_data(const Tensor *t);             // or has no elements
Err           infer_unknown_shape(Tensor *out);            // sets RANK_UNKNOWN, returns ERR_OK
MUST_USE Err  infer_check_rank(int64_t rank);              // fails above TENSOR_MAX_RANK

// Fails unless the type of t is in the set of dtype_bit()s; what names the input in the reason.
MUST_USE Err infer_check_type(const Tensor *t, uint64_t types, const char *what);

// A negative axis counts from the end. Fails outside [-rank, rank).
MUST_USE Err infer_axis(int64_t axis, int32_t rank, int32_t *out);

// Broadcasts *out and a to one shape by NumPy's rule, into *out; the first *out has rank 0.
MUST_USE Err infer_broadcast(const Tensor *a, Tensor *out);

// Fails unless t broadcasts to exactly the shape of `to`; what names t in the reason.
MUST_USE Err infer_check_broadcast(const Tensor *t, const Tensor *to, const char *what);

// Reads a scalar or list of int32 or int64, which must have data, into out[max].
MUST_USE Err infer_read_ints(const Tensor *t, int64_t *out, uint32_t max, uint32_t *n);

// A short list of integers that is an attribute in older operator sets and an input in newer ones.
enum { INT_LIST_MAX = 2 * TENSOR_MAX_RANK };
typedef struct IntList {
    int64_t  v[INT_LIST_MAX];
    uint32_t n;
    bool     given;  // as attribute or input
    bool     known;  // false: an input without data
} IntList;
MUST_USE Err infer_int_list(const OpCall *c, uint32_t input, const char *attr, IntList *l);

// An input of one integer. Without the input *v stays and *known is true.
MUST_USE Err infer_int_input(const OpCall *c, uint32_t input, int64_t *v, bool *known);

// The list as out's shape; fails on negative sizes and on too many.
MUST_USE Err infer_dims(const IntList *l, Tensor *out);

// The axes in l, made non-negative; all axes in order if none are given. Fails on a repeated axis.
MUST_USE Err infer_axes(const IntList *l, int32_t rank, int32_t *axes, uint32_t *n);

// The element type that an attribute names; fails unless it is in the set of dtype_bit()s.
MUST_USE Err infer_dtype_attr(const Node *n, const char *attr, DType otherwise, uint64_t types,
                              DType *out);

#define TYPES_FLOAT  (dtype_bit(DT_F16) | dtype_bit(DT_BF16) | dtype_bit(DT_F32) | dtype_bit(DT_F64))
#define TYPES_SIGNED (dtype_bit(DT_I8) | dtype_bit(DT_I16) | dtype_bit(DT_I32) | dtype_bit(DT_I64))
#define TYPES_UNSIGNED                                                                             \
    (dtype_bit(DT_U8) | dtype_bit(DT_U16) | dtype_bit(DT_U32) | dtype_bit(DT_U64))
#define TYPES_INT    (TYPES_SIGNED | TYPES_UNSIGNED)
#define TYPES_NUMBER (TYPES_FLOAT | TYPES_INT)
#define TYPES_INDEX  (dtype_bit(DT_I32) | dtype_bit(DT_I64))
#define TYPES_BYTE   (dtype_bit(DT_U8) | dtype_bit(DT_I8))
#define TYPES_TENSOR                                                                               \
    (TYPES_NUMBER | dtype_bit(DT_BOOL) | dtype_bit(DT_STR) | dtype_bit(DT_C64) | dtype_bit(DT_C128))
