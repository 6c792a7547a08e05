// Softmax: shares of a whole along chosen dimensions, and their kin; the slow, obvious truth.
#pragma once

#include "base/tensor.h"

typedef enum RefSoftmax { REF_SOFTMAX, REF_LOG_SOFTMAX, REF_HARDMAX } RefSoftmax;

// Along neighbouring dimensions. row has room for the elements along them as double.
void ref_softmax(RefSoftmax f, const bool along[TENSOR_MAX_RANK], const Tensor *x, Tensor *y,
                 void *row);
