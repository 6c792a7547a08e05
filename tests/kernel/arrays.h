// C arrays as tensors, for kernel tests.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/rng.h"
#include "base/tensor.h"

// Exactly sized, so that the sanitizer catches an access past the end.
static inline void *exact_bytes(size_t bytes) {
    void *p = NULL;
    assert_int_equal(posix_memalign(&p, 64, bytes != 0 ? bytes : 1), 0);
    return p;
}

static inline int32_t between(Rng *r, int32_t low, int32_t high) {
    return low + (int32_t)rng_below(r, (uint32_t)(high - low + 1));
}

// ARRAY(DT_F32, data, 2, 3): a tensor of shape 2x3 over data.
#define ARRAY(dtype, data, ...)                                                                    \
    tensor_of(dtype, (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                \
              (const int64_t[]){__VA_ARGS__}, (void *)(uintptr_t)(data))
#define COUNT(array) (sizeof(array) / sizeof *(array))

// Exact comparison of two C arrays, element by element, so that a failure names the index.
#define ASSERT_INTS(got, want)                                                                     \
    do {                                                                                           \
        assert_int_equal(COUNT(got), COUNT(want));                                                 \
        for (size_t i_ = 0; i_ < COUNT(got); i_++)                                                 \
            if ((got)[i_] != (want)[i_])                                                           \
                fail_msg("element %zu is %lld, not %lld", i_, (long long)(got)[i_],                \
                         (long long)(want)[i_]);                                                   \
    } while (0)

// Equal within 1e-5 relative, or both NaN.
#define ASSERT_REALS(got, want)                                                                    \
    do {                                                                                           \
        assert_int_equal(COUNT(got), COUNT(want));                                                 \
        for (size_t i_ = 0; i_ < COUNT(got); i_++) {                                               \
            double g_ = (double)(got)[i_], w_ = (double)(want)[i_], d_ = g_ - w_;                  \
            double room_ = 1e-5 * (w_ < 0 ? -w_ : w_) + 1e-7;                                      \
            if (g_ != w_ && !(g_ != g_ && w_ != w_) && !(d_ <= room_ && d_ >= -room_))             \
                fail_msg("element %zu is %.9g, not %.9g", i_, g_, w_);                             \
        }                                                                                          \
    } while (0)
