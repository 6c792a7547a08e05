// Shape: a convolution or matrix product as seven loops, the input of the cost model.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

typedef struct ShapedGraph ShapedGraph;

typedef struct Shape {
    const char *name, *op;
    // batch n, output channels k, input channels c, filter r x s, output p x q, of one group
    int64_t n, k, c, r, s, p, q, groups, stride_h, stride_w, dilation_h, dilation_w;
    // Input map in memory, of which every row is read; at least the span of its windows.
    int64_t h, w;
} Shape;

// Convolutions and matrix products of a zoo network or an ONNX file, in network order. An open
// first dimension of a file's inputs is the batch; others must be known.
MUST_USE Err shape_list(const char *network, int64_t batch, Arena *a, Shape **out, uint32_t *n);
bool         shape_known(const char *network);  // in shape_known.def
// The same of a graph with known shapes.
MUST_USE Err shape_list_of(const ShapedGraph *g, Arena *a, Shape **out, uint32_t *n);

// Input rows (or columns) for `outs` output rows, at most `whole`.
static inline int64_t shape_span(int64_t outs, int64_t kernel, int64_t stride, int64_t dilation,
                                 int64_t whole) {
    int64_t reach = (kernel - 1) * dilation + 1;
    int64_t span = outs * stride + (reach > stride ? reach - stride : 0);
    return span < whole ? span : whole;
}

// Input rows read by all strips of `strip` output rows; rows shared by two strips count twice.
static inline int64_t shape_sweep(const Shape *s, int64_t strip) {
    if (strip >= s->p) return s->h;
    int64_t whole = shape_span(strip, s->r, s->stride_h, s->dilation_h, s->h);
    int64_t rest = s->p % strip, rows = s->p / strip * whole;
    return rest > 0 ? rows + shape_span(rest, s->r, s->stride_h, s->dilation_h, s->h) : rows;
}

// Elements of one input channel that `outs` output rows use; strides may skip some.
static inline double shape_touched(const Shape *s, int64_t outs) {
    int64_t rows = shape_span(outs, s->r, s->stride_h, s->dilation_h, s->h);
    double  used = (double)outs * (double)s->r, wide = (double)s->q * (double)s->s;
    return (used < (double)rows ? used : (double)rows) *
           (wide < (double)s->w ? wide : (double)s->w);
}

// Numbers of elements over all groups; as doubles, which cannot overflow.
static inline double shape_inputs(const Shape *s) {
    return (double)s->n * (double)s->groups * (double)s->c * (double)s->h * (double)s->w;
}

static inline double shape_weights(const Shape *s) {
    return (double)s->groups * (double)s->k * (double)s->c * (double)s->r * (double)s->s;
}

static inline double shape_outputs(const Shape *s) {
    return (double)s->n * (double)s->groups * (double)s->k * (double)s->p * (double)s->q;
}

static inline double shape_macs(const Shape *s) {
    return shape_outputs(s) * (double)s->c * (double)s->r * (double)s->s;
}

static inline bool shape_depthwise(const Shape *s) { return s->groups > 1 && s->c == 1; }
