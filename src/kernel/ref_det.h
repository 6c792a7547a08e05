// Det: determinants of square matrices; the slow, obvious truth.
#pragma once

#include "base/tensor.h"

// The last two dimensions of x are the matrices. room holds one as double.
void ref_det(const Tensor *x, Tensor *y, double *room);
