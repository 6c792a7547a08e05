// Finish: what happens to a heavy layer's sums before they leave the nearest cache.
#pragma once

#include "kernel/chain.h"

// result = chain(clip(sum + bias + add, lo, hi)). The bias, add and clip happen in registers; the
// chain runs over spans of finished numbers that are still in L1 or L2.
typedef struct Finish {
    const float *bias;    // [columns padded to lanes]; NULL: none
    const float *add;     // laid out as the output; NULL: none
    float        lo, hi;  // -INFINITY, INFINITY: no clip
    const Chain *chain;   // NULL: none
    // The chain's arguments for the whole output ([0] is the output itself, ignored). EACH: laid
    // out as the output. LANES: one number per column, padded to lanes. ONE: a single number.
    ChainInput args[CHAIN_MAX_ARGS];
} Finish;
