// Infer params: parameters of operators that inference computes beside the output shapes. Inference
// and the runtime binding in compile/ both read them here.
//
// A function with an `out` fills the output's shape too. Where that depends on data that is NULL,
// out->rank becomes RANK_UNKNOWN and the parameters are not set.
#pragma once

#include "model/infer/infer.h"

// Element-wise operators and reductions, in infer_elementwise.c and infer_reduce.c.

// The second operand in a shape that broadcasts by NumPy's rule. Before operator set 7 an attribute
// said where its dimensions lie; the slope of an old PRelu lies along the channels.
MUST_USE Err infer_second_operand(const OpCall *c, Tensor *b);

// The axes of a reduction, from an attribute or, in newer operator sets, an input. *known is false
// if that input has no data.
MUST_USE Err infer_reduce_axes(const OpCall *c, bool along[TENSOR_MAX_RANK], bool *known);

// The axes of Softmax, LogSoftmax, Hardmax: one, or before operator set 13 all from it on.
MUST_USE Err infer_softmax_axes(const OpCall *c, bool along[TENSOR_MAX_RANK]);

// The axes of MeanVarianceNormalization and LpNormalization.
MUST_USE Err infer_norm_axes(const OpCall *c, bool along[TENSOR_MAX_RANK]);

bool   infer_batch_norm_trains(const Node *n);  // BatchNormalization in training mode
Tensor infer_channels(const Tensor *x,
                      bool          spatial);  // x as N x C x rest; not spatial: N x C*rest x 1

// Data movement, in infer_reshape.c, infer_slice.c, infer_generate.c and infer_sequence.c.

// Transpose: output dimension i is input dimension perm[i].
MUST_USE Err infer_transpose_perm(const OpCall *c, Tensor *out, int32_t *perm);

// Slice: output index i reads start + i * step; step is 1 in dimensions of at most one element.
typedef struct SliceParams {
    int64_t start[TENSOR_MAX_RANK], step[TENSOR_MAX_RANK];
} SliceParams;
MUST_USE Err infer_slice_params(const OpCall *c, Tensor *out, SliceParams *s);

// Concat: adds the size of t along axis to *out; fails if the other dimensions or the types differ.
MUST_USE Err infer_concat_dim(const Tensor *t, int32_t axis, Tensor *out);

MUST_USE Err infer_split_axis(const OpCall *c, Tensor *out, int32_t *axis);

// Pad and CenterCropPad: drop[i] elements are removed at the front, then begin[i] are added there.
typedef struct PadParams {
    int64_t begin[TENSOR_MAX_RANK], drop[TENSOR_MAX_RANK];
    int64_t kept[TENSOR_MAX_RANK];  // elements of the input that remain
} PadParams;
MUST_USE Err infer_pad_params(const OpCall *c, Tensor *out, PadParams *p);
MUST_USE Err infer_crop_params(const OpCall *c, Tensor *out, PadParams *p);

// Shape: the output lists the input's dimensions from *first on.
MUST_USE Err infer_shape_start(const OpCall *c, Tensor *out, int32_t *first);

// OneHot: the output is outer x depth x inner, the indices are outer x inner.
typedef struct OneHotParams {
    int64_t outer, depth, inner;
} OneHotParams;
MUST_USE Err infer_one_hot_params(const OpCall *c, Tensor *out, OneHotParams *h);

// Sequences: a position in [-n, end), made non-negative; *at stays if the input is absent.
MUST_USE Err infer_sequence_position(const OpCall *c, uint32_t input, int64_t n, int64_t end,
                                     int64_t *at);

// SplitToSequence: n pieces along axis, of size `each` (the last may be smaller) or of sizes[n].
typedef struct SplitToSequenceParams {
    int64_t       n, each;
    const Tensor *sizes;  // NULL: equal pieces
    int32_t       axis;
    bool          drop_axis;
} SplitToSequenceParams;
MUST_USE Err infer_split_to_sequence_params(const OpCall *c, Tensor *out, SplitToSequenceParams *p);

// ConcatFromSequence: the axis, and element i in the shape it has in the output, with its new axis.
MUST_USE Err infer_concat_from_sequence_axis(const OpCall *c, Tensor *out, int32_t *axis);
Tensor       infer_concat_from_sequence_element(const OpCall *c, int64_t i, int32_t axis);

// TfIdfVectorizer: the pool of n-grams, grouped by length; counts, indexes and pool agree.
typedef struct TfIdfParams {
    int64_t        shortest, longest, skips;  // n-gram lengths; elements skipped between parts
    const int64_t *counts;                    // [n_counts] where each length begins in the pool
    const int64_t *indexes;                   // [n_indexes] output column of each n-gram
    const int64_t *ints;                      // [n_pool], or
    const Str     *texts;                     // [n_pool]
    const float   *weights;                   // [n_indexes], or NULL
    int64_t        n_counts, n_indexes, n_pool, n_weights, width;
    bool           clip;  // counts above 1 become 1
} TfIdfParams;
MUST_USE Err infer_tfidf_params(const OpCall *c, Tensor *out, TfIdfParams *g);

// Signals, in infer_signal.c.

// DFT over n points of axis, padded or cut to n; `bins` of them are output.
typedef struct DftParams {
    int32_t axis;
    int64_t n, bins;
    bool    inverse;
} DftParams;
MUST_USE Err infer_dft_params(const OpCall *c, Tensor *out, DftParams *d);

// STFT: frames of n samples, `step` samples apart.
typedef struct StftParams {
    int64_t n, step, frames, bins;
} StftParams;
MUST_USE Err infer_stft_params(const OpCall *c, Tensor *out, StftParams *s);

// MelWeightMatrix: band edges in hertz.
typedef struct MelParams {
    int64_t bands, points, rate;
    double  low, high;
} MelParams;
MUST_USE Err infer_mel_params(const OpCall *c, Tensor *out, MelParams *m);

// com.microsoft's fused operators, in infer_fused.c.

typedef enum FusedFn {
    FUSED_NONE,
    FUSED_RELU,
    FUSED_TANH,
    FUSED_SIGMOID,
    FUSED_LEAKY_RELU,  // a: slope
    FUSED_HARD_SIGMOID,
    FUSED_CLIP,  // a, b: bounds
} FusedFn;

// The activation that FusedConv and FusedGemm end with.
typedef struct FusedActivation {
    FusedFn fn;
    float   a, b;
} FusedActivation;
MUST_USE Err fused_activation_read(const Node *n, FusedActivation *out);
