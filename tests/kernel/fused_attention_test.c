// Fused attention against the reference: layouts of heads, masks, odd sizes, versions, parts.
#include "kernel/fused_attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"
#include "kernel/ref/ref_attention.h"
#include "tests/kernel/arrays.h"
#include "tests/runner.h"

typedef struct Case {
    uint32_t batch, heads, kv_heads, queries, keys, size, v_size;
    bool     heads_inner;  // [batch, positions, heads, size], else [batch, heads, positions, size]
    bool     k_transposed;
    int  mask;  // 0: none; 1: [batch, 1, 1, keys]; 2: [heads, queries, keys]; 3: masks whole rows
    bool causal, lengths, last;
    uint32_t past, window;
    float    softcap;
} Case;

enum { MAX_VERSIONS = 32 };

static float *noise(Rng *r, size_t n) {
    float *x = exact_bytes(n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = (float)rng_below(r, 4001) / 1000 - 2;
    return x;
}

static uint32_t instruction_sets(const Isa *out[3]) {
    const Isa *best = NULL;
    uint32_t   n = 0;
    assert_int_equal(isa_choose(&best), ERR_OK);
    out[n++] = &isa_baseline;
#ifdef __x86_64__
    if (best != &isa_baseline) out[n++] = &isa_avx2;
#endif
    if (best != out[n - 1]) out[n++] = best;
    return n;
}

static AttentionStrides strides_of(const Case *c, uint32_t heads, uint32_t positions,
                                   uint32_t size) {
    AttentionStrides s = {.batch = (size_t)heads * positions * size};
    s.head = c->heads_inner ? size : (size_t)positions * size;
    s.step = c->heads_inner ? (size_t)heads * size : size;
    return s;
}

static RefHeads heads_of(const Tensor *t, const AttentionStrides *s) {
    return (RefHeads){t, 0, (int64_t)s->batch, (int64_t)s->head, (int64_t)s->step};
}

static FusedAttentionShape shape_of(const Case *c) {
    FusedAttentionShape s = {.batch = c->batch,
                             .heads = c->heads,
                             .kv_heads = c->kv_heads,
                             .queries = c->queries,
                             .keys = c->keys,
                             .size = c->size,
                             .v_size = c->v_size,
                             .scale = 0.3f,
                             .softcap = c->softcap,
                             .causal = c->causal,
                             .past = c->past,
                             .window = c->window,
                             .lengths = c->lengths,
                             .last = c->last};
    s.q = strides_of(c, c->heads, c->queries, c->size);
    s.k = strides_of(c, c->kv_heads, c->keys, c->size);
    s.v = strides_of(c, c->kv_heads, c->keys, c->v_size);
    s.y = strides_of(c, c->heads, c->queries, c->v_size);
    if (c->mask == 1) s.mask = (AttentionStrides){.batch = c->keys};
    if (c->mask > 1) s.mask = (AttentionStrides){0, (size_t)c->queries * c->keys, c->keys};
    return s;
}

static float *mask_of(const Case *c, Rng *r, Tensor *t) {
    int64_t rows = c->mask == 1 ? c->batch : c->heads * c->queries;
    float  *m = noise(r, (size_t)rows * c->keys);
    if (c->mask == 1)
        *t = ARRAY(DT_F32, m, c->batch, 1, 1, c->keys);
    else
        *t = ARRAY(DT_F32, m, c->heads, c->queries, c->keys);
    for (size_t i = 0; i < c->keys && c->mask == 3; i++) m[i] = -INFINITY;
    if (c->mask == 1) m[0] = -INFINITY;
    return m;
}

// What a query does not attend to, as a bias [batch, heads, queries, keys], added to the mask.
static float *hidden(const Case *c, const FusedAttention *a, Tensor *bias) {
    size_t rows = (size_t)c->batch * c->heads * c->queries;
    float *x = exact_bytes(rows * c->keys * sizeof *x);
    for (size_t i = 0; i < rows * c->keys; i++) {
        uint32_t j = (uint32_t)(i % c->keys), row = (uint32_t)(i / c->keys);
        uint32_t query = row % c->queries, head = row / c->queries % c->heads;
        uint32_t b = row / c->queries / c->heads;
        int64_t  keys = c->keys, past = c->past;
        if (c->lengths) keys = a->lengths[b] + 1, past = c->last ? keys - c->queries : 0;
        int64_t end = c->causal && past + query + 1 < keys ? past + query + 1 : keys;
        x[i] = 0;
        if (c->mask == 1) x[i] = a->mask[b * c->keys + j];
        if (c->mask > 1) x[i] = a->mask[((size_t)head * c->queries + query) * c->keys + j];
        if (j >= end || (c->window > 0 && j + c->window < end)) x[i] = -INFINITY;
    }
    *bias = ARRAY(DT_F32, x, c->batch, c->heads, c->queries, c->keys);
    return x;
}

static void reference(const FusedAttentionShape *s, const FusedAttention *a, const Tensor *mask,
                      float *want) {
    Arena  arena;
    Tensor q = ARRAY(DT_F32, a->q, 1 << 20), k = ARRAY(DT_F32, a->k, 1 << 20);
    Tensor v = ARRAY(DT_F32, a->v, 1 << 20), y = ARRAY(DT_F32, want, 1 << 20);
    assert_int_equal(arena_init(&arena, 1 << 24), ERR_OK);
    RefAttention p = {.batch = s->batch,
                      .heads = s->heads,
                      .kv_heads = s->kv_heads,
                      .queries = s->queries,
                      .keys = s->keys,
                      .size = s->size,
                      .v_size = s->v_size,
                      .scale = (double)s->scale,
                      .softcap = (double)s->softcap,
                      .q = heads_of(&q, &s->q),
                      .k = heads_of(&k, &s->k),
                      .v = heads_of(&v, &s->v),
                      .to = heads_of(NULL, &s->y),
                      .bias = mask,
                      .y = &y};
    assert_int_equal(ref_attention(&p, &arena), ERR_OK);
    arena_finish(&arena);
}

// k as [batch, kv_heads, size, keys].
static float *turn(const FusedAttentionShape *s, const float *k, AttentionStrides *side) {
    float *to = exact_bytes((size_t)s->batch * s->kv_heads * s->size * s->keys * sizeof *to),
          *at = to;
    for (uint32_t b = 0; b < s->batch; b++)
        for (uint32_t h = 0; h < s->kv_heads; h++)
            for (uint32_t i = 0; i < s->size; i++)
                for (uint32_t j = 0; j < s->keys; j++)
                    *at++ = k[b * s->k.batch + h * s->k.head + j * s->k.step + i];
    *side = (AttentionStrides){(size_t)s->kv_heads * s->size * s->keys, (size_t)s->size * s->keys,
                               s->keys};
    return to;
}

static void every_version(FusedAttention *a, const Isa *isa, const CacheSizes *caches,
                          const float *want, size_t n) {
    static const uint32_t parts[] = {1, 2, 3, 7};
    Version               v[MAX_VERSIONS];
    uint32_t              count = fused_attention_versions(&a->shape, isa, caches, v, MAX_VERSIONS);
    assert_true(count >= 1);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t p = parts[i % COUNT(parts)];
        a->version = v[i];
        memset(a->y, 0x7f, n * sizeof(float));
        assert_true(fused_attention_tasks(&a->shape, isa, &v[i]) >= 1);
        for (uint32_t j = 0; j < p; j++) {
            Part part = {j, p, exact_bytes(fused_attention_scratch(&a->shape, isa, &v[i]))};
            isa->attention(a, part);
            free(part.scratch);
        }
        for (size_t j = 0; j < n; j++)
            if (!(fabsf(a->y[j] - want[j]) < 2e-5f))
                fail_msg("%s: number %zu is %g, not %g", isa->name, j, (double)a->y[j],
                         (double)want[j]);
    }
}

