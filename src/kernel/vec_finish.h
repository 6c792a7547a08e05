// The chain of a Finish over a span of blocked results that are still close.
#pragma once

#include "kernel/finish.h"
#include "kernel/vec_chain.h"

// y[at, at + n) holds the columns of one block; the first of them is `column`.
VEC_INLINE void finish_span(const Finish *f, float *y, size_t at, size_t column, size_t n) {
    ChainInput in[CHAIN_MAX_ARGS] = {{y + at, CHAIN_EACH}};
    for (uint32_t i = 1; i < f->chain->n_args; i++) {
        in[i] = f->args[i];
        if (in[i].mode != CHAIN_ONE) in[i].at += in[i].mode == CHAIN_EACH ? at : column;
    }
    VEC(chain_span)(f->chain, in, y + at, n);
}
