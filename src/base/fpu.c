#include "base/fpu.h"

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
