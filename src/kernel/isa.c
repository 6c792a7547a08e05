#include "kernel/isa.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

typedef struct Choice {
    const Isa *isa;
    bool       runs;
} Choice;

static bool runs_avx2(void) {
#ifdef __x86_64__
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

// AVX-VNNI: byte products of 256 bits on CPUs that may lack AVX-512.
static bool runs_avxvnni(void) {
#ifdef __x86_64__
    uint32_t a = 0, b = 0, c = 0, d = 0;
    if (!runs_avx2() || __get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || a < 1) return false;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
#else
    return false;
#endif
}

static bool runs_avx512(void) {
#ifdef __x86_64__
    return runs_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}

static Err choose_named(const Choice *c, size_t n, const char *name, const Isa **out) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(c[i].isa->name, name) != 0) continue;
        if (!c[i].runs)
            return err_set(ERR_CONFIG, "COTENANT_ISA asks for %s, which this machine cannot run",
                           name);
        *out = c[i].isa;
        return ERR_OK;
    }
    return err_set(ERR_CONFIG, "COTENANT_ISA=%s is unknown; give baseline, avx2, avxvnni or avx512",
                   name);
}

Err isa_choose(const Isa **out) {
    const Choice choices[] = {
#ifdef __x86_64__
        {&isa_avx512, runs_avx512()},
        {&isa_avxvnni, runs_avxvnni()},
        {&isa_avx2, runs_avx2()},
#endif
        {&isa_baseline, true},
    };
    size_t      n = sizeof choices / sizeof *choices;
    const char *name = getenv("COTENANT_ISA");
    if (name != NULL && *name != '\0') return choose_named(choices, n, name, out);
    size_t i = 0;
    while (!choices[i].runs) i++;
    *out = choices[i].isa;
    return ERR_OK;
}
