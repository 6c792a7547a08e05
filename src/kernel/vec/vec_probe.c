#include <stddef.h>

#include "kernel/isa.h"
#include "kernel/vec/vec.h"

void VEC(probe_fma)(uint32_t rounds, float *out);
void VEC(probe_read)(const float *in, size_t n, float *out);
void VEC(probe_triad)(const float *b, const float *c, size_t n, float *a);

// As many independent FMA chains as registers hold; without AVX a vector takes two registers.
#if defined __x86_64__ && !defined __AVX__
#define CHAINS(C) C(a) C(b) C(c) C(d) C(e) C(f)
enum { PASSES = 2 };
#else
#define CHAINS(C) C(a) C(b) C(c) C(d) C(e) C(f) C(g) C(h) C(i) C(j) C(k) C(l)
enum { PASSES = 1 };
#endif

// 12 independent vector FMAs per round. Operands come from memory and each chain has its own start,
// so that the compiler cannot remove or merge any.
void VEC(probe_fma)(uint32_t rounds, float *out) {
    Vf x = vf_set(out[0]), y = vf_set(out[1]), seed = y, sum = y;
    for (int pass = 0; pass < PASSES; pass++) {
#define START(v) Vf v = seed = seed * x + y;
        CHAINS(START)
        for (uint32_t r = 0; r < rounds; r++) {
#define STEP(v) v = v * x + y;
            CHAINS(STEP)
        }
#define ADD(v) sum += v;
        CHAINS(ADD)
    }
    vf_store(out, sum);
}

// n is a multiple of 8 vectors, here and in probe_triad.
void VEC(probe_read)(const float *in, size_t n, float *out) {
    Vi a = vi_set(0), b = a, c = a, d = a, e = a, f = a, g = a, h = a;
    for (size_t i = 0; i < n; i += (size_t)8 * VEC_LANES) {
        const float *p = in + i;
        a |= (Vi)vf_load(p);
        b |= (Vi)vf_load(p + VEC_LANES);
        c |= (Vi)vf_load(p + 2 * VEC_LANES);
        d |= (Vi)vf_load(p + 3 * VEC_LANES);
        e |= (Vi)vf_load(p + 4 * VEC_LANES);
        f |= (Vi)vf_load(p + 5 * VEC_LANES);
        g |= (Vi)vf_load(p + 6 * VEC_LANES);
        h |= (Vi)vf_load(p + 7 * VEC_LANES);
    }
    vf_store(out, (Vf)(a | b | c | d | e | f | g | h));
}

void VEC(probe_triad)(const float *b, const float *c, size_t n, float *a) {
    Vf three = vf_set(3);
    for (size_t i = 0; i < n; i += VEC_LANES)
        vf_store(a + i, vf_load(b + i) + three * vf_load(c + i));
}
