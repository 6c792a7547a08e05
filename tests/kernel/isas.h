// Isas: the instruction sets this machine can run, for tests that go through all of them.
#pragma once

#include <stddef.h>

#include "kernel/isa.h"

// Fills at most three; the count is the result.
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
