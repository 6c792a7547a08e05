// Infer: one function per operator family gives the outputs' types and shapes; helpers beside them.
#pragma once

#include "model/attr.h"
#include "model/graph.h"
#include "model/op.h"

#define XD(id, name, domain, since, in_min, in_max, out_min, out_max, family)                      \
    InferFn infer_##family;
#include "model/op.def"
#undef XD

const Tensor *infer_input(const OpCall *c, uint32_t i);  // NULL where input i is left out

// Runs the operator's inference; the reason of a failure names node and operator.
MUST_USE Err infer_node(const OpCall *c, Tensor *out);

// Axis from the outside: negative counts from the end. Fails outside [-rank, rank).
MUST_USE Err infer_axis(int64_t axis, int32_t rank, int32_t *out);

// The shape two operands broadcast to (NumPy's rule), joined into *out; starts from rank 0.
MUST_USE Err infer_broadcast(const Tensor *a, Tensor *out);

// Reads a 1-D (or scalar) int32/int64 tensor whose data is known into out[max].
MUST_USE Err infer_read_ints(const Tensor *t, int64_t *out, uint32_t max, uint32_t *n);

// Fails unless the type of t is in the set of dtype_bit()s; names the input in the reason.
MUST_USE Err infer_check_type(const Tensor *t, uint64_t types, const char *what);

#define TYPES_FLOAT  (dtype_bit(DT_F16) | dtype_bit(DT_BF16) | dtype_bit(DT_F32) | dtype_bit(DT_F64))
#define TYPES_SIGNED (dtype_bit(DT_I8) | dtype_bit(DT_I16) | dtype_bit(DT_I32) | dtype_bit(DT_I64))
#define TYPES_UNSIGNED                                                                             \
    (dtype_bit(DT_U8) | dtype_bit(DT_U16) | dtype_bit(DT_U32) | dtype_bit(DT_U64))
#define TYPES_INT    (TYPES_SIGNED | TYPES_UNSIGNED)
#define TYPES_NUMBER (TYPES_FLOAT | TYPES_INT)
#define TYPES_INDEX  (dtype_bit(DT_I32) | dtype_bit(DT_I64))
#define TYPES_TENSOR                                                                               \
    (TYPES_NUMBER | dtype_bit(DT_BOOL) | dtype_bit(DT_STR) | dtype_bit(DT_C64) | dtype_bit(DT_C128))
