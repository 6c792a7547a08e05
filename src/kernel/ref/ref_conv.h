// Window: where the taps of a sliding window fall in its input, for convolutions and pools.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/tensor.h"

enum { REF_WINDOW_MAX = TENSOR_MAX_RANK - 2 };

// Output o and tap k meet input o * stride + k * dilation - pad, in each dimension.
typedef struct RefWindow {
    int32_t rank;
    int64_t in[REF_WINDOW_MAX], out[REF_WINDOW_MAX], kernel[REF_WINDOW_MAX];
    int64_t stride[REF_WINDOW_MAX], dilation[REF_WINDOW_MAX];
    int64_t pad[REF_WINDOW_MAX], pad_end[REF_WINDOW_MAX];
} RefWindow;

typedef struct RefSpan {
    int64_t from, to;  // [from, to), empty when from >= to
} RefSpan;

int64_t ref_window_count(int32_t rank, const int64_t *dims);  // their product

// The index after at in row-major order; false when it was the last.
bool ref_window_next(int32_t rank, const int64_t *dims, int64_t *at);

// Linear index to one index per dimension.
void ref_window_split(int32_t rank, const int64_t *dims, int64_t linear, int64_t *at);

// Outputs of dimension d in [0, out) whose tap k lies inside the input.
RefSpan ref_window_outputs(const RefWindow *w, int32_t d, int64_t tap);

// Taps of dimension d whose place for output o lies in [low, high) of the input.
RefSpan ref_window_taps(const RefWindow *w, int32_t d, int64_t o, int64_t low, int64_t high);

// Adds v[j] to where tap looks at from output at + j, in a plane of the input's size.
void ref_window_scatter(const RefWindow *w, const int64_t *tap, int64_t at, int64_t n,
                        const double *v, double *plane);

// The same window as few dimensions as possible: one when every tap is alone, unpadded, unstrided.
RefWindow ref_window_flatten(const RefWindow *w);

// Convolution: sliding products over any number of spatial dimensions; the slow, obvious truth.

// x [N, C, in...], w [M, C/group, kernel...], bias [M] or NULL, y [N, M, out...].
typedef struct RefConv {
    RefWindow     window;
    int64_t       group;
    double        x_zero;  // subtracted from every x; padding stays 0
    const Tensor *w_zero;  // subtracted from w: one number, or one per output channel; or NULL
} RefConv;

// Fills panel[c * taps + tap][j]: what output at + j of an image sees through each tap. j < n.
typedef void RefConvPatch(const void *self, const Tensor *x, int64_t image, int64_t group,
                          int64_t at, int64_t n, double *panel);

MUST_USE Err ref_conv(const RefConv *p, const Tensor *x, const Tensor *w, const Tensor *bias,
                      Tensor *y, Arena *scratch);

// The same with another way to look at x; w_zero is used, the window only for its sizes.
MUST_USE Err ref_conv_patches(const RefConv *p, RefConvPatch *patch, const void *self,
                              const Tensor *x, const Tensor *w, const Tensor *bias, Tensor *y,
                              Arena *scratch);

// x [N, C, in...], w [C, M/group, kernel...], y [N, M, out...]. The window is that of the
// convolution this one reverses: its in is our y, its out is our x.
MUST_USE Err ref_conv_transpose(const RefConv *p, const Tensor *x, const Tensor *w,
                                const Tensor *bias, Tensor *y, Arena *scratch);

// A convolution whose taps are moved by offset and weighted by mask (or NULL).
typedef struct RefConvDeform {
    RefConv       conv;
    int64_t       offset_group;
    const Tensor *offset, *mask;  // [N, groups * taps * rank, out...], [N, groups * taps, out...]
} RefConvDeform;

MUST_USE Err ref_conv_deform(const RefConvDeform *p, const Tensor *x, const Tensor *w,
                             const Tensor *bias, Tensor *y, Arena *scratch);

// x [N, C * taps, out...] of patches, added up where the window took them from: y [N, C, in...].
MUST_USE Err ref_col2im(const RefWindow *w, const Tensor *x, Tensor *y, Arena *scratch);
