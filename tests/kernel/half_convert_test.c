// Every float16 and bfloat16, and floats around the points where rounding changes, against the
// conversion of single numbers.
#include "kernel/half_convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fp.h"
#include "base/rng.h"
#include "kernel/elementwise.h"
#include "tests/kernel/arrays.h"
#include "tests/kernel/isas.h"
#include "tests/runner.h"

enum { ALL = 1 << 16 };

static DType type_of(bool bfloat) { return bfloat ? DT_BF16 : DT_F16; }

static float wide(uint16_t h, bool bfloat) {
    Tensor t = ARRAY(type_of(bfloat), &h, 1);
    return (float)tensor_get_f64(&t, 0);
}

static uint16_t narrow(float x, bool bfloat) {
    uint16_t h = 0;
    Tensor   t = ARRAY(type_of(bfloat), &h, 1);
    tensor_set(&t, 0, (double)x);
    return h;
}

static bool same(float a, float b) { return (isnan(a) && isnan(b)) || memcmp(&a, &b, 4) == 0; }

// Threads of the engine flush subnormal floats to 0; subnormal float16 numbers are ordinary floats.
static void run(const Isa *isa, const HalfConvert *h, uint32_t parts) {
    FpuState old = h->bfloat ? 0 : fpu_flush_denormals();
    for (uint32_t p = 0; p < parts; p++) isa->half_convert(h, (Part){p, parts, NULL});
    if (!h->bfloat) fpu_restore(old);
}

static void widening(void **state) {
    (void)state;
    static uint16_t from[ALL];
    static float    to[ALL];
    const Isa      *isas[3];
    size_t          n = isas_here(isas);
    for (uint32_t i = 0; i < ALL; i++) from[i] = (uint16_t)i;
    for (size_t k = 0; k < n * 2; k++) {
        bool bfloat = k % 2 != 0;
        run(isas[k / 2], &(HalfConvert){ALL - 3, bfloat, true, from, to}, 3);
        for (uint32_t i = 0; i < ALL - 3; i++)
            if (!same(to[i], wide(from[i], bfloat)))
                fail_msg("%s: %#x is %g", isas[k / 2]->name, i, (double)to[i]);
    }
}

// All halves, the middles between neighbours, and floats just beside those; then any bits.
static size_t interesting(float *x, bool bfloat) {
    size_t n = 0;
    Rng    r = {5};
    for (uint32_t i = 0; i + 1 < ALL; i++) {
        float a = wide((uint16_t)i, bfloat), b = wide((uint16_t)(i + 1), bfloat);
        float middle = (float)(((double)a + (double)b) / 2);
        x[n++] = a;
        x[n++] = middle;
        x[n++] = nextafterf(middle, INFINITY);
        x[n++] = nextafterf(middle, -INFINITY);
    }
    for (int i = 0; i < ALL; i++) {
        uint32_t bits = (uint32_t)rng_below(&r, (uint64_t)UINT32_MAX + 1);
        memcpy(&x[n++], &bits, sizeof bits);
    }
    return n;
}

static void narrowing(void **state) {
    (void)state;
    float     *x = malloc(5 * ALL * sizeof *x), *y = malloc(5 * ALL * sizeof *y);
    uint16_t  *h = malloc(5 * ALL * sizeof *h);
    const Isa *isas[3];
    size_t     sets = isas_here(isas);
    assert_true(x != NULL && y != NULL && h != NULL);
    for (size_t k = 0; k < sets * 2; k++) {
        bool               bfloat = k % 2 != 0;
        const Isa         *isa = isas[k / 2];
        size_t             n = interesting(x, bfloat);
        ElementwiseProgram p = {.n_steps = 1,
                                .n_args = 1,
                                .steps = {{.op = bfloat ? EWISE_BF16 : EWISE_F16, .a = EWISE_ARG}}};
        run(isa, &(HalfConvert){n, bfloat, false, x, h}, 5);
        isa->ewise_span(&p, &(ElementwiseInput){x, EWISE_CONTIGUOUS}, y, n);
        for (size_t i = 0; i < n; i++) {
            float want = wide(narrow(x[i], bfloat), bfloat);
            if (!same(wide(h[i], bfloat), want) || !same(y[i], want))
                fail_msg("%s bfloat%d: %a is %a stored, %a rounded, not %a", isa->name, bfloat,
                         (double)x[i], (double)wide(h[i], bfloat), (double)y[i], (double)want);
        }
    }
    free(x);
    free(y);
    free(h);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(widening), cmocka_unit_test(narrowing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
