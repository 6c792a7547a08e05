// Convolution: sliding products over any number of spatial dimensions; the slow, obvious truth.
#pragma once

#include "base/arena.h"
#include "base/tensor.h"
#include "kernel/ref_window.h"

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
