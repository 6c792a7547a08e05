// SlidingWindow: the sliding window of a convolution or pool, read from its attributes and checked.
#pragma once

#include "model/graph.h"

enum { WINDOW_MAX = TENSOR_MAX_RANK - 2 };

// Every number is bounded, so that products of two of them and sums of those cannot overflow.
typedef struct SlidingWindow SlidingWindow;

struct SlidingWindow {
    int32_t rank;  // spatial dimensions
    int64_t in[WINDOW_MAX], out[WINDOW_MAX], kernel[WINDOW_MAX];
    int64_t stride[WINDOW_MAX], dilation[WINDOW_MAX];
    int64_t pad[WINDOW_MAX], pad_end[WINDOW_MAX];
};

// Over x [N, C, in...]. kernel: the spatial size of the weights, or NULL when kernel_shape gives
// it.
MUST_USE Err sliding_window_read(const Node *n, const Tensor *x, const int64_t *kernel,
                                 SlidingWindow *w);

// Of a transposed convolution: the window from its output (in) back to x (out).
MUST_USE Err sliding_window_read_transposed(const Node *n, const Tensor *x, const int64_t *kernel,
                                            SlidingWindow *w);

// Of MaxUnpool: in is the smallest output whose windows cover x (out).
MUST_USE Err sliding_window_read_unpool(const Node *n, const Tensor *x, SlidingWindow *w);

// Of Col2Im: over an image whose patches, [N, C * kernel, positions], are x. image and block have
// data. channels: C.
MUST_USE Err sliding_window_read_col2im(const Node *n, const Tensor *x, const Tensor *image,
                                        const Tensor *block, SlidingWindow *w, int64_t *channels);

void sliding_window_whole(const Tensor  *x,
                          SlidingWindow *w);  // everything behind N and C, as one dimension
