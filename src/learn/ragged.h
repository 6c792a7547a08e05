// Ragged: sequences of different lengths as one matrix without gaps, so that a step of all is one
// product.
//
// Sequences are ranked by length, the longest first. The rows of step t stand together, in that
// order: those of the next step belong to the first ranks, for shorter ones have ended.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct Ragged {
    uint32_t  n_seqs;   // of any length, 0 too
    uint32_t  n_steps;  // of the longest
    uint32_t  n_rows;   // of all
    uint32_t *start;    // [n_steps + 1] the first row of each step; room for max_steps + 1
    uint32_t *rank;     // [n_seqs] by the caller's number of a sequence
    uint32_t *len;      // [n_seqs] by rank
} Ragged;

// Fills r, whose three arrays are the caller's. Equal lengths keep their order.
void ragged_make(Ragged *r, const uint32_t *len, uint32_t n_seqs);

static inline uint32_t ragged_alive(const Ragged *r, uint32_t step) {  // sequences longer than step
    return r->start[step + 1] - r->start[step];
}

static inline size_t ragged_row(const Ragged *r, uint32_t seq, uint32_t step) {
    return (size_t)r->start[step] + r->rank[seq];
}

// Sequence seq, [len][cols] one row after the other, into its rows of m [n_rows][ld], and back.
void ragged_put(const Ragged *r, uint32_t seq, const float *from, size_t cols, float *m, size_t ld);
void ragged_get(const Ragged *r, uint32_t seq, float *to, size_t cols, const float *m, size_t ld);
