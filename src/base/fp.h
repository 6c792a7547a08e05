// Floating point: conversion of 16-bit floats (IEEE binary16 and bfloat16, round to nearest even),
// and the thread's denormal mode.
#pragma once

#include <stdint.h>

float    half_to_f32(uint16_t h);
uint16_t half_from_f32(float f);
float    bf16_to_f32(uint16_t b);
uint16_t bf16_from_f32(float f);

typedef uint64_t FpuState;

// Flushes denormals to 0 in this thread (arithmetic on them is slow); returns the previous state.
FpuState fpu_flush_denormals(void);
void     fpu_restore(FpuState old);
