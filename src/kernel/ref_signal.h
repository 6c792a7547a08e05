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
