// Reference convolutions over any number of spatial dimensions (plain, transposed, deformable,
// col2im), and the sliding window they share with pooling.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/tensor.h"

enum { REF_WINDOW_MAX = TENSOR_MAX_RANK - 2 };

// In each dimension, tap k of output o reads input o * stride + k * dilation - pad.
typedef struct RefWindow {
    int32_t rank;
    int64_t in[REF_WINDOW_MAX], out[REF_WINDOW_MAX], kernel[REF_WINDOW_MAX];
    int64_t stride[REF_WINDOW_MAX], dilation[REF_WINDOW_MAX];
    int64_t pad[REF_WINDOW_MAX], pad_end[REF_WINDOW_MAX];
} RefWindow;

typedef struct RefSpan {
    int64_t from, to;  // [from, to); empty if from >= to
} RefSpan;

// Advances `at` to the next index in row-major order; false after the last.
bool ref_window_next(int32_t rank, const int64_t *dims, int64_t *at);

// Splits a linear index into one index per dimension.
void ref_window_split(int32_t rank, const int64_t *dims, int64_t linear, int64_t *at);

// Taps of dimension d that read inputs [low, high) for output o.
RefSpan ref_window_taps(const RefWindow *w, int32_t d, int64_t o, int64_t low, int64_t high);

// x [N, C, in...], w [M, C/group, kernel...], bias [M] or NULL, y [N, M, out...].
typedef struct RefConv {
    RefWindow     window;
    int64_t       group;
    double        x_zero;  // zero point of x; padding stays 0
    const Tensor *w_zero;  // zero point of w: scalar or per output channel; may be NULL
} RefConv;

MUST_USE Err ref_conv(const RefConv *p, const Tensor *x, const Tensor *w, const Tensor *bias,
                      Tensor *y, Arena *scratch);

// x [N, C, in...], w [C, M/group, kernel...], y [N, M, out...]. The window is that of the
// forward convolution from y to x: its `in` is y, its `out` is x.
MUST_USE Err ref_conv_transpose(const RefConv *p, const Tensor *x, const Tensor *w,
                                const Tensor *bias, Tensor *y, Arena *scratch);

// Deformable convolution: taps are shifted by offset and weighted by mask (may be NULL).
typedef struct RefConvDeform {
    RefConv       conv;
    int64_t       offset_group;
    const Tensor *offset, *mask;  // [N, groups * taps * rank, out...], [N, groups * taps, out...]
} RefConvDeform;

MUST_USE Err ref_conv_deform(const RefConvDeform *p, const Tensor *x, const Tensor *w,
                             const Tensor *bias, Tensor *y, Arena *scratch);

// col2im: adds patches x [N, C * taps, out...] back to their window positions in y [N, C, in...].
MUST_USE Err ref_col2im(const RefWindow *w, const Tensor *x, Tensor *y, Arena *scratch);
