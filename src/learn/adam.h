// Adam: the Adam optimiser with decoupled weight decay (AdamW).
#pragma once

#include "learn/float_vec.h"

typedef struct AdamOptions {
    float rate, beta1, beta2, epsilon;
    float decay;  // weight decay: each step subtracts rate * decay * w
} AdamOptions;

static inline AdamOptions adam_defaults(float rate) {
    return (AdamOptions){.rate = rate, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f};
}

// m and v (moments) start zeroed and are as long as w. `step` counts from 1.
void adam_step(const AdamOptions *o, uint64_t step, FloatVec w, FloatVec gradient, FloatVec m,
               FloatVec v);
