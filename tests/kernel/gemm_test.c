// Products against the reference: odd sizes, batches, transposes, versions, parts, instruction
// sets.
#include "kernel/gemm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"
#include "kernel/ref/ref_matmul.h"
#include "tests/kernel/arrays.h"
#include "tests/runner.h"

typedef struct Case {
    uint32_t m, n, k, batch[3];
    bool     transposed_a, transposed_b, packed, gap, epilogue;
} Case;

enum { MAX_VERSIONS = 64 };

static const CacheSizes caches = {32 << 10, 1 << 20, 32 << 20}, tiny = {1 << 10, 8 << 10, 1 << 20};

static float *noise(Rng *r, size_t n) {
    float *x = exact_bytes(n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = (float)rng_below(r, 2001) / 1000 - 1;
    return x;
}

// The instruction sets of this machine.
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

static size_t span(const GemmShape *s, const GemmOperand *side, uint32_t rows, uint32_t columns) {
    if (rows == 0 || columns == 0) return 0;
    size_t last = (size_t)(rows - 1) * side->row + columns;
    for (int i = 0; i < GEMM_BATCH_DIMS; i++) last += (s->batch[i] - 1) * side->batch[i];
    return last;
}

static GemmShape shape_of(const Case *c) {
    GemmShape s = gemm_shape(c->m, c->n, c->k);
    size_t    gap = c->gap ? 5 : 0;
    memcpy(s.batch, c->batch, sizeof s.batch);
    s.packed = c->packed;
    s.scale = c->packed ? 1 : 0.5f;
    s.a =
        (GemmOperand){.row = (c->transposed_a ? c->m : c->k) + gap, .transposed = c->transposed_a};
    s.b =
        (GemmOperand){.row = (c->transposed_b ? c->k : c->n) + gap, .transposed = c->transposed_b};
    s.y = (GemmOperand){.row = c->n + gap};
    size_t a = s.a.row * (c->transposed_a ? c->k : c->m),
           b = s.b.row * (c->transposed_b ? c->n : c->k);
    size_t y = s.y.row * c->m;
    for (int i = GEMM_BATCH_DIMS - 1; i >= 0; i--) {
        s.a.batch[i] = i == 1 ? 0 : a;  // shared along the middle batch dimension
        s.y.batch[i] = y;
        s.b.batch[i] = c->packed || i == 0 ? 0 : b;
        if (i != 1) a *= s.batch[i];
        if (i != 0) b *= s.batch[i];
        y *= s.batch[i];
    }
    return s;
}

static double expected(const GemmShape *s, const Gemm *g, const float *b, const size_t at[3],
                       uint32_t i, uint32_t j) {
    double             sum = 0;
    const GemmOperand *sa = &s->a, *sb = &s->b;
    for (uint32_t x = 0; x < s->k; x++) {
        double u = (double)g->a[at[0] + (sa->transposed ? x * sa->row + i : i * sa->row + x)];
        double v = (double)b[at[1] + (sb->transposed ? j * sb->row + x : x * sb->row + j)];
        sum += u * v;
    }
    sum *= (double)s->scale;
    if (g->epilogue.bias != NULL) sum += (double)g->epilogue.bias[j];
    if (g->epilogue.add != NULL) sum += (double)g->epilogue.add[at[2] + i * s->y.row + j];
    sum = fmin(fmax(sum, (double)g->epilogue.lo), (double)g->epilogue.hi);
    if (g->epilogue.program == NULL) return sum;
    return (sum * (double)g->epilogue.args[1].at[j] + (double)g->epilogue.args[2].at[0]) *
           (double)g->epilogue.args[3].at[at[2] + i * s->y.row + j];
}

static void starts(const GemmShape *s, uint32_t place, size_t at[3]) {
    uint32_t           p[3] = {place / s->batch[2] / s->batch[1], place / s->batch[2] % s->batch[1],
                               place % s->batch[2]};
    const GemmOperand *sides[3] = {&s->a, &s->b, &s->y};
    for (int i = 0; i < 3; i++) {
        at[i] = 0;
        for (int j = 0; j < 3; j++) at[i] += p[j] * sides[i]->batch[j];
    }
}

static void run_all(const Gemm *g, const Isa *isa, uint32_t parts, size_t numbers) {
    size_t bytes = gemm_scratch(&g->shape, isa, &g->version);
    memset(g->y, 0x7f, numbers * sizeof(float));
    for (uint32_t i = 0; i < parts; i++) {
        Part part = {i, parts, exact_bytes(bytes)};
        isa->gemm(g, part);
        free(part.scratch);
    }
}

static void compare(const Gemm *g, const double *want, const char *isa) {
    const GemmShape *s = &g->shape;
    size_t           at[3];
    for (uint32_t p = 0; p < gemm_batch_count(s); p++) {
        starts(s, p, at);
        for (uint32_t i = 0; i < s->m; i++)
            for (uint32_t j = 0; j < s->n; j++, want++) {
                double got = (double)g->y[at[2] + i * s->y.row + j];
                if (fabs(got - *want) > 1e-5 * (fabs(*want) + (double)s->k * 0.05 + 1))
                    fail_msg("%s %ux%ux%u place %u row %u column %u is %g, not %g", isa, s->m, s->n,
                             s->k, p, i, j, got, *want);
            }
        // Padding between rows is not written.
        for (uint32_t i = 0; i + 1 < s->m && s->y.row > s->n; i++)
            assert_memory_equal(&g->y[at[2] + i * s->y.row + s->n], "\x7f\x7f\x7f\x7f", 4);
    }
}

static double *want_all(const Gemm *g, const float *b) {
    const GemmShape *s = &g->shape;
    double          *want = exact_bytes((size_t)gemm_batch_count(s) * s->m * s->n * sizeof *want),
           *to = want;
    size_t at[3];
    for (uint32_t p = 0; p < gemm_batch_count(s); p++) {
        starts(s, p, at);
        for (uint32_t i = 0; i < s->m; i++)
            for (uint32_t j = 0; j < s->n; j++) *to++ = expected(s, g, b, at, i, j);
    }
    return want;
}

static void every_version(Gemm *g, const Isa *isa, const CacheSizes *c, const double *want,
                          size_t numbers) {
    static const uint32_t parts[] = {1, 2, 3, 7};
    Version               v[MAX_VERSIONS];
    uint32_t              n = gemm_versions(&g->shape, isa, c, v, MAX_VERSIONS);
    assert_true(n >= 1);
    for (uint32_t i = 0; i < n; i++) {
        g->version = v[i];
        assert_true(gemm_tasks(&g->shape, isa, &v[i]) >= 1);
        run_all(g, isa, parts[i % COUNT(parts)], numbers);
        compare(g, want, isa->name);
    }
}

// program: (sum * args[1] per column + args[2]) * args[3] laid out as the output
static const ElementwiseProgram program = {
    .n_steps = 3,
    .n_args = 4,
    .steps = {{EWISE_MUL, 0, EWISE_ARG, EWISE_ARG + 1, 0, 0, 0, 0},
              {EWISE_ADD, 0, 0, EWISE_ARG + 2, 0, 0, 0, 0},
              {EWISE_MUL, 0, 0, EWISE_ARG + 3, 0, 0, 0, 0}}};

static void one_case(const Case *c, const Isa *isa, Rng *r) {
    GemmShape s = shape_of(c);
    uint32_t  padded = (s.n + isa->lanes - 1) / isa->lanes * isa->lanes;
    size_t    ny = span(&s, &s.y, s.m, s.n);
    float *a = noise(r, span(&s, &s.a, c->transposed_a ? s.k : s.m, c->transposed_a ? s.m : s.k));
    float *b = noise(r, span(&s, &s.b, c->transposed_b ? s.n : s.k, c->transposed_b ? s.k : s.n));
    float *pack = exact_bytes(gemm_pack_bytes(s.n, s.k, isa)), *y = exact_bytes(ny * sizeof *y);
    float *bias = noise(r, padded), *add = noise(r, ny), *per = noise(r, padded), one = 0.25f;
    Gemm   g = {.shape = s, .a = a, .b = b, .y = y};
    g.epilogue = (Epilogue){.lo = -INFINITY, .hi = INFINITY};
    if (c->epilogue)
        g.epilogue = (Epilogue){
            .bias = bias,
            .add = add,
            .lo = -1,
            .hi = 1.5f,
            .program = &program,
            .args = {{0}, {per, EWISE_PER_LANE}, {&one, EWISE_SCALAR}, {add, EWISE_CONTIGUOUS}}};
    double *want = want_all(&g, b);
    if (c->packed) {
        gemm_pack(s.n, s.k, b, s.b.row, c->transposed_b, 1, isa, pack);
        g.b = pack;
    }
    every_version(&g, isa, &caches, want, ny);
    every_version(&g, isa, &tiny, want, ny);
    void *all[] = {a, b, pack, y, bias, add, per, want};
    for (size_t i = 0; i < COUNT(all); i++) free(all[i]);
}

static void sizes_and_layouts(void **state) {
    (void)state;
    static const uint32_t sizes[][3] = {{1, 1, 1},   {1, 40, 33},   {2, 17, 9},  {5, 8, 64},
                                        {13, 50, 7}, {29, 33, 130}, {3, 100, 1}, {64, 24, 20}};
    const Isa            *isas[3];
    uint32_t              n = instruction_sets(isas);
    Rng                   r = {7};
    for (uint32_t i = 0; i < n; i++)
        for (size_t j = 0; j < COUNT(sizes); j++)
            for (uint32_t k = 0; k < 16; k++) {
                Case c = {.m = sizes[j][0], .n = sizes[j][1], .k = sizes[j][2]};
                c.transposed_a = (k & 1) != 0;
                c.transposed_b = (k & 2) != 0;
                c.packed = (k & 4) != 0;
                c.epilogue = c.gap = (k & 8) != 0;
                c.batch[0] = c.batch[1] = c.batch[2] = 1;
                one_case(&c, isas[i], &r);
            }
}

static void stacks(void **state) {
    (void)state;
    const Isa *isas[3];
    uint32_t   n = instruction_sets(isas);
    Rng        r = {8};
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < 8; k++) {
            Case c = {.m = 7, .n = 19, .k = 12, .batch = {2, 3, 2}, .epilogue = true, .gap = true};
            c.transposed_a = (k & 1) != 0;
            c.transposed_b = (k & 2) != 0;
            c.packed = (k & 4) != 0;
            one_case(&c, isas[i], &r);
        }
}

// Rows a power of two apart are copied; with k == 0 the result is the bias.
static void odd_depths(void **state) {
    (void)state;
    const Isa *isas[3];
    uint32_t   n = instruction_sets(isas);
    Rng        r = {9};
    for (uint32_t i = 0; i < n; i++) {
        one_case(&(Case){9, 20, 1024, {1, 1, 1}, false, false, true, false, true}, isas[i], &r);
        one_case(&(Case){1, 20, 3000, {1, 1, 1}, false, true, true, false, true}, isas[i], &r);
        one_case(&(Case){9, 20, 0, {1, 1, 1}, false, false, true, true, true}, isas[i], &r);
        one_case(&(Case){9, 20, 0, {1, 1, 1}, false, false, false, true, true}, isas[i], &r);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_layouts),
        cmocka_unit_test(stacks),
        cmocka_unit_test(odd_depths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
