// Wide: one function compiled twice from the same lines, for any machine and for wide registers.
//
// Both give the same bits: the compiler may compute several elements at once, but it neither
// reorders a sum nor fuses a product with one. WIDE(static, f, (float *x), (x)) makes a function f
// out of f_lines, which is declared WIDE_LINES.
#pragma once

#include <stddef.h>

#define WIDE_LINES static inline __attribute__((always_inline)) void

#if defined(__x86_64__)
#define WIDE(linkage, name, parameters, arguments)                                                 \
    __attribute__((target("avx2"))) static void name##_avx2 parameters { name##_lines arguments; } \
    static void name##_any parameters { name##_lines arguments; }                                  \
    linkage void name      parameters {                                                            \
        if (__builtin_cpu_supports("avx2"))                                                   \
            name##_avx2 arguments;                                                            \
        else                                                                                  \
            name##_any arguments;                                                             \
    }
#else
#define WIDE(linkage, name, parameters, arguments)                                                 \
    linkage void name parameters { name##_lines arguments; }
#endif
