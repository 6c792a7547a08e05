// Products with weights of 16, 8 and 4 bits against sums in double: every version and instruction
// set, odd sizes, blocks that do not fill the last one, with and without zero points.
#include "kernel/narrow_weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/kernel/arrays.h"
#include "tests/kernel/isas.h"
#include "tests/runner.h"

enum { MAX_VERSIONS = 64, NO_ZEROS = 0, PACKED_ZEROS, FLOAT_ZEROS, ZERO_KINDS };

static const CacheSizes caches = {32 << 10, 1 << 20, 32 << 20}, tiny = {1 << 10, 8 << 10, 1 << 20};

static float *noise(Rng *r, size_t n) {
    float *x = exact_bytes(n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = (float)rng_below(r, 2001) / 1000 - 1;
    return x;
}

static uint8_t *bytes(Rng *r, size_t n) {
    uint8_t *x = exact_bytes(n);
    for (size_t i = 0; i < n; i++) x[i] = (uint8_t)rng_below(r, 256);
    return x;
}

static double half_value(uint16_t h, GemmWeights kind) {
    Tensor t = {.dtype = kind == GEMM_F16 ? DT_F16 : DT_BF16, .rank = 1, .dims = {1}, .data = &h};
    return tensor_get_f64(&t, 0);
}

static const ElementwiseProgram program = {
    .n_steps = 2,
    .n_args = 3,
    .steps = {{EWISE_MUL, 0, EWISE_ARG, EWISE_ARG + 1, 0, 0, 0, 0},
              {EWISE_ADD, 0, 0, EWISE_ARG + 2, 0, 0, 0, 0}}};

typedef struct Work {
    Gemm    g;
    float  *a, *y, *bias, *add, *per;
    void   *packed;
    double *real;  // [n][k]
    Rng     rng;
} Work;

static void begin(Work *w, GemmShape s, const Isa *isa, bool epilogue) {
    uint32_t padded = round_up(s.n, isa->lanes);
    w->a = noise(&w->rng, (size_t)s.m * s.k);
    w->y = exact_bytes((size_t)s.m * s.n * sizeof(float));
    w->bias = noise(&w->rng, padded);
    w->add = noise(&w->rng, (size_t)s.m * s.n);
    w->per = noise(&w->rng, padded);
    w->real = exact_bytes((size_t)s.n * s.k * sizeof *w->real);
    w->packed = exact_bytes(narrow_pack_bytes(&s, isa));
    w->g = (Gemm){.shape = s, .a = w->a, .b = w->packed, .y = w->y};
    w->g.epilogue = (Epilogue){.lo = -INFINITY, .hi = INFINITY};
    if (epilogue)
        w->g.epilogue =
            (Epilogue){.bias = w->bias,
                       .add = w->add,
                       .lo = -2,
                       .hi = 3,
                       .program = &program,
                       .args = {{0}, {w->per, EWISE_PER_LANE}, {w->add, EWISE_CONTIGUOUS}}};
}

static void end(Work *w) {
    void *all[] = {w->a, w->y, w->bias, w->add, w->per, w->real, w->packed};
    for (size_t i = 0; i < COUNT(all); i++) free(all[i]);
}

static double want_at(const Work *w, uint32_t i, uint32_t j, double *size) {
    const GemmShape *s = &w->g.shape;
    const Epilogue  *f = &w->g.epilogue;
    double           sum = 0;
    *size = 1;
    for (uint32_t k = 0; k < s->k; k++) {
        double x = (double)w->a[(size_t)i * s->k + k] * w->real[(size_t)j * s->k + k];
        sum += x;
        *size += fabs(x);
    }
    if (f->program == NULL) return sum;
    sum += (double)f->bias[j] + (double)f->add[(size_t)i * s->n + j];
    sum = fmin(fmax(sum, (double)f->lo), (double)f->hi);
    return sum * (double)w->per[j] + (double)w->add[(size_t)i * s->n + j];
}

// The integers are far from their zero points, whose share of the sum cancels.
static void compare(const Work *w, double room_for_zeros, const char *isa) {
    const GemmShape *s = &w->g.shape;
    for (uint32_t i = 0; i < s->m; i++)
        for (uint32_t j = 0; j < s->n; j++) {
            double size, want = want_at(w, i, j, &size);
            double got = (double)w->y[(size_t)i * s->n + j];
            if (!(fabs(got - want) <= 2e-6 * size + room_for_zeros))
                fail_msg("%s kind %d %ux%ux%u block %u row %u column %u is %g, not %g", isa,
                         (int)s->weights, s->m, s->n, s->k, s->block, i, j, got, want);
        }
}

static void every_version(Work *w, const Isa *isa, const CacheSizes *c, double slack) {
    static const uint32_t parts[] = {1, 3, 2, 7};
    Version               v[MAX_VERSIONS];
    Gemm                 *g = &w->g;
    uint32_t              n = gemm_versions(&g->shape, isa, c, v, MAX_VERSIONS);
    assert_int_equal(v[0].pack == GEMM_WIDEN, g->shape.m <= GEMM_WIDEN_ROWS);
    for (uint32_t i = 0; i < n; i++) {
        g->version = v[i];
        memset(w->y, 0x7f, (size_t)g->shape.m * g->shape.n * sizeof(float));
        for (uint32_t p = 0; p < parts[i % COUNT(parts)]; p++) {
            Part part = {p, parts[i % COUNT(parts)],
                         exact_bytes(gemm_scratch(&g->shape, isa, &v[i]))};
            isa->gemm(g, part);
            free(part.scratch);
        }
        compare(w, slack, isa->name);
    }
}

static GemmShape narrow_shape(const uint32_t size[3], GemmWeights kind) {
    GemmShape s = gemm_shape(size[0], size[1], size[2]);
    s.packed = false;
    s.weights = kind;
    return s;
}

static uint32_t bits_at(const uint8_t *p, size_t bit, uint32_t bits) {
    return (uint32_t)p[bit / 8] >> bit % 8 & ((1U << bits) - 1);
}

static void blocks_case(GemmShape s, int zeros, const Isa *isa, bool epilogue) {
    Work     w = {.rng = {s.k * 7 + s.block}};
    uint32_t bits = narrow_bits(&s), blocks = narrow_blocks(&s);
    size_t   blob = (size_t)s.block * bits / 8, zero_row = ((size_t)blocks * bits + 7) / 8;
    s.zeros = zeros != NO_ZEROS;
    begin(&w, s, isa, epilogue);
    uint8_t *data = bytes(&w.rng, s.n * blocks * blob), *packed = bytes(&w.rng, s.n * zero_row);
    float   *scales = noise(&w.rng, (size_t)s.n * blocks),
          *points = noise(&w.rng, (size_t)s.n * blocks);
    BlockWeights b = {.data = data, .scales = scales, .column_scale = epilogue ? w.per : NULL};
    if (zeros == PACKED_ZEROS) b.zeros = packed;
    if (zeros == FLOAT_ZEROS) b.float_zeros = points;
    for (uint32_t j = 0; j < s.n; j++)
        for (uint32_t k = 0; k < s.k; k++) {
            size_t block = (size_t)j * blocks + k / s.block;
            double zero = (double)(1U << (bits - 1));
            if (zeros == PACKED_ZEROS)
                zero = bits_at(packed + j * zero_row, (size_t)k / s.block * bits, bits);
            if (zeros == FLOAT_ZEROS) zero = (double)points[block];
            double q = bits_at(data + block * blob, (size_t)k % s.block * bits, bits);
            w.real[(size_t)j * s.k + k] = (q - zero) * (double)scales[block];
            if (epilogue) w.real[(size_t)j * s.k + k] *= (double)w.per[j];
        }
    narrow_pack(&s, &b, isa, w.packed);
    double slack = 2e-6 * (1U << bits) * s.k;
    every_version(&w, isa, &caches, slack);
    every_version(&w, isa, &tiny, slack);
    end(&w);
    void *all[] = {data, packed, scales, points};
    for (size_t i = 0; i < COUNT(all); i++) free(all[i]);
}

static const uint32_t sizes[][3] = {{1, 1, 1},    {1, 70, 256}, {1, 130, 100}, {2, 33, 64},
                                    {3, 17, 50},  {4, 40, 31},  {5, 24, 48},   {9, 65, 130},
                                    {33, 20, 96}, {4, 16, 16}};

static void integers(void **state) {
    (void)state;
    static const uint32_t blocks[] = {16, 32, 256};
    const Isa            *isas[3];
    size_t                n = isas_here(isas);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < COUNT(sizes); j++)
            for (size_t k = 0; k < COUNT(blocks) * ZERO_KINDS * 2; k++) {
                GemmShape s = narrow_shape(sizes[j], k % 2 == 0 ? GEMM_U4 : GEMM_U8);
                s.block = blocks[k / 2 % COUNT(blocks)];
                blocks_case(s, (int)(k / 2 / COUNT(blocks)), isas[i], (j + k) % 2 == 0);
            }
}