static void one_case(const Case *c, const Isa *isa, Rng *r) {
    static const CacheSizes caches = {32 << 10, 1 << 20, 32 << 20},
                            tiny = {1 << 10, 4 << 10, 1 << 20};
    FusedAttentionShape s = shape_of(c);
    size_t              ny = s.batch * s.y.batch;
    float              *q = noise(r, s.batch * s.q.batch), *k = noise(r, s.batch * s.k.batch);
    float              *v = noise(r, s.batch * s.v.batch), *want = exact_bytes(ny * sizeof *want);
    float              *y = exact_bytes(ny * sizeof *y), *mask = NULL, *transposed = NULL;
    FusedAttention      a = {.q = q, .k = k, .v = v, .y = y};
    Tensor              bias;
    int32_t             lengths[4];
    uint32_t            least = c->last ? c->queries : 1;
    for (uint32_t i = 0; i < c->batch; i++)
        lengths[i] = (int32_t)(least + rng_below(r, c->keys - least + 1)) - 1;
    if (c->lengths) a.lengths = lengths;
    if (c->mask != 0) a.mask = mask = mask_of(c, r, &bias);
    float *visible = hidden(c, &a, &bias);
    reference(&s, &a, &bias, want);
    if (c->k_transposed) {
        a.k = transposed = turn(&s, k, &s.k);
        s.k_transposed = true;
    }
    a.shape = s;
    every_version(&a, isa, &caches, want, ny);
    every_version(&a, isa, &tiny, want, ny);
    void *all[] = {q, k, v, want, y, mask, transposed, visible};
    for (size_t i = 0; i < COUNT(all); i++) free(all[i]);
}

