// SlidingWindow: kernel, stride, dilation and padding of a convolution or pool, read from
// attributes and checked, with the sizes they lead to.
#pragma once

#include "model/graph.h"

enum { WINDOW_MAX = TENSOR_MAX_RANK - 2 };

// All values are bounded, so that sums of products of two of them do not overflow.
typedef struct SlidingWindow {
    int32_t rank;  // spatial dimensions
    int64_t in[WINDOW_MAX], out[WINDOW_MAX], kernel[WINDOW_MAX];
    int64_t stride[WINDOW_MAX], dilation[WINDOW_MAX];
    int64_t pad[WINDOW_MAX], pad_end[WINDOW_MAX];
} SlidingWindow;

// Over x [N, C, in...]. kernel: the spatial sizes of the weights, or NULL: kernel_shape is
// required.
MUST_USE Err sliding_window_read(const Node *n, const Tensor *x, const int64_t *kernel,
                                 SlidingWindow *w);

// Of a transposed convolution: w->in is its output, w->out its input x.
MUST_USE Err sliding_window_read_transposed(const Node *n, const Tensor *x, const int64_t *kernel,
                                            SlidingWindow *w);

// Of MaxUnpool: w->in is the smallest output, w->out its input x.
MUST_USE Err sliding_window_read_unpool(const Node *n, const Tensor *x, SlidingWindow *w);

// Of Col2Im: over the image that has x as its patches, [N, C * kernel, positions]. image and block
// must have data; *channels is C.
MUST_USE Err sliding_window_read_col2im(const Node *n, const Tensor *x, const Tensor *image,
                                        const Tensor *block, SlidingWindow *w, int64_t *channels);

// Of a global pool: one window over all spatial dimensions, as one dimension.
void sliding_window_whole(const Tensor *x, SlidingWindow *w);
