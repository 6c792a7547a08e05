// Ragged: a packed batch of sequences of different lengths: one matrix without padding, so that a
// step of all sequences is one matrix product.
//
// Sequences are ranked by descending length. The rows of a step are adjacent, in order of rank; the
// next step has rows for the first ranks only, as shorter sequences have ended.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct Ragged {
    uint32_t  n_seqs;   // including empty ones
    uint32_t  n_steps;  // length of the longest
    uint32_t  n_rows;   // of all sequences
    uint32_t *start;    // [n_steps + 1] first row of each step; allocated for the longest
    uint32_t *rank;     // [n_seqs] rank of each sequence of the caller
    uint32_t *len;      // [n_seqs] by rank
} Ragged;

// Fills r; the caller allocates its three arrays. Equal lengths keep their order.
void ragged_make(Ragged *r, const uint32_t *len, uint32_t n_seqs);

static inline uint32_t ragged_alive(const Ragged *r, uint32_t step) {  // sequences longer than step
    return r->start[step + 1] - r->start[step];
}

static inline size_t ragged_row(const Ragged *r, uint32_t seq, uint32_t step) {
    return (size_t)r->start[step] + r->rank[seq];
}

// Copies sequence seq, [len][cols], to its rows of m [n_rows][ld].
void ragged_put(const Ragged *r, uint32_t seq, const float *from, size_t cols, float *m, size_t ld);