static void heads_and_masks(void **state) {
    (void)state;
    static const Case cases[] = {
        {1, 1, 1, 1, 1, 1, 1, false, false, .mask = 0},
        {1, 2, 2, 5, 7, 8, 16, false, false, .mask = 0},
        {2, 3, 3, 20, 33, 12, 9, true, false, .mask = 1},
        {2, 4, 2, 17, 17, 16, 16, true, false, .mask = 2},
        {1, 2, 1, 70, 24, 32, 8, false, true, .mask = 3},
        {1, 1, 1, 131, 130, 20, 24, false, true, .mask = 2},
        {2, 2, 2, 1, 50, 64, 64, true, true, .mask = 1},
    };
    const Isa *isas[3];
    uint32_t   n = instruction_sets(isas);
    Rng        r = {5};
    for (uint32_t i = 0; i < n; i++)
        for (size_t j = 0; j < COUNT(cases); j++) one_case(&cases[j], isas[i], &r);
}

// Decoders: one or a few new queries, prompts, caches of different lengths, windows, capped scores.
static void caches_and_windows(void **state) {
    (void)state;
    static const uint32_t sizes[][7] = {
        {1, 8, 2, 1, 33, 32, 32}, {3, 6, 2, 1, 70, 20, 12},  {2, 4, 4, 3, 9, 16, 16},
        {2, 5, 1, 4, 40, 5, 7},   {1, 4, 2, 40, 75, 16, 24}, {2, 2, 1, 21, 21, 64, 64},
    };
    const Isa *isas[3];
    uint32_t   n = instruction_sets(isas);
    Rng        r = {6};
    for (uint32_t i = 0; i < n * COUNT(sizes) * 32; i++) {
        const uint32_t *z = sizes[i / n % COUNT(sizes)], way = i / n / (uint32_t)COUNT(sizes);
        Case            c = {z[0], z[1], z[2], z[3], z[4], z[5], z[6], .causal = true};
        c.lengths = (way & 1) != 0;
        c.last = (way & 2) != 0;
        c.window = (way & 4) != 0 ? 6 : 0;
        c.softcap = (way & 8) != 0 ? 1.5F : 0;
        c.mask = (way & 16) != 0 ? 2 : 0;
        c.past = c.last ? c.keys - c.queries : 0;
        c.heads_inner = way % 3 == 0;
        c.causal = way % 5 != 0;
        one_case(&c, isas[i % n], &r);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(heads_and_masks),
                                       cmocka_unit_test(caches_and_windows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
