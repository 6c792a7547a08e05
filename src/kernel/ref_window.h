// Window: where the taps of a sliding window fall in its input, for convolutions and pools.
#pragma once

#include <stdbool.h>
#include <stdint.h>

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
