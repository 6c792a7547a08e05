// Resizing by taps against the reference, in every supported mode.
#include "tests/kernel/blocked.h"
#include "tests/kernel/isas.h"

#include "base/arena.h"
#include "kernel/resample.h"
#include "tests/runner.h"

typedef struct Case {
    uint32_t n, c, ih, iw, oh, ow;
} Case;

static const Case cases[] = {
    {1, 8, 7, 7, 14, 14}, {2, 5, 6, 9, 13, 27}, {1, 17, 20, 33, 9, 10}, {1, 3, 1, 5, 4, 5},
    {1, 9, 4, 3, 1, 1},   {2, 16, 5, 4, 5, 4},  {1, 1, 12, 80, 60, 61},
};

static RefResize settings(const Case *c, RefResizeMode mode, int coordinate, int nearest) {
    RefResize      p = {.mode = mode,
                        .coordinate = (RefResizeCoordinate)coordinate,
                        .nearest = (RefResizeNearest)nearest,
                        .exclude_outside = nearest == 1};
    const uint32_t in[] = {c->n, c->c, c->ih, c->iw}, out[] = {c->n, c->c, c->oh, c->ow};
    for (int i = 0; i < 4; i++)
        p.axis[i] = (RefResizeAxis){(float)out[i] / (float)in[i], out[i], {0, 1}};
    return p;
}

static void reference(const RefResize *p, const Case *c, float *x, float *y) {
    Arena  a;
    Tensor tx = ARRAY(DT_F32, x, c->n, c->c, c->ih, c->iw);
    Tensor ty = ARRAY(DT_F32, y, c->n, c->c, c->oh, c->ow);
    assert_int_equal(arena_init(&a, 1 << 26), ERR_OK);
    assert_int_equal(ref_resize(p, &tx, &ty, &a), ERR_OK);
    arena_finish(&a);
}

static void check(const Isa *isa, Resample r, const float *x, const float *want, uint32_t parts) {
    size_t lanes = r.plain ? 1 : isa->lanes, in = (size_t)r.ih * r.iw, out = (size_t)r.oh * r.ow;
    float *from = blocked_from(x, r.n, r.c, in, lanes);
    float *y = blocked_new(blocked_count(r.n, r.c, out, lanes));
    r.x = from, r.y = y;
    for (uint32_t i = 0; i < parts; i++) {
        float *scratch = blocked_new(resample_scratch(&r, isa) / sizeof *scratch);
        isa->resample(&r, (Part){i, parts, scratch});
        free(scratch);
    }
    blocked_equal(y, want, r.n, r.c, out, lanes, 1e-6);
    free(from), free(y);
}

static void every_layout(const RefResize *p, const Case *c, Rng *rng) {
    static const uint32_t parts[] = {1, 2, 3, 7};
    ResampleTap           rows[80], columns[80];
    const Isa            *isas[3];
    size_t                n = isas_here(isas), planes = (size_t)c->n * c->c;
    if (!resample_keeps(p, 0, c->n) || !resample_keeps(p, 1, c->c)) return;
    assert_true(resample_axis(p, 2, c->ih, c->oh, rows));
    assert_true(resample_axis(p, 3, c->iw, c->ow, columns));
    float *x = blocked_random(planes * c->ih * c->iw, rng);
    float *want = blocked_new(planes * c->oh * c->ow);
    reference(p, c, x, want);
    for (size_t i = 0; i < 2 * n; i++)
        check(isas[i / 2],
              (Resample){.n = c->n,
                         .c = c->c,
                         .ih = c->ih,
                         .iw = c->iw,
                         .oh = c->oh,
                         .ow = c->ow,
                         .nearest = p->mode == REF_RESIZE_NEAREST,
                         .plain = i % 2 == 1,
                         .rows = rows,
                         .columns = columns},
              x, want, parts[rng_below(rng, 4)]);
    free(x), free(want);
}

static void every_mode(void **state) {
    (void)state;
    Rng r = {5};
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int coordinate = 0; coordinate < 7; coordinate++)
            for (int nearest = 0; nearest < 5; nearest++) {
                RefResize p = settings(&cases[i], REF_RESIZE_NEAREST, coordinate, nearest);
                every_layout(&p, &cases[i], &r);
                if (nearest > 1) continue;
                p.mode = REF_RESIZE_LINEAR;
                every_layout(&p, &cases[i], &r);
            }
}

static void what_stays(void **state) {
    (void)state;
    RefResize p = settings(&cases[0], REF_RESIZE_NEAREST, REF_RESIZE_HALF_PIXEL, 0);
    assert_true(resample_keeps(&p, 1, 8));
    assert_false(resample_keeps(&p, 2, 7));
    p = settings(&cases[0], REF_RESIZE_NEAREST, REF_RESIZE_TF_HALF_PIXEL_FOR_NN, 3);
    assert_false(resample_keeps(&p, 1, 8));
}

static void what_tables_cannot_say(void **state) {
    (void)state;
    ResampleTap t[8];
    RefResize   p = settings(&cases[0], REF_RESIZE_CUBIC, 0, 0);
    assert_false(resample_axis(&p, 2, 4, 8, t));
    p.mode = REF_RESIZE_LINEAR;
    p.antialias = true;
    p.axis[2].scale = 0.5F;
    assert_false(resample_axis(&p, 2, 16, 8, t));
    p.axis[2] = (RefResizeAxis){2, 8, {-0.5, 1}};
    p.coordinate = REF_RESIZE_TF_CROP_AND_RESIZE;
    assert_false(resample_axis(&p, 2, 4, 8, t));
    p.mode = REF_RESIZE_NEAREST;
    assert_false(resample_axis(&p, 2, 4, 8, t));
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mode),
        cmocka_unit_test(what_stays),
        cmocka_unit_test(what_tables_cannot_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
