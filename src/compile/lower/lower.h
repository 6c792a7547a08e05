// Lower: turns graph nodes into IR layers (one function per operator family) and fuses the layers.
#pragma once

#include "compile/ir.h"
#include "model/attr.h"

// Lowers the graph for vectors of `lanes` floats. Everything lives in the arena; the shaped graph
// must outlive it.
MUST_USE Err lower_graph(const ShapedGraph *s, uint32_t lanes, bool shape_only, Arena *arena,
                         Ir *out);

// Adds layers that compute all outputs of the node; false: adds none, and the node becomes a
// reference layer.
typedef bool LowerFn(Ir *ir, const Node *n);

#define X(op, family) LowerFn lower_##family;
#include "compile/lower/lower.def"
#undef X

uint32_t      lower_in(const Ir *ir, const Node *n, uint32_t i);    // value; IR_NONE: omitted
const Tensor *lower_type(const Ir *ir, const Node *n, uint32_t i);  // of input i; NULL: omitted
uint32_t      lower_out(Ir *ir, const Node *n, uint32_t i);         // adds it; IR_NONE: omitted
// Adds a layer with n_in operands that computes output i of the node. in[0] is the node's first
// input, the others IR_NONE. The spec is copied; NULL: none.
IrLayer *lower_add(Ir *ir, const Node *n, uint32_t i, IrKind kind, uint32_t n_in, const void *spec,
                   size_t bytes);

bool         lower_is_float(const Ir *ir, const Node *n, uint32_t i);  // input i is float32
bool         lower_single_output(const Node *n);  // outputs after the first are omitted
const float *lower_scalar(const Ir *ir, const Node *n, uint32_t i);  // constant float, or NULL

// The sizes of a convolution; false: unsupported by fast kernels.
struct ConvShape;
bool lower_conv_shape(const Node *n, const Tensor *x, const Tensor *w, struct ConvShape *out);

// lower_quant.c: scale and zero point of one element each, constant, for bytes of type t. zero may
// be NULL. False: unsupported.
struct ByteScale;
bool lower_byte_scale(const Tensor *scale, const Tensor *zero, DType t, struct ByteScale *out);

// The shape as [outer][n][inner] if the dimensions marked in `along` are adjacent.
bool lower_collapse(const Tensor *t, const bool *along, size_t *outer, size_t *n, size_t *inner);

uint32_t lower_reshaped(Ir *ir, const Node *n, uint32_t value, Tensor type);  // adds a view

// Fusion passes, which keep topological order. fuse_norms: fuse_norm.c, fuse_attention:
// fuse_attention.c, fuse_bytes and fuse_integer_casts: fuse_bytes.c, others: fuse.c.

void fuse_elementwise(Ir *ir);    // element-wise layers into each other and into epilogues
void fuse_norms(Ir *ir);          // layer normalization written out in elementary operators
void fuse_attention(Ir *ir);      // attention written out; must precede fuse_elementwise
void fuse_concats(Ir *ir);        // growing concatenations share their common prefix
void fuse_integer_casts(Ir *ir);  // 32-bit sums cast to float; fuse_bytes.c
void fuse_bytes(Ir *ir);          // layers between bytes: quantised networks; fuse_bytes.c
void fuse_residuals(Ir *ir);      // sums of bytes into byte convolutions; fuse_residuals.c
void fuse_channel_scale(Ir *ir);  // per-channel scale and shift into weights and bias

// The element-wise layer that computes the value by the single step `op`; or NULL.
const IrLayer *fuse_one_step(const Ir *ir, uint32_t value, ElementwiseOp op);
