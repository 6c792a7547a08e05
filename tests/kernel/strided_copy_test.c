// Strided copies against the reference: permutations, strides, repetition, gathers.
#include "tests/kernel/arrays.h"
#include "tests/kernel/isas.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kernel/ref/ref_gather.h"
#include "kernel/ref/ref_copy.h"
#include "kernel/strided_copy.h"
#include "kernel/nd_iter.h"
#include "tests/runner.h"

static const uint32_t all_parts[] = {1, 2, 3, 7};
static const size_t   all_sizes[] = {1, 2, 4, 8};

static unsigned char *bytes_new(size_t n, Rng *r) {
    unsigned char *p = malloc(n + (n == 0));
    assert_non_null(p);
    for (size_t i = 0; i < n; i++) p[i] = (unsigned char)rng_below(r, 256);
    return p;
}

static size_t count_of(int32_t rank, const int64_t *dims) {
    size_t n = 1;
    for (int32_t i = 0; i < rank; i++) n *= (size_t)dims[i];
    return n;
}

static void run_all(const Isa *isa, StridedCopy s, const void *from, void *to, uint32_t parts) {
    s.from = from, s.to = to;
    for (uint32_t i = 0; i < parts; i++) isa->strided_copy(&s, (Part){i, parts, NULL});
}

// One copy of `elements` inputs against ref_copy with the same strides.
static void check(const StridedCopy *s, int32_t rank, const int64_t *dims, size_t size,
                  const int64_t *to, const int64_t *from, int64_t from_at, size_t elements,
                  Rng *r) {
    size_t         n = count_of(rank, dims) * size;
    unsigned char *x = bytes_new(elements * size, r), *y = bytes_new(n, r), *want = bytes_new(n, r);
    RefStrided     ref_to = {.data = want}, ref_from = {.data = x, .start = from_at};
    const Isa     *isas[3];
    size_t         count = isas_here(isas);
    memcpy(ref_to.stride, to, (size_t)rank * sizeof *to);
    memcpy(ref_from.stride, from, (size_t)rank * sizeof *from);
    ref_copy(rank, dims, size, ref_to, ref_from);
    for (size_t i = 0; i < count; i++) {
        memset(y, 0xA5, n);
        run_all(isas[i], *s, x, y, all_parts[rng_below(r, 4)]);
        if (n > 0) assert_memory_equal(y, want, n);
    }
    free(x), free(y), free(want);
}

static void permute(int32_t rank, const int64_t *dims, const int32_t *perm, size_t size, Rng *r) {
    int64_t own[TENSOR_MAX_RANK], out[TENSOR_MAX_RANK], to[TENSOR_MAX_RANK], from[TENSOR_MAX_RANK];
    nd_iter_contiguous(rank, dims, own);
    for (int32_t i = 0; i < rank; i++) {
        out[i] = dims[perm[i]];
        from[i] = own[perm[i]];
    }
    nd_iter_contiguous(rank, out, to);
    StridedCopy s = strided_copy_permute(rank, dims, perm, size);
    check(&s, rank, out, size, to, from, 0, count_of(rank, dims), r);
}

static void permutations(void **state) {
    (void)state;
    static const int64_t few[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 24};
    Rng                  r = {3};
    for (int round = 0; round < 300; round++) {
        int32_t rank = (int32_t)rng_below(&r, 7), perm[TENSOR_MAX_RANK];
        int64_t dims[TENSOR_MAX_RANK];
        size_t  n = 1;
        for (int32_t i = 0; i < rank; i++) {
            dims[i] = n > 3000 ? 2 : few[rng_below(&r, COUNT(few))];
            n *= (size_t)dims[i];
            int32_t j = (int32_t)rng_below(&r, (uint64_t)i + 1);
            perm[i] = perm[j];
            perm[j] = i;
        }
        permute(rank, dims, perm, all_sizes[round % 4], &r);
    }
}

