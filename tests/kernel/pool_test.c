// Pools against the reference, in both layouts.
#include "tests/kernel/blocked.h"
#include "tests/kernel/isas.h"

#include "base/arena.h"
#include "kernel/pool.h"
#include "kernel/ref/ref_pool.h"
#include "tests/runner.h"

// Sizes as a RefWindow has them: in, out, kernel, stride, dilation, pad, pad_end.
typedef struct Case {
    int64_t   n, c;
    RefWindow w;
} Case;

static const Case cases[] = {
    {1, 8, {2, {6, 6}, {3, 3}, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}}},
    {2, 13, {2, {13, 17}, {7, 9}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}}},
    {1, 3, {2, {7, 31}, {7, 31}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {1, 16, {2, {13, 13}, {13, 13}, {9, 9}, {1, 1}, {1, 1}, {4, 4}, {4, 4}}},
    {1, 9, {2, {7, 7}, {1, 1}, {7, 7}, {1, 1}, {1, 1}, {0, 0}, {0, 0}}},
    {3, 20, {2, {9, 11}, {1, 1}, {9, 11}, {9, 11}, {1, 1}, {0, 0}, {0, 0}}},
    {1, 5, {2, {12, 12}, {6, 6}, {3, 3}, {2, 2}, {1, 1}, {0, 0}, {0, 0}}},  // ceil_mode overhang
    {1, 5, {2, {3, 10}, {2, 4}, {3, 3}, {2, 3}, {1, 1}, {1, 1}, {1, 1}}},
    {1, 4, {2, {10, 9}, {4, 5}, {2, 3}, {2, 1}, {3, 2}, {0, 0}, {0, 0}}},
    {2, 8, {2, {1, 40}, {1, 13}, {1, 4}, {1, 3}, {1, 1}, {0, 1}, {0, 0}}},
    {1, 1, {2, {5, 2}, {6, 5}, {2, 2}, {1, 1}, {1, 1}, {1, 2}, {1, 2}}},
    {1, 2, {2, {60, 50}, {30, 25}, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}}},
};

static void reference(const Case *c, PoolKind kind, bool count_pad, float *x, float *y) {
    Arena   a;
    RefPool p = {.kind = kind == POOL_MAX ? REF_POOL_MAX : REF_POOL_AVERAGE,
                 .window = c->w,
                 .count_pad = count_pad};
    Tensor  tx = ARRAY(DT_F32, x, c->n, c->c, c->w.in[0], c->w.in[1]);
    Tensor  ty = ARRAY(DT_F32, y, c->n, c->c, c->w.out[0], c->w.out[1]);
    assert_int_equal(arena_init(&a, 1 << 26), ERR_OK);
    assert_int_equal(ref_pool(&p, &tx, &ty, NULL, &a), ERR_OK);
    arena_finish(&a);
}

static Pool pool_of(const Case *c, PoolKind kind, bool count_pad) {
    const RefWindow *w = &c->w;
    return (Pool){.shape = {.n = (uint32_t)c->n,
                            .ic = (uint32_t)c->c,
                            .ih = (uint32_t)w->in[0],
                            .iw = (uint32_t)w->in[1],
                            .oc = (uint32_t)c->c,
                            .oh = (uint32_t)w->out[0],
                            .ow = (uint32_t)w->out[1],
                            .kh = (uint32_t)w->kernel[0],
                            .kw = (uint32_t)w->kernel[1],
                            .sh = (uint32_t)w->stride[0],
                            .sw = (uint32_t)w->stride[1],
                            .dh = (uint32_t)w->dilation[0],
                            .dw = (uint32_t)w->dilation[1],
                            .pt = (uint32_t)w->pad[0],
                            .pl = (uint32_t)w->pad[1],
                            .groups = 1},
                  .pb = (uint32_t)w->pad_end[0],
                  .pr = (uint32_t)w->pad_end[1],
                  .kind = kind,
                  .count_pad = count_pad};
}

// The plain layout is the blocked layout with one lane.
static void check(const Isa *isa, Pool p, const float *x, const float *want, uint32_t parts) {
    const ConvShape *s = &p.shape;
    size_t           lanes = p.plain ? 1 : isa->lanes, in = (size_t)s->ih * s->iw;
    size_t           out = (size_t)s->oh * s->ow;
    float           *from = blocked_from(x, s->n, s->ic, in, lanes);
    float           *y = blocked_new(blocked_count(s->n, s->ic, out, lanes));
    p.x = from, p.y = y;
    for (uint32_t i = 0; i < parts; i++) {
        float *scratch = blocked_new(pool_scratch(&p, isa) / sizeof *scratch);
        isa->pool(&p, (Part){i, parts, scratch});
        free(scratch);
    }
    blocked_equal(y, want, s->n, s->ic, out, lanes, 2e-6);
    free(from), free(y);
}

static void every_way(const Case *c, Rng *r, uint32_t parts) {
    const size_t planes = (size_t)(c->n * c->c), in = (size_t)(c->w.in[0] * c->w.in[1]);
    const Isa   *isas[3];
    const size_t n = isas_here(isas);
    for (int kind = 0; kind < 3; kind++) {
        Pool   p = pool_of(c, kind == 0 ? POOL_MAX : POOL_AVERAGE, kind == 2);
        float *x = blocked_random(planes * in, r);
        float *want = blocked_new(planes * (size_t)(c->w.out[0] * c->w.out[1]));
        if (kind == 0) x[rng_below(r, planes * in)] = NAN;
        reference(c, p.kind, p.count_pad, x, want);
        for (size_t i = 0; i < 2 * n; i++) {
            p.plain = i % 2 == 1;
            check(isas[i / 2], p, x, want, parts);
        }
        free(x), free(want);
    }
}

static void pools(void **state) {
    (void)state;
    static const uint32_t parts[] = {1, 2, 3, 7};
    Rng                   r = {11};
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t p = 0; p < COUNT(parts); p++) every_way(&cases[i], &r, parts[p]);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(pools)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
