// Rotary embedding and caches against the reference: layouts, partly rotated heads, positions,
// parts.
#include "kernel/rotate_heads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kernel/ref/ref_attention.h"
#include "tests/kernel/arrays.h"
#include "tests/kernel/isas.h"
#include "tests/runner.h"

enum { ANGLES = 40 };

// Exactly sized, so that the sanitizer catches an access past the end.
static float *noise(Rng *r, size_t n) {
    float *x = malloc(n > 0 ? n * sizeof *x : 1);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) x[i] = (float)rng_below(r, 2001) / 1000 - 1;
    return x;
}

static AttentionStrides strides(bool packed, uint32_t heads, uint32_t length, uint32_t size) {
    AttentionStrides s = {.batch = (size_t)heads * length * size};
    s.head = packed ? size : (size_t)length * size;
    s.step = packed ? (size_t)heads * size : size;
    return s;
}

static RefHeads ref_heads(const Tensor *t, const AttentionStrides *s) {
    return (RefHeads){t, 0, (int64_t)s->batch, (int64_t)s->head, (int64_t)s->step};
}

static void reference(const RotateHeads *r, float *y) {
    const RotateShape *s = &r->shape;
    Tensor             x = ARRAY(DT_F32, r->x, 1 << 20), to = ARRAY(DT_F32, y, 1 << 20);
    Tensor             c = ARRAY(DT_F32, r->cosines, ANGLES, s->rotated / 2);
    Tensor             i = ARRAY(DT_F32, r->sines, ANGLES, s->rotated / 2);
    int64_t            rows[64];
    for (uint32_t k = 0; k < s->batch * s->length; k++)
        rows[k] = rotary_row(r, k / s->length, k % s->length);
    Tensor    ids = ARRAY(DT_I64, rows, s->batch, s->length);
    RefRotary p = {.batch = s->batch,
                   .heads = s->heads,
                   .length = s->length,
                   .size = s->size,
                   .rotated = s->rotated,
                   .interleaved = s->interleaved,
                   .x = ref_heads(&x, &s->x),
                   .to = ref_heads(NULL, &s->y),
                   .y = &to,
                   .cosines = &c,
                   .sines = &i,
                   .ids = &ids};
    assert_int_equal(ref_rotary(&p), ERR_OK);
}

static void near(const float *got, const float *want, size_t n, const char *isa) {
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) < 1e-6F))
            fail_msg("%s: number %zu is %g, not %g", isa, i, (double)got[i], (double)want[i]);
}

static void rotations(void **state) {
    (void)state;
    static const uint32_t sizes[][5] = {{1, 1, 1, 2, 2},
                                        {2, 3, 5, 32, 32},
                                        {1, 8, 1, 64, 64},
                                        {2, 2, 7, 20, 12},
                                        {3, 1, 4, 10, 10}};
    const Isa            *isas[3];
    size_t                n = isas_here(isas);
    Rng                   r = {3};
    for (size_t i = 0; i < n * COUNT(sizes) * 16; i++) {
        const uint32_t *z = sizes[i / n % COUNT(sizes)];
        size_t          way = i / n / COUNT(sizes), all = (size_t)z[0] * z[1] * z[2] * z[3];
        const int64_t   ids[64] = {3, 0, 39, 17, 5, 5, 20};
        const int32_t   lengths[3] = {30, 7, 12};
        RotateHeads     h = {.shape = {.batch = z[0], .heads = z[1], .length = z[2], .size = z[3]}};
        h.shape.rotated = z[4];
        h.shape.interleaved = way % 2 == 1;
        h.shape.rows = (RotaryRows)(way / 2 % 4);
        h.shape.angles = ANGLES;
        h.shape.x = strides(way / 8 == 0, z[1], z[2], z[3]);
        h.shape.y = strides(way % 3 == 0, z[1], z[2], z[3]);
        if (h.shape.rows == ROTARY_IDS || h.shape.rows == ROTARY_FROM_ID) h.ids = ids;
        h.cache = (CacheLengths){.lengths = lengths, .prompt = way == 7};
        float *x = noise(&r, all), *y = noise(&r, all), *want = noise(&r, all);
        float *c = noise(&r, ANGLES * z[4] / 2), *s = noise(&r, ANGLES * z[4] / 2);
        h.x = x, h.y = y, h.cosines = c, h.sines = s;
        reference(&h, want);
        for (uint32_t parts = 1; parts < 8; parts += 3)
            for (uint32_t p = 0; p < parts; p++)
                isas[i % n]->rotate_heads(&h, (Part){p, parts, NULL});
        near(y, want, all, isas[i % n]->name);
        void *mine[] = {x, y, want, c, s};
        for (size_t k = 0; k < COUNT(mine); k++) free(mine[k]);
    }
}

// Old rows, rotated or copied new ones, then zeros.
static void caches(void **state) {
    (void)state;
    enum { BATCH = 3, HEADS = 2, SIZE = 12, OLD = 9, ROWS = 14, FRESH = 3, HALF = 4 };
    const int32_t lengths[BATCH] = {2, 11, 7};
    const Isa    *isas[3];
    size_t        n = isas_here(isas);
    Rng           r = {4};
    for (size_t i = 0; i < n * 8; i++) {
        size_t way = i / n;
        float *x = noise(&r, BATCH * HEADS * FRESH * SIZE),
              *old = noise(&r, BATCH * HEADS * OLD * SIZE);
        float *y = noise(&r, BATCH * HEADS * ROWS * SIZE),
              *turned = noise(&r, BATCH * HEADS * FRESH * SIZE);
        float      *c = noise(&r, ANGLES * HALF), *s = noise(&r, ANGLES * HALF);
        CacheAppend a = {
            .batch = BATCH, .heads = HEADS, .size = SIZE, .old_rows = OLD, .rows = ROWS};
        a.fresh = FRESH;
        a.x = strides(way % 2 == 0, HEADS, FRESH, SIZE);
        a.x_at = x, a.old = old, a.y = y;
        a.cache = (CacheLengths){.lengths = way % 4 < 2 ? lengths : NULL, .past = OLD};
        RotateHeads h = {.x = x, .y = turned, .cosines = c, .sines = s, .cache = a.cache};
        h.shape = (RotateShape){.batch = BATCH, .heads = HEADS, .length = FRESH, .size = SIZE};
        h.shape.rotated = 2 * HALF;
        h.shape.rows = ROTARY_AFTER;
        h.shape.angles = ANGLES;
        h.shape.x = h.shape.y = a.x;
        if (way >= 4) a.rotate = &h;
        reference(&h, turned);
        for (uint32_t p = 0; p < 4; p++) isas[i % n]->cache_append(&a, (Part){p, 4, NULL});
        for (uint32_t k = 0; k < BATCH * HEADS * ROWS; k++) {
            uint32_t    row = k % ROWS, head = k / ROWS % HEADS, b = k / ROWS / HEADS;
            uint32_t    past = a.cache.lengths != NULL ? (uint32_t)lengths[b] + 1 - FRESH : OLD;
            const float zero[SIZE] = {0}, *want = zero;
            size_t      fresh = b * a.x.batch + head * a.x.head + (row - past) * a.x.step;
            if (row < past)
                want = old + ((size_t)(b * HEADS + head) * OLD + row) * SIZE;
            else if (row < past + FRESH)
                want = (a.rotate != NULL ? turned : x) + fresh;
            near(y + (size_t)k * SIZE, want, SIZE, isas[i % n]->name);
        }
        void *mine[] = {x, old, y, turned, c, s};
        for (size_t k = 0; k < COUNT(mine); k++) free(mine[k]);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rotations), cmocka_unit_test(caches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
