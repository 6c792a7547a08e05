#include <string.h>

#include "base/fp.h"

static uint32_t bits_of(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static float float_of(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

float half_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exp = (h >> 10) & 31u, frac = h & 0x3FFu;
    if (exp == 31) return float_of(sign | 0x7F800000u | frac << 13);
    if (exp != 0) return float_of(sign | (exp + 112) << 23 | frac << 13);
    float magnitude = (float)frac * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
}

uint16_t half_from_f32(float f) {
    uint32_t u = bits_of(f), sign = (u >> 16) & 0x8000u, mag = u & 0x7FFFFFFFu;
    if (mag > 0x7F800000u) return (uint16_t)(sign | 0x7E00u);   // not a number
    if (mag >= 0x477FF000u) return (uint16_t)(sign | 0x7C00u);  // 65520 and above round to infinity
    if (mag < 0x38800000u) {                                    // below 2^-14: subnormal or zero
        float rounded = float_of(mag) + 0.5f;  // adding 0.5 rounds to a multiple of 2^-24
        return (uint16_t)(sign | (bits_of(rounded) - bits_of(0.5f)));
    }
    mag += 0xFFFu + ((mag >> 13) & 1u);
    return (uint16_t)(sign | ((mag - 0x38000000u) >> 13));
}

float bf16_to_f32(uint16_t b) { return float_of((uint32_t)b << 16); }

uint16_t bf16_from_f32(float f) {
    uint32_t u = bits_of(f);
    if ((u & 0x7FFFFFFFu) > 0x7F800000u) return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7FFFu + ((u >> 16) & 1u)) >> 16);
}

#if defined(__x86_64__)
#include <immintrin.h>

enum { FLUSH_TO_ZERO = 1 << 15, DENORMALS_ARE_ZERO = 1 << 6 };

static FpuState read_state(void) { return _mm_getcsr(); }
static void     write_state(FpuState s) { _mm_setcsr((uint32_t)s); }
#elif defined(__aarch64__)
enum { FLUSH_TO_ZERO = 1 << 24, DENORMALS_ARE_ZERO = 0 };  // one bit does both

static FpuState read_state(void) {
    FpuState s;
    __asm__ volatile("mrs %0, fpcr" : "=r"(s));
    return s;
}
static void write_state(FpuState s) { __asm__ volatile("msr fpcr, %0" ::"r"(s)); }
#else
enum { FLUSH_TO_ZERO = 0, DENORMALS_ARE_ZERO = 0 };

static FpuState read_state(void) { return 0; }
static void     write_state(FpuState s) { (void)s; }
#endif

FpuState fpu_flush_denormals(void) {
    FpuState old = read_state();
    write_state(old | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO);
    return old;
}

void fpu_restore(FpuState old) { write_state(old); }