// Matrices larger than one task in each direction, and an empty one.
static void matrices(void **state) {
    (void)state;
    static const int64_t dims[][3] = {{1, 300, 41}, {2, 33, 530}, {3, 16, 16}, {1, 8, 1000},
                                      {1, 7, 7},    {0, 5, 3},    {2, 257, 3}, {4, 3, 257}};
    Rng                  r = {4};
    for (size_t i = 0; i < COUNT(dims); i++)
        for (size_t k = 0; k < COUNT(all_sizes); k++) {
            permute(3, dims[i], (const int32_t[]){0, 2, 1}, all_sizes[k], &r);
            permute(3, dims[i], (const int32_t[]){1, 0, 2}, all_sizes[k], &r);
            permute(3, dims[i], (const int32_t[]){0, 1, 2}, all_sizes[k], &r);
        }
    permute(2, (const int64_t[]){3, 20000}, (const int32_t[]){0, 1}, 4, &r);
    permute(3, (const int64_t[]){3, 5, 9000}, (const int32_t[]){1, 0, 2}, 4, &r);
}

// Strided slices, also backwards, and repeated dimensions.
static void strides(void **state) {
    (void)state;
    Rng r = {5};
    for (int round = 0; round < 200; round++) {
        int64_t dims[3], in[3], own[3], from[3], to[3], at = 0;
        for (int i = 0; i < 3; i++) {
            int64_t step = (int64_t)rng_below(&r, 3) + 1;
            dims[i] = (int64_t)rng_below(&r, 20) + 1;
            in[i] = dims[i] * step;
            from[i] = step;
        }
        nd_iter_contiguous(3, in, own);
        nd_iter_contiguous(3, dims, to);
        for (int i = 0; i < 3; i++) {
            uint64_t how = rng_below(&r, 4);
            from[i] *= own[i];
            if (how == 0) {
                at += (dims[i] - 1) * from[i];
                from[i] = -from[i];
            }
            if (how == 1) from[i] = 0;
        }
        size_t      size = all_sizes[round % 4];
        StridedCopy s = strided_copy_make(3, dims, size, to, from);
        s.from_at = at;
        check(&s, 3, dims, size, to, from, at, count_of(3, in), &r);
    }
}

static void gather(int64_t outer, int64_t axis, int64_t inner, int64_t count, bool wide, Rng *r) {
    float   *x = (float *)(void *)bytes_new((size_t)(outer * axis * inner) * 4, r);
    size_t   n = (size_t)(outer * count * inner) * 4;
    float   *y = (float *)(void *)bytes_new(n, r), *want = (float *)(void *)bytes_new(n, r);
    int64_t *index = malloc((size_t)count * 8);
    int32_t *narrow = malloc((size_t)count * 4);
    for (int64_t i = 0; i < count; i++) {
        index[i] = (int64_t)rng_below(r, 2 * (uint64_t)axis) - axis;
        narrow[i] = (int32_t)index[i];
    }
    Tensor tx = ARRAY(DT_F32, x, outer, axis, inner), ti = ARRAY(DT_I64, index, count);
    Tensor ty = ARRAY(DT_F32, want, outer, count, inner);
    Gather p = {(size_t)outer,
                (size_t)axis,
                (size_t)count,
                (size_t)inner * 4,
                wide ? (void *)index : (void *)narrow,
                wide,
                x,
                y};
    assert_int_equal(ref_gather(&tx, &ti, 1, &ty), ERR_OK);
    for (uint32_t parts = 1; parts < 8; parts += 2) {
        memset(y, 0xA5, n);
        for (uint32_t i = 0; i < parts; i++) gather_run(&p, (Part){i, parts, NULL});
        assert_memory_equal(y, want, n);
    }
    free(x), free(y), free(want), free(index), free(narrow);
}

static void gathers(void **state) {
    (void)state;
    Rng r = {9};
    gather(1, 100, 64, 37, true, &r);
    gather(3, 9, 1, 50, false, &r);
    gather(2, 5, 17, 3, false, &r);
    gather(1, 4, 5000, 6, true, &r);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(permutations),
        cmocka_unit_test(matrices),
        cmocka_unit_test(strides),
        cmocka_unit_test(gathers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