static void halves(void **state) {
    (void)state;
    static const GemmWeights kinds[] = {GEMM_F16, GEMM_BF16};
    const Isa               *isas[3];
    size_t                   n = isas_here(isas);
    for (size_t i = 0; i < n * COUNT(sizes) * 4; i++) {
        const Isa *isa = isas[i % n];
        GemmShape  s = narrow_shape(sizes[i / n % COUNT(sizes)], kinds[i / n / COUNT(sizes) % 2]);
        Work       w = {.rng = {i}};
        bool       transposed = i / n / COUNT(sizes) / 2 != 0;
        begin(&w, s, isa, i % 2 == 0);
        uint16_t *h = exact_bytes((size_t)s.n * s.k * sizeof *h);
        for (size_t k = 0; k < (size_t)s.n * s.k; k++) {
            Tensor t = {.dtype = s.weights == GEMM_F16 ? DT_F16 : DT_BF16, .rank = 1, .dims = {1}};
            t.data = &h[k];
            tensor_set(&t, 0, (double)rng_below(&w.rng, 2001) / 1000 - 1);
            if (k % 11 == 0) tensor_set(&t, 0, 3e-6);  // subnormal as float16
            size_t column = transposed ? k / s.k : k % s.n, row = transposed ? k % s.k : k / s.n;
            w.real[column * s.k + row] = half_value(h[k], s.weights);
        }
        narrow_pack_half(&s, h, transposed, isa, w.packed);
        every_version(&w, isa, &caches, 0);
        every_version(&w, isa, &tiny, 0);
        free(h);
        end(&w);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(integers), cmocka_unit_test(halves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
