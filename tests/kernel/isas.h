// The instruction sets that this machine can run.
#pragma once

#include <stddef.h>

#include "kernel/isa.h"

// Writes at most three; returns how many.
static inline size_t isas_here(const Isa **out) {
    size_t n = 0;
    out[n++] = &isa_baseline;
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) out[n++] = &isa_avx2;
    if (n == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        out[n++] = &isa_avx512;
#endif
    return n;
}
