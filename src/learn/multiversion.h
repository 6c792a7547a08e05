// Wide: one function compiled twice from the same lines, for any machine and for wide registers.
//
// Both give the same bits: the compiler may compute several elements at once, but it neither
// reorders a sum nor fuses a product with one. MULTIVERSION(static, f, (float *x), (x)) makes a
// function f out of f_body, which is declared MULTIVERSION_BODY.
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
