// Fpu: how this thread treats numbers too small to be normal; arithmetic on them is slow.
#pragma once

#include <stdint.h>

typedef uint64_t FpuState;

FpuState fpu_flush_denormals(void);  // from now on they count as 0; returns how it was
void     fpu_restore(FpuState old);
