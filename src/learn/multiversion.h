// MULTIVERSION: function multiversioning: one body compiled for the baseline and for AVX2, chosen
// at run time.
//
// Both versions give the same bits: sums are not reordered and products not fused.
// MULTIVERSION(static, f, (float *x), (x)) defines f from f_body, declared with MULTIVERSION_BODY.
#pragma once

#include <stddef.h>

#define MULTIVERSION_BODY static inline __attribute__((always_inline)) void

#if defined(__x86_64__)
#define MULTIVERSION(linkage, name, parameters, arguments)                                         \
    __attribute__((target("avx2"))) static void name##_avx2 parameters { name##_body arguments; }  \
    static void name##_any parameters { name##_body arguments; }                                   \
    linkage void name      parameters {                                                            \
        if (__builtin_cpu_supports("avx2"))                                                   \
            name##_avx2 arguments;                                                            \
        else                                                                                  \
            name##_any arguments;                                                             \
    }
#else
#define MULTIVERSION(linkage, name, parameters, arguments)                                         \
    linkage void name parameters { name##_body arguments; }
#endif
