// Move: what the operators that move elements ask for, read from attributes and inputs in one
// place.
//
// Each function fills the shape of the output and, beside it, what the run needs to know. Where
// that depends on numbers not known yet, out->rank becomes RANK_UNKNOWN and the rest is not set.
#pragma once

#include "model/graph.h"
#include "model/infer/infer.h"
#include "model/op.h"

enum { INT_LIST_MAX = 2 * TENSOR_MAX_RANK };

// A short list of integers that older operator sets give as attribute and newer ones as input.
typedef struct IntList {
    int64_t  v[INT_LIST_MAX];
    uint32_t n;
    bool     given;  // by attribute or input
    bool     known;  // not given counts as known
} IntList;

MUST_USE Err infer_int_list(const OpCall *c, uint32_t input, const char *attr, IntList *l);

// One integer from an input of one element; not given counts as known, *v stays as it was.
MUST_USE Err infer_int_input(const OpCall *c, uint32_t input, int64_t *v, bool *known);

// The list as a shape: no size below 0, not too many of them.
MUST_USE Err infer_dims(const IntList *l, Tensor *out);

bool infer_has_data(const Tensor *t);   // its numbers are there, or it has none
Err  infer_unknown_shape(Tensor *out);  // ERR_OK, but the shape must wait for numbers

// The axes in l, made non-negative; the same axis twice is refused. None given: all, in order.
MUST_USE Err infer_axes(const IntList *l, int32_t rank, int32_t *axes, uint32_t *n);

MUST_USE Err infer_check_rank(int64_t rank);  // fails beyond TENSOR_MAX_RANK

// Transpose: output dimension i is input dimension perm[i].
MUST_USE Err infer_transpose_perm(const OpCall *c, Tensor *out, int32_t *perm);

// Slice: output index i reads start + i * step. A step that is never taken is 1.
typedef struct SliceParams {
    int64_t start[TENSOR_MAX_RANK], step[TENSOR_MAX_RANK];
} SliceParams;
MUST_USE Err infer_slice_params(const OpCall *c, Tensor *out, SliceParams *s);

// Concat and Split: only the axis is not in the shapes.
MUST_USE Err infer_concat_axis(const OpCall *c, Tensor *out, int32_t *axis);
MUST_USE Err infer_split_axis(const OpCall *c, Tensor *out, int32_t *axis);

// Joins the shape of t to *out, which grows along axis; *out starts as the first shape.
MUST_USE Err infer_concat_dim(const Tensor *t, int32_t axis, Tensor *out);

// Pad and CenterCropPad: drop[i] elements go from the front, then begin[i] are added there.
typedef struct PadParams {
    int64_t begin[TENSOR_MAX_RANK], drop[TENSOR_MAX_RANK];
    int64_t kept[TENSOR_MAX_RANK];  // elements of the input that stay
} PadParams;
MUST_USE Err infer_pad_params(const OpCall *c, Tensor *out, PadParams *p);
MUST_USE Err infer_crop_params(const OpCall *c, Tensor *out, PadParams *p);

// Shape: the output lists the input's sizes from *first on.
MUST_USE Err infer_shape_start(const OpCall *c, Tensor *out, int32_t *first);

// OneHot: the output is outer x depth x inner, the indices are outer x inner.
typedef struct OneHotParams {
    int64_t outer, depth, inner;
} OneHotParams;
MUST_USE Err infer_one_hot_params(const OpCall *c, Tensor *out, OneHotParams *h);

// Sequences: a position in [-n, end), made non-negative; *at stays as it was when not given.
MUST_USE Err infer_sequence_position(const OpCall *c, uint32_t input, int64_t n, int64_t end,
                                     int64_t *at);

// SplitToSequence: pieces of the input along axis, each of size `each` but perhaps the last one, or
// of the sizes in the input `sizes`.
typedef struct SplitToSequenceParams {
    int64_t       n, each;
    const Tensor *sizes;  // NULL: all are alike
    int32_t       axis;
    bool          drop_axis;
} SplitToSequenceParams;
MUST_USE Err infer_split_to_sequence_params(const OpCall *c, Tensor *out, SplitToSequenceParams *p);

