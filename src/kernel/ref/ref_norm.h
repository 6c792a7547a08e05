// Reference normalisations (layer, instance, RMS, Lp, LRN), moments and softmax.
#pragma once

#include "base/tensor.h"

// Result for an element v of a set with mean m and variance s^2.
typedef enum RefNormKind {
    REF_NORM_VARIANCE,   // (v - m) / sqrt(s^2 + epsilon)
    REF_NORM_DEVIATION,  // (v - m) / (s + epsilon)
    REF_NORM_RMS,        // v / sqrt(mean of v^2 + epsilon)
    REF_NORM_L1,         // v / sum of |v|; a set of zeros stays
    REF_NORM_L2,         // v / sqrt(sum of v^2); a set of zeros stays
} RefNormKind;

typedef struct RefNorm {
    RefNormKind kind;
    bool        along[TENSOR_MAX_RANK];  // the axes of a set
    double      epsilon;
    Tensor     *mean, *inverse;  // per set: value subtracted, factor; may be NULL
} RefNorm;

void ref_norm(const RefNorm *p, const Tensor *x, Tensor *y);

// Mean and population variance of every set along the marked axes.
void ref_moments(const bool along[TENSOR_MAX_RANK], const Tensor *x, double *mean,
                 double *variance);

// y = x * mul[c] + add[c] for x [N, C, rest].
void ref_affine(const double *mul, const double *add, const Tensor *x, Tensor *y);

// Local response normalisation over `size` neighbouring channels of [N, C, rest].
typedef struct RefLrn {
    double  alpha, beta, bias;
    int64_t size;
} RefLrn;

void ref_lrn(const RefLrn *p, const Tensor *x, Tensor *y);

typedef enum RefSoftmax { REF_SOFTMAX, REF_LOG_SOFTMAX, REF_HARDMAX } RefSoftmax;

// Along adjacent axes. row has space for the elements of one set as double.
void ref_softmax(RefSoftmax f, const bool along[TENSOR_MAX_RANK], const Tensor *x, Tensor *y,
                 void *row);
