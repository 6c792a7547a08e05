// Chain: element-wise arithmetic fused into one pass: a straight-line program over spans of
// numbers.
//
// It stands alone as a layer, or behind a convolution or product as what happens to its results
// while they are still in the nearest cache. Any graph of element-wise operators becomes one.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernel/isa.h"

typedef enum ChainOp {
#define X(id, operands, name) CHAIN_##id,
#include "kernel/chain_op.def"
#undef X
    CHAIN_OPS
} ChainOp;

// A source is a register (what an earlier step put there) or an argument of the chain. Argument 0
// is the main one: the numbers the chain is applied to.
enum { CHAIN_REGISTERS = 4, CHAIN_MAX_ARGS = 8, CHAIN_MAX_STEPS = 24, CHAIN_ARG = 16 };

typedef struct ChainStep {
    uint8_t op, to;  // register that receives the result
    uint8_t a, b;    // register r: r; argument i: CHAIN_ARG + i; b is 0 where it is not used
    float   p, q, lo, hi;
} ChainStep;

typedef struct Chain {
    uint32_t  n_steps, n_args;
    ChainStep steps[CHAIN_MAX_STEPS];  // the last one's result is the chain's
} Chain;

// How an argument runs along a span of n numbers.
typedef enum ChainMode {
    CHAIN_EACH,   // at[i]
    CHAIN_ONE,    // at[0]
    CHAIN_LANES,  // at[i % lanes]: one number per channel of a block
} ChainMode;

typedef struct ChainInput {
    const float *at;
    ChainMode    mode;
} ChainInput;

// out[n] = chain(in[0..n_args)). out may be in[0].at itself. n need not be a multiple of lanes.
// Vector kernel: isa->chain_span(chain, in, out, n).
const char *chain_op_name(ChainOp op);
uint32_t    chain_op_operands(ChainOp op);
