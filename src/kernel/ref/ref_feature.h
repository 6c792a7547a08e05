// Signal: windows, the discrete Fourier transform by its definition, mel filter banks.
#pragma once

#include "base/arena.h"
#include "base/tensor.h"

// a[0] - a[1] cos(t) + a[2] cos(2t); the period is the length, or one less when symmetric.
void ref_window(const double a[3], bool periodic, Tensor *y);

// Transforms n points along a dimension of x, zeros where x ends early; bins of them are written.
typedef struct RefDft {
    int32_t axis;
    int64_t n, bins;
    bool    inverse;
} RefDft;
MUST_USE Err ref_dft(const RefDft *d, const Tensor *x, Arena *scratch, Tensor *y);

// Frames of n samples, step apart, times the window (NULL: none), transformed.
typedef struct RefStft {
    int64_t n, step, frames, bins;
} RefStft;
MUST_USE Err ref_stft(const RefStft *s, const Tensor *x, const Tensor *window, Arena *scratch,
                      Tensor *y);

typedef struct RefMel {
    int64_t points, rate;
    double  low, high;  // hertz
} RefMel;
void ref_mel(const RefMel *m, Tensor *y);  // y is zero: points / 2 + 1 x bands

// String: counting n-grams in rows of words or numbers.

// n-grams of every length from shortest to longest, with 0 to skips words left out between two.
typedef struct RefNgrams {
    int64_t        shortest, longest, skips;
    const int64_t *counts, *indexes;  // where each length starts in the pool; column of each n-gram
    const int64_t *ints;              // the pool, or
    const Str     *texts;
    const float   *weights;  // of each n-gram, or NULL
    int64_t        n_counts, n_pool;
    bool           clip;  // counts beyond 1 are 1
} RefNgrams;

void ref_ngrams(const RefNgrams *g, const Tensor *x, Tensor *y);
