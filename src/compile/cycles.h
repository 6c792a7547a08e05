// Cycles: how long the arithmetic of a version takes when every number is at hand, from the tiles
// it is made of. For machines that are not here to be measured.
#pragma once

#include "kernel/attend.h"
#include "kernel/conv_shape.h"
#include "kernel/gemm.h"

// All of the part that has most to do, of so many.
double cycles_conv(const ConvShape *s, const Isa *isa, const Version *v, uint32_t parts);
double cycles_wino(const ConvShape *s, const Isa *isa, const Version *v, uint32_t parts);
double cycles_depth(const ConvShape *s, const Isa *isa, const Version *v, uint32_t parts);
double cycles_gemm(const GemmShape *s, const Isa *isa, const Version *v, uint32_t parts);
double cycles_attend(const AttendShape *s, const Isa *isa, const Version *v, uint32_t parts);
