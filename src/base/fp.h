// Half: 16-bit floats, IEEE binary16 and bfloat16, to and from float with round-to-nearest-even.
#pragma once

#include <stdint.h>

float    half_to_f32(uint16_t h);
uint16_t half_from_f32(float f);
float    bf16_to_f32(uint16_t b);
uint16_t bf16_from_f32(float f);

// Fpu: how this thread treats numbers too small to be normal; arithmetic on them is slow.

typedef uint64_t FpuState;

FpuState fpu_flush_denormals(void);  // from now on they count as 0; returns how it was
void     fpu_restore(FpuState old);
