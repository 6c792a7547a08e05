// Signal: sizes of windows, Fourier transforms and filter banks, read and checked in one place.
#pragma once

#include "model/infer.h"

// DFT: n points of a dimension that has `have`; bins of them come out.
typedef struct SignalDft {
    int32_t axis;
    int64_t n, bins;
    bool    inverse;
} SignalDft;
MUST_USE Err signal_dft(const OpCall *c, Tensor *out, SignalDft *d);

// STFT: frames of n samples, step apart.
typedef struct SignalStft {
    int64_t n, step, frames, bins;
} SignalStft;
MUST_USE Err signal_stft(const OpCall *c, Tensor *out, SignalStft *s);

// MelWeightMatrix: edges in hertz.
typedef struct SignalMel {
    int64_t bands, points, rate;
    double  low, high;
} SignalMel;
MUST_USE Err signal_mel(const OpCall *c, Tensor *out, SignalMel *m);
