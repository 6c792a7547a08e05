// Move: what the operators that move elements ask for, read from attributes and inputs in one
// place.
//
// Each function fills the shape of the output and, beside it, what the run needs to know. Where
// that depends on numbers not known yet, out->rank becomes RANK_UNKNOWN and the rest is not set.
#pragma once

#include "model/infer.h"

enum { MOVE_LIST = 2 * TENSOR_MAX_RANK };

// A short list of integers that older operator sets give as attribute and newer ones as input.
typedef struct MoveList {
    int64_t  v[MOVE_LIST];
    uint32_t n;
    bool     given;  // by attribute or input
    bool     known;  // not given counts as known
} MoveList;

MUST_USE Err move_list(const OpCall *c, uint32_t input, const char *attr, MoveList *l);

// One integer from an input of one element; not given counts as known, *v stays as it was.
MUST_USE Err move_int(const OpCall *c, uint32_t input, int64_t *v, bool *known);

// The list as a shape: no size below 0, not too many of them.
MUST_USE Err move_dims(const MoveList *l, Tensor *out);

bool move_known(const Tensor *t);  // its numbers are there, or it has none
Err  move_unknown(Tensor *out);    // ERR_OK, but the shape must wait for numbers

// The axes in l, made non-negative; the same axis twice is refused. None given: all, in order.
MUST_USE Err move_axes(const MoveList *l, int32_t rank, int32_t *axes, uint32_t *n);

MUST_USE Err move_rank(int64_t rank);  // fails beyond TENSOR_MAX_RANK

// Transpose: output dimension i is input dimension perm[i].
MUST_USE Err move_transpose(const OpCall *c, Tensor *out, int32_t *perm);

// Slice: output index i reads start + i * step. A step that is never taken is 1.
typedef struct MoveSlice {
    int64_t start[TENSOR_MAX_RANK], step[TENSOR_MAX_RANK];
} MoveSlice;
MUST_USE Err move_slice(const OpCall *c, Tensor *out, MoveSlice *s);

// Concat and Split: only the axis is not in the shapes.
MUST_USE Err move_concat(const OpCall *c, Tensor *out, int32_t *axis);
MUST_USE Err move_split(const OpCall *c, Tensor *out, int32_t *axis);

// Joins the shape of t to *out, which grows along axis; *out starts as the first shape.
MUST_USE Err move_join(const Tensor *t, int32_t axis, Tensor *out);

// Pad and CenterCropPad: drop[i] elements go from the front, then begin[i] are added there.
typedef struct MovePad {
    int64_t begin[TENSOR_MAX_RANK], drop[TENSOR_MAX_RANK];
    int64_t kept[TENSOR_MAX_RANK];  // elements of the input that stay
} MovePad;
MUST_USE Err move_pad(const OpCall *c, Tensor *out, MovePad *p);
MUST_USE Err move_crop(const OpCall *c, Tensor *out, MovePad *p);

// Shape: the output lists the input's sizes from *first on.
MUST_USE Err move_shape(const OpCall *c, Tensor *out, int32_t *first);

// OneHot: the output is outer x depth x inner, the indices are outer x inner.
typedef struct MoveOneHot {
    int64_t outer, depth, inner;
} MoveOneHot;
MUST_USE Err move_one_hot(const OpCall *c, Tensor *out, MoveOneHot *h);

// Sequences: a position in [-n, end), made non-negative; *at stays as it was when not given.
MUST_USE Err move_position(const OpCall *c, uint32_t input, int64_t n, int64_t end, int64_t *at);

// SplitToSequence: pieces of the input along axis, each of size `each` but perhaps the last one, or
// of the sizes in the input `sizes`.
typedef struct MovePieces {
    int64_t       n, each;
    const Tensor *sizes;  // NULL: all are alike
    int32_t       axis;
    bool          drop_axis;
} MovePieces;
MUST_USE Err move_pieces(const OpCall *c, Tensor *out, MovePieces *p);

// ConcatFromSequence: element i as it goes into the output, with the new axis if there is one.
MUST_USE Err move_stack(const OpCall *c, Tensor *out, int32_t *axis);
Tensor       move_stacked(const OpCall *c, int64_t i, int32_t axis);

// The element type an attribute names; fails unless it is in the set of dtype_bit()s.
MUST_USE Err move_dtype(const Node *n, const char *attr, DType otherwise, uint64_t types,
                        DType *out);
