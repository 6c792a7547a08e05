// ElementwiseProgram: element-wise arithmetic fused into one pass: a straight-line program over
// spans of numbers.
//
// It stands alone as a layer, or behind a convolution or product as what happens to its results
// while they are still in the nearest cache. Any graph of element-wise operators becomes one.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/tensor.h"
#include "kernel/isa.h"

typedef enum ElementwiseOp {
#define X(id, operands, name) EWISE_##id,
#include "kernel/ewise_op.def"
#undef X
    EWISE_OPS
} ElementwiseOp;

// A source is a register (what an earlier step put there) or an argument of the chain. Argument 0
// is the main one: the numbers the chain is applied to.
enum { EWISE_REGISTERS = 4, EWISE_MAX_ARGS = 8, EWISE_MAX_STEPS = 24, EWISE_ARG = 16 };

typedef struct ElementwiseStep {
    uint8_t op, to;  // register that receives the result
    uint8_t a, b;    // register r: r; argument i: EWISE_ARG + i; b is 0 where it is not used
    float   p, q, lo, hi;
} ElementwiseStep;

typedef struct ElementwiseProgram {
    uint32_t        n_steps, n_args;
    ElementwiseStep steps[EWISE_MAX_STEPS];  // the last one's result is the chain's
} ElementwiseProgram;

// How an argument runs along a span of n numbers.
typedef enum ElementwiseMode {
    EWISE_CONTIGUOUS,  // at[i]
    EWISE_SCALAR,      // at[0]
    EWISE_PER_LANE,    // at[i % lanes]: one number per channel of a block
} ElementwiseMode;

typedef struct ElementwiseInput {
    const float    *at;
    ElementwiseMode mode;
} ElementwiseInput;

// out[n] = chain(in[0..n_args)). out may be in[0].at itself. n need not be a multiple of lanes.
// Vector kernel: isa->ewise_span(chain, in, out, n).
const char *ewise_op_name(ElementwiseOp op);
uint32_t    ewise_op_operands(ElementwiseOp op);

// ElementwisePlan: a chain over whole tensors, as a layer of its own; arguments broadcast to the
// result.

// The result is row-major (or blocked, which is row-major over [n][blocks][pixels][lanes]). Made
// once at load, then run as often as wanted.
typedef struct ElementwisePlan {
    const ElementwiseProgram *program;  // borrowed
    uint32_t rank, outer;  // the first `outer` dimensions are walked, the rest is one span
    size_t   dims[TENSOR_MAX_RANK], strides[EWISE_MAX_ARGS][TENSOR_MAX_RANK];
    size_t   rows, span, piece;  // a task is a piece of a span
    uint32_t pieces;             // of a span
    uint8_t  how[EWISE_MAX_ARGS];
} ElementwisePlan;

// Argument i of the chain is read with strides[i], in numbers; 0: the same along that dimension.
void ewise_plan_strided(ElementwisePlan *m, const ElementwiseProgram *c, const Isa *isa,
                        uint32_t rank, const int64_t *dims, int64_t (*strides)[TENSOR_MAX_RANK]);

// args[i] broadcasts to the shape of y as ONNX has it; only shapes are looked at.
void ewise_plan_broadcast(ElementwisePlan *m, const ElementwiseProgram *c, const Isa *isa,
                          const Tensor *y, const Tensor *const *args);

// What an argument of a blocked result holds.
typedef enum ElementwiseExtent {
    EWISE_PER_ELEMENT,        // [n][blocks][pixels][lanes], as the result
    EWISE_PER_IMAGE_CHANNEL,  // [n][blocks][lanes], a number per image and channel
    EWISE_PER_CHANNEL,        // [blocks][lanes], a number per channel
    EWISE_PER_PIXEL,          // [n][pixels], a number per image and pixel
    EWISE_SINGLE,             // one number
} ElementwiseExtent;

void ewise_plan_blocked(ElementwisePlan *m, const ElementwiseProgram *c, const Isa *isa, int64_t n,
                        int64_t channels, int64_t pixels, const ElementwiseExtent *args);

uint32_t ewise_plan_tasks(const ElementwisePlan *m);

// out may be any argument that is not broadcast. No scratch.
void ewise_plan_run(const ElementwisePlan *m, const Isa *isa, const float *const *in, float *out,
                    Part part);

// Epilogue: what happens to a heavy layer's sums before they leave the nearest cache.

// result = chain(clip(sum + bias + add, lo, hi)). The bias, add and clip happen in registers; the
// chain runs over spans of finished numbers that are still in L1 or L2.
typedef struct Epilogue {
    const float              *bias;     // [columns padded to lanes]; NULL: none
    const float              *add;      // laid out as the output; NULL: none
    float                     lo, hi;   // -INFINITY, INFINITY: no clip
    const ElementwiseProgram *program;  // NULL: none
    // The chain's arguments for the whole output ([0] is the output itself, ignored). EACH: laid
    // out as the output. LANES: one number per column, padded to lanes. ONE: a single number.
    ElementwiseInput args[EWISE_MAX_ARGS];
} Epilogue;
