// Norm: sets of elements brought to a common mean and size; the slow, obvious truth.
#pragma once

#include "base/tensor.h"

// How the elements v of a set with mean m and variance s^2 are changed.
typedef enum RefNormKind {
    REF_NORM_VARIANCE,   // (v - m) / sqrt(s^2 + epsilon)
    REF_NORM_DEVIATION,  // (v - m) / (s + epsilon)
    REF_NORM_RMS,        // v / sqrt(mean of v^2 + epsilon)
    REF_NORM_L1,         // v / sum of |v|; a set of zeros stays
    REF_NORM_L2,         // v / sqrt(sum of v^2); a set of zeros stays
} RefNormKind;

typedef struct RefNorm {
    RefNormKind kind;
    bool        along[TENSOR_MAX_RANK];  // the dimensions that make a set
    double      epsilon;
    Tensor     *mean, *inverse;  // of every set, what is subtracted and multiplied; may be NULL
} RefNorm;

void ref_norm(const RefNorm *p, const Tensor *x, Tensor *y);

// Mean and variance (of the set, not of a sample) of every set along the marked dimensions.
void ref_moments(const bool along[TENSOR_MAX_RANK], const Tensor *x, double *mean,
                 double *variance);

// x is N x C x rest; y = x * mul[c] + add[c].
void ref_affine(const double *mul, const double *add, const Tensor *x, Tensor *y);

// Local response normalisation over `size` neighbouring channels of N x C x rest.
typedef struct RefLrn {
    double  alpha, beta, bias;
    int64_t size;
} RefLrn;

void ref_lrn(const RefLrn *p, const Tensor *x, Tensor *y);

// Softmax: shares of a whole along chosen dimensions, and their kin; the slow, obvious truth.

typedef enum RefSoftmax { REF_SOFTMAX, REF_LOG_SOFTMAX, REF_HARDMAX } RefSoftmax;

// Along neighbouring dimensions. row has room for the elements along them as double.
void ref_softmax(RefSoftmax f, const bool along[TENSOR_MAX_RANK], const Tensor *x, Tensor *y,
                 void *row);