// ConcatFromSequence: element i as it goes into the output, with the new axis if there is one.
MUST_USE Err infer_concat_from_sequence_axis(const OpCall *c, Tensor *out, int32_t *axis);
Tensor       infer_concat_from_sequence_element(const OpCall *c, int64_t i, int32_t axis);

// The element type an attribute names; fails unless it is in the set of dtype_bit()s.
MUST_USE Err infer_dtype_attr(const Node *n, const char *attr, DType otherwise, uint64_t types,
                              DType *out);

// Infer_math: what the inference and the running of arithmetic both need to know of a node.

// The second operand in a shape that broadcasts by NumPy's rule. Before operator set 7 an attribute
// said where its dimensions lie; the slope of an old PRelu lies along the channels.
MUST_USE Err infer_second_operand(const OpCall *c, Tensor *b);

// What Cast and CastLike cast to.
MUST_USE Err infer_cast_to(const OpCall *c, DType *to);

// Which dimensions a reduction takes: an attribute, or an input in newer operator sets. *known is
// false when that input's numbers are not there yet.
MUST_USE Err infer_reduce_axes(const OpCall *c, bool along[TENSOR_MAX_RANK], bool *known);

// Along which dimensions Softmax and its kin share: one, or before operator set 13 all from it on.
MUST_USE Err infer_softmax_axes(const OpCall *c, bool along[TENSOR_MAX_RANK]);

// Which elements a MeanVarianceNormalization or LpNormalization takes together.
MUST_USE Err infer_norm_axes(const OpCall *c, bool along[TENSOR_MAX_RANK]);

bool   infer_batch_norm_trains(const Node *n);  // BatchNormalization computes its own statistics
Tensor infer_channels(const Tensor *x, bool spatial);  // x as N x C x rest; not spatial: rest is 1

// The n-grams of a TfIdfVectorizer, checked against each other.

typedef struct TfIdfParams {
    int64_t        shortest, longest, skips;
    const int64_t *counts,
        *indexes;            // [n_counts] where each length starts; [n_indexes] column of each
    const int64_t *ints;     // [n_pool], or
    const Str     *texts;    // [n_pool]
    const float   *weights;  // [n_indexes], or NULL
    int64_t        n_counts, n_indexes, n_pool, n_weights, width;
    bool           clip;  // counts beyond 1 are 1
} TfIdfParams;

MUST_USE Err infer_tfidf_params(const OpCall *c, Tensor *out, TfIdfParams *g);

// Signal: sizes of windows, Fourier transforms and filter banks, read and checked in one place.

// DFT: n points of a dimension that has `have`; bins of them come out.
typedef struct DftParams {
    int32_t axis;
    int64_t n, bins;
    bool    inverse;
} DftParams;
MUST_USE Err infer_dft_params(const OpCall *c, Tensor *out, DftParams *d);

// STFT: frames of n samples, step apart.
typedef struct StftParams {
    int64_t n, step, frames, bins;
} StftParams;
MUST_USE Err infer_stft_params(const OpCall *c, Tensor *out, StftParams *s);

// MelWeightMatrix: edges in hertz.
typedef struct MelParams {
    int64_t bands, points, rate;
    double  low, high;
} MelParams;
MUST_USE Err infer_mel_params(const OpCall *c, Tensor *out, MelParams *m);

// FusedActivation: the activation that com.microsoft's fused operators end with, read and checked.

typedef enum FusedFn {
    FUSED_NONE,
    FUSED_RELU,
    FUSED_TANH,
    FUSED_SIGMOID,
    FUSED_LEAKY_RELU,  // a: slope
    FUSED_HARD_SIGMOID,
    FUSED_CLIP,  // a, b: bounds
} FusedFn;

typedef struct FusedActivation {
    FusedFn fn;
    float   a, b;
} FusedActivation;

MUST_USE Err fused_activation_read(const Node *n, FusedActivation *out);
