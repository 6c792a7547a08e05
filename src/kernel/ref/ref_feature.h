// Reference feature extraction: window functions, discrete Fourier transforms, mel filter banks and
// n-gram counts.
#pragma once

#include "base/arena.h"
#include "base/tensor.h"

// Window a[0] - a[1] cos(t) + a[2] cos(2t); the period is the length, or length - 1 if symmetric.
void ref_window(const double a[3], bool periodic, Tensor *y);

// n-point transform along an axis of x, zero-padded if x is shorter; writes the first `bins`.
typedef struct RefDft {
    int32_t axis;
    int64_t n, bins;
    bool    inverse;
} RefDft;
MUST_USE Err ref_dft(const RefDft *d, const Tensor *x, Arena *scratch, Tensor *y);

// Short-time transform: frames of n samples, `step` apart, times the window (NULL: none).
typedef struct RefStft {
    int64_t n, step, frames, bins;
} RefStft;
MUST_USE Err ref_stft(const RefStft *s, const Tensor *x, const Tensor *window, Arena *scratch,
                      Tensor *y);

typedef struct RefMel {
    int64_t points, rate;
    double  low, high;  // hertz
} RefMel;
void ref_mel(const RefMel *m, Tensor *y);  // y is zeroed, [points / 2 + 1, bands]

// Counts n-grams of length shortest..longest, with 0..skips tokens skipped between neighbours, in
// rows of words or integers.
typedef struct RefNgrams {
    int64_t        shortest, longest, skips;
    const int64_t *counts,
        *indexes;         // start of each length in the pool; output column of each n-gram
    const int64_t *ints;  // the pool: integers, or
    const Str     *texts;
    const float   *weights;  // per n-gram; may be NULL
    int64_t        n_counts, n_pool;
    bool           clip;  // counts are at most 1
} RefNgrams;

void ref_ngrams(const RefNgrams *g, const Tensor *x, Tensor *y);
