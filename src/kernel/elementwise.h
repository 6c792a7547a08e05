// ElementwiseProgram: element-wise operators fused into one pass: a straight-line program over
// spans of floats.
//
// A program runs as a layer of its own (ElementwisePlan) or as the epilogue of a convolution or
// matrix product (Epilogue), while the output is still in L1 or L2. Any graph of element-wise
// operators compiles to one or more programs.
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

// An operand is a register (the result of an earlier step) or an argument of the program.
// Argument 0 is the tensor the program is applied to.
enum { EWISE_REGISTERS = 4, EWISE_MAX_ARGS = 8, EWISE_MAX_STEPS = 24, EWISE_ARG = 16 };

typedef struct ElementwiseStep {
    uint8_t op, to;  // to: destination register
    uint8_t a, b;    // operands: register r is r, argument i is EWISE_ARG + i; unused b is 0
    float   p, q, lo, hi;
} ElementwiseStep;

typedef struct ElementwiseProgram {
    uint32_t        n_steps, n_args;
    ElementwiseStep steps[EWISE_MAX_STEPS];  // the last step writes the program's result
} ElementwiseProgram;

// How an argument is indexed along a span of n floats.
typedef enum ElementwiseMode {
    EWISE_CONTIGUOUS,  // at[i]
    EWISE_SCALAR,      // at[0]
    EWISE_PER_LANE,    // at[i % lanes]: one float per channel of a block
} ElementwiseMode;

typedef struct ElementwiseInput {
    const float    *at;
    ElementwiseMode mode;
} ElementwiseInput;

// Vector kernel: isa->ewise_span(program, in, out, n): out[n] = program(in[0..n_args)). out may be
// in[0].at. n need not be a multiple of lanes.
const char *ewise_op_name(ElementwiseOp op);
uint32_t    ewise_op_operands(ElementwiseOp op);

// ElementwisePlan: a program over whole tensors; arguments broadcast to the result. The result is
// row-major, or blocked, which is row-major over [n][blocks][pixels][lanes]. Built once at load
// time, run any number of times.
typedef struct ElementwisePlan {
    const ElementwiseProgram *program;  // borrowed
    uint32_t rank, outer;  // loops over the first `outer` dimensions; the rest is one span
    size_t   dims[TENSOR_MAX_RANK], strides[EWISE_MAX_ARGS][TENSOR_MAX_RANK];
    size_t   rows, span, piece;  // a task is one piece of one span
    uint32_t pieces;             // per span
    uint8_t  mode[EWISE_MAX_ARGS];
} ElementwisePlan;

// Argument i is read with strides[i], in elements; stride 0 broadcasts along that dimension.
void ewise_plan_strided(ElementwisePlan *m, const ElementwiseProgram *c, const Isa *isa,
                        uint32_t rank, const int64_t *dims, int64_t (*strides)[TENSOR_MAX_RANK]);

// args[i] broadcasts to the shape of y by ONNX's rules; only shapes are read.
void ewise_plan_broadcast(ElementwisePlan *m, const ElementwiseProgram *c, const Isa *isa,
                          const Tensor *y, const Tensor *const *args);

// Layout of an argument of a blocked result.
typedef enum ElementwiseExtent {
    EWISE_PER_ELEMENT,        // [n][blocks][pixels][lanes], as the result
    EWISE_PER_IMAGE_CHANNEL,  // [n][blocks][lanes]
    EWISE_PER_CHANNEL,        // [blocks][lanes]
    EWISE_PER_PIXEL,          // [n][pixels]
    EWISE_SINGLE,             // one float
} ElementwiseExtent;

void ewise_plan_blocked(ElementwisePlan *m, const ElementwiseProgram *c, const Isa *isa, int64_t n,
                        int64_t channels, int64_t pixels, const ElementwiseExtent *args);

uint32_t ewise_plan_tasks(const ElementwisePlan *m);

// out may be any argument that does not broadcast. Needs no scratch.
void ewise_plan_run(const ElementwisePlan *m, const Isa *isa, const float *const *in, float *out,
                    Part part);

// Epilogue of a convolution or matrix product: result = program(clip(sum + bias + add, lo, hi)).
// bias, add and clip are applied in registers; the program runs over spans of stored results that
// are still in L1 or L2.
typedef struct Epilogue {
    const float              *bias;     // [output channels, padded to lanes]; NULL: none
    const float              *add;      // laid out as the output; NULL: none
    float                     lo, hi;   // -INFINITY, INFINITY: no clip
    const ElementwiseProgram *program;  // NULL: none
    // The program's arguments over the whole output; args[0] is the output itself and not read.
    // CONTIGUOUS: laid out as the output. PER_LANE: one float per output channel, padded to lanes.
    ElementwiseInput args[EWISE_MAX_ARGS];
} Epilogue;
