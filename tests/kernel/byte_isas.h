// The instruction sets whose byte kernels this machine can run.
#pragma once

#include "tests/kernel/isas.h"
#ifdef __x86_64__
#include <cpuid.h>

extern const Isa isa_avxvl;  // the code of avxvnni in the encoding of AVX-512; in tests only

static inline bool has_avx_vnni(void) {
    uint32_t a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || a < 1) return false;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
}
#endif

enum { BYTE_ISAS = 5 };

// Writes at most BYTE_ISAS; returns how many.
static inline size_t byte_isas_here(const Isa **out) {
    size_t n = isas_here(out);
#ifdef __x86_64__
    if (has_avx_vnni()) out[n++] = &isa_avxvnni;
    if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni"))
        out[n++] = &isa_avxvl;
#endif
    return n;
}
