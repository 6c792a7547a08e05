// The mapping search against exhaustive ones: every tile of every size in every order is simulated
// step by step, on small shapes and units.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/rng.h"
#include "chip/cost/cost.h"
#include "tests/runner.h"

static Arena arena;

static int open_arena(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 26) == ERR_OK ? 0 : -1;
}

static int close_arena(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static int64_t up(int64_t n, int64_t by) { return (n + by - 1) / by; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t span(const Shape *s, int64_t outs) {
    return shape_span(outs, s->r, s->stride_h, s->dilation_h, s->h);
}

typedef struct Walk {
    const Shape *s;
    int64_t      kt, ct, pt, nt;
    int64_t      has_k, has_c, in_c, in_x, out_k, out_x;  // tiles in the buffers; -1: none
    double       weights, inputs, outputs, spilled;
    bool         sums_stay;
    int         *done;  // [k tile][x tile] parts of the input channels added so far
} Walk;

static int64_t size_of(int64_t all, int64_t tile, int64_t at) {
    return least(tile, all - at * tile);
}

static void leave_outputs(Walk *w, int64_t strips, int64_t all_c) {
    const Shape *s = w->s;
    if (w->out_k < 0) return;
    int64_t images = up(s->n, w->nt);
    double  tile = (double)size_of(s->k, w->kt, w->out_k) * (double)s->q;
    tile *= (double)size_of(s->p, w->pt, w->out_x % strips);
    tile *= (double)size_of(s->n, w->nt, w->out_x / strips);
    if (w->done[w->out_k * images * strips + w->out_x] == all_c)
        w->outputs += tile;
    else
        w->spilled += 2 * tile;
}

static void step(Walk *w, int64_t k, int64_t c, int64_t x, int64_t strips) {
    const Shape *s = w->s;
    int64_t      images = up(s->n, w->nt), all_c = up(s->c, w->ct);
    double       ks = (double)size_of(s->k, w->kt, k), cs = (double)size_of(s->c, w->ct, c);
    double       ns = (double)size_of(s->n, w->nt, x / strips);
    int64_t      rows = size_of(s->p, w->pt, x % strips);
    if (w->has_k != k || w->has_c != c) w->weights += ks * cs * (double)(s->r * s->s);
    if (w->in_c != c || w->in_x != x) {
        bool    next = w->in_c == c && x == w->in_x + 1 && x % strips != 0;
        int64_t have = next ? span(s, 1) - s->stride_h : 0;
        w->inputs += ns * cs * (double)((span(s, rows) - (have > 0 ? have : 0)) * s->w);
    }
    if (w->out_k != k || w->out_x != x) {
        leave_outputs(w, strips, all_c);
        w->out_k = k;
        w->out_x = x;
    } else if (all_c > 1) {
        w->sums_stay = true;
    }
    w->done[k * images * strips + x]++;
    w->has_k = k;
    w->has_c = w->in_c = c;
    w->in_x = x;
}

// order: 0 .. 5, a permutation of the loops, outermost first.
static void walk(Walk *w, int order) {
    static const int loops[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                    {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const Shape     *s = w->s;
    int64_t          strips = up(s->p, w->pt);
    int64_t    rounds[3] = {up(s->k, w->kt), up(s->c, w->ct), strips * up(s->n, w->nt)}, at[3];
    const int *o = loops[order];
    w->done = calloc((size_t)(rounds[0] * rounds[2]), sizeof *w->done);
    assert_non_null(w->done);
    w->has_k = w->has_c = w->in_c = w->in_x = w->out_k = w->out_x = -1;
    w->weights = w->inputs = w->outputs = w->spilled = 0;
    w->sums_stay = false;
    for (at[o[0]] = 0; at[o[0]] < rounds[o[0]]; at[o[0]]++)
        for (at[o[1]] = 0; at[o[1]] < rounds[o[1]]; at[o[1]]++)
            for (at[o[2]] = 0; at[o[2]] < rounds[o[2]]; at[o[2]]++)
                step(w, at[0], at[1], at[2], strips);
    leave_outputs(w, strips, rounds[1]);
    free(w->done);
}

static double score(const UnitSpec *u, double array, double words, double spilled) {
    double memory = (words * u->word_bits / 8 + spilled * u->sum_bits / 8) / u->port;
    return fmax(array, memory) + COST_TRAFFIC * memory;
}

static double found(const Shape *s, const UnitSpec *u) {
    Cost c = cost_of(s, u);
    return c.cycles + COST_TRAFFIC * c.memory_cycles;
}

// The best strip over all heights and orders for one tile of channels.
static double best_walk(const Shape *s, const UnitSpec *u, int64_t kt, int64_t ct, double array) {
    double best = INFINITY;
    Walk   w = {.s = s, .kt = kt, .ct = ct};
    for (w.nt = 1; w.nt <= s->n; w.nt++)
        for (w.pt = w.nt > 1 ? s->p : 1; w.pt <= s->p; w.pt++)
            for (int order = 0; order < 6; order++) {
                walk(&w, order);
                double in = (double)(w.nt * ct) * shape_touched(s, w.pt) * u->word_bits / 8;
                double out = (double)(w.nt * kt) * (double)(w.pt * s->q) * u->sum_bits / 8;
                if (in + (w.sums_stay ? out : 0) > u->buffer_bytes) continue;
                double words = w.weights + w.inputs + w.outputs;
                best = fmin(best, score(u, array, words, w.spilled));
            }
    return best;
}

static double best_weights(const Shape *s, const UnitSpec *u) {
    double  best = INFINITY;
    int64_t elements = (int64_t)u->rows * u->cols;
    for (int64_t k = 1; k <= elements; k++)
        for (int64_t c = 1; k * c <= elements; c++) {
            int64_t wide_k = k * u->vectors, wide_c = c * u->lanes;
            double  array = (double)(up(s->k, wide_k) * up(s->c, wide_c)) * (double)s->n *
                           (double)(s->p * s->q) * (double)(s->r * s->s);
            for (int64_t i = 1; i <= up(s->k, wide_k); i++)
                for (int64_t j = 1; j <= up(s->c, wide_c); j++) {
                    int64_t held = i * u->vectors * j * u->lanes * s->r * s->s;
                    if (held * u->word_bits / 8 > u->weight_bytes) continue;
                    best = fmin(best, best_walk(s, u, least(i * wide_k, s->k),
                                                least(j * wide_c, s->c), array));
                }
        }
    return best;
}

static double best_outputs(const Shape *s, const UnitSpec *u) {
    double best = INFINITY;
    for (int way = 0; way < 4; way++) {
        int64_t rows = way & 1 ? 1 : u->rows, cols = way & 2 ? 1 : u->cols;
        int64_t k = (int64_t)u->rows * u->cols / rows / cols;
        double  array = (double)(up(s->p, rows) * up(s->q, cols)) * (double)up(s->k, k) *
                       (double)(s->n * s->c) * (double)(s->r * s->s);
        for (int64_t i = 1; i <= up(s->k, k); i++)
            for (int64_t c = 1; c <= s->c; c++) {
                int64_t kt = least(i * k, s->k), held = kt * c * s->r * s->s * u->word_bits / 8;
                if (held > (int64_t)u->rows * u->cols * u->weight_bytes) continue;
                best = fmin(best, best_walk(s, u, kt, c, array));
            }
    }
    return best;
}

typedef struct RowChoice {
    int64_t a, r, t, q, p, e, n, m;
} RowChoice;

static double strip_rows(const Shape *s, int64_t e) {
    double rows = 0;
    for (int64_t at = 0; at < s->p; at += e) rows += (double)span(s, least(e, s->p - at));
    return rows;
}

// All loop orders of a row stationary unit for one choice of sizes: inputs of a pass or of all
// channels in the buffer, or weights that stay.
static double row_score(const Shape *s, const UnitSpec *u, const RowChoice *x) {
    int64_t segments = 0, c = least(x->q * x->r, s->c), pass = x->p * x->t;
    for (int64_t at = 0; at < s->p; at += x->e) segments += up(least(x->e, s->p - at), x->a);
    double array = (double)(s->n * up(s->k, x->t)) * (double)(up(s->c, x->r) * s->s) *
                   (double)(s->q * segments);
    double sums = (double)(x->m * x->n) * (double)(x->e * s->q) * u->sum_bits / 8;
    double in = (double)x->n * shape_touched(s, x->e) * u->word_bits / 8, best = INFINITY;
    double again = (double)up(s->p, x->e) * (double)up(s->n, x->n), blocks = (double)up(s->k, x->m);
    double w = shape_weights(s), o = shape_outputs(s), row = (double)(s->n * s->c) * (double)s->w;
    if (sums + in * (double)c <= u->buffer_bytes) {
        double i = row * strip_rows(s, x->e);
        best = fmin(best, score(u, array, w * again + i * blocks + o, 0));
        if (c == s->c && x->m == pass)
            best = fmin(best, score(u, array, w + row * (double)s->h * blocks + o, 0));
    }
    if (sums + in * (double)s->c <= u->buffer_bytes)
        best = fmin(best, score(u, array, w * again + row * strip_rows(s, x->e) + o, 0));
    return best;
}

static double best_channels(const Shape *s, const UnitSpec *u, RowChoice x) {
    double  best = INFINITY;
    int64_t words = u->input_bytes * 8 / u->word_bits, held = u->weight_bytes * 8 / u->word_bits;
    for (x.q = 1; x.q * s->s <= words && x.q <= up(s->c, x.r); x.q++)
        for (x.p = 1; x.p * x.q * s->s <= held && x.p <= u->sum_bytes * 8 / u->sum_bits; x.p++)
            for (x.m = x.p * x.t; x.m - x.p * x.t < s->k; x.m += x.p * x.t)
                best = fmin(best, row_score(s, u, &x));
    return best;
}

static double best_rows(const Shape *s, const UnitSpec *u) {
    double    best = INFINITY;
    RowChoice x;
    int64_t   above = u->rows / s->r;
    for (x.a = 1; x.a <= least(u->cols, s->p); x.a++)
        for (x.r = 1; x.r <= least(above, s->c); x.r++)
            for (x.t = 1; x.t <= least(above / x.r * (u->cols / x.a), s->k); x.t++)
                for (x.e = 1; x.e <= s->p; x.e++)
                    for (x.n = 1; x.n <= s->n; x.n++)
                        if (s->n % x.n == 0) best = fmin(best, best_channels(s, u, x));
    return best;
}

static int64_t pick(Rng *r, int64_t lo, int64_t hi) {
    return lo + (int64_t)rng_below(r, (uint64_t)(hi - lo + 1));
}

static Shape tiny(Rng *r, int64_t most) {
    Shape s = {.name = "tiny", .op = "Conv", .groups = 1, .dilation_h = 1, .dilation_w = 1};
    s.n = pick(r, 1, 2);
    s.k = pick(r, 1, most);
    s.c = pick(r, 1, most);
    s.r = pick(r, 1, 3);
    s.s = pick(r, 1, 3);
    s.p = pick(r, 1, most);
    s.q = pick(r, 1, 4);
    s.stride_h = pick(r, 1, 2);
    s.stride_w = pick(r, 1, 2);
    s.h = shape_span(s.p, s.r, s.stride_h, 1, INT64_MAX);
    s.w = shape_span(s.q, s.s, s.stride_w, 1, INT64_MAX);
    return s;
}

static UnitSpec tiny_unit(const char *name, Rng *r) {
    UnitSpec u;
    assert_int_equal(unit_spec_load(name, &arena, &u), ERR_OK);
    u.rows = (int)pick(r, 3, 6);
    u.cols = (int)pick(r, 1, 5);
    u.vectors = u.dataflow == WEIGHT_STATIONARY ? (int)pick(r, 1, 2) : 1;
    u.lanes = u.dataflow == WEIGHT_STATIONARY ? (int)pick(r, 1, 2) : 1;
    u.buffer_bytes = (int)pick(r, 30, 400);
    u.weight_bytes = (int)pick(r, 4, 40);
    u.input_bytes = (int)pick(r, 3, 12);
    u.sum_bytes = (int)pick(r, 3, 12);
    u.buffer_port = 1e6;
    u.port = (double)pick(r, 1, 8) / 4;
    return u;
}

typedef double BestFn(const Shape *s, const UnitSpec *u);

static void agree(const char *name, BestFn *best, int cases, int64_t most) {
    Rng r = {11};
    int finite = 0;
    for (int i = 0; i < cases; i++) {
        Shape    s = tiny(&r, most);
        UnitSpec u = tiny_unit(name, &r);
        double   slow = best(&s, &u), fast = found(&s, &u);
        bool     same = isinf(slow) ? isinf(fast) : fabs(fast - slow) <= 1e-9 * slow;
        finite += !isinf(slow);
        if (!same) fail_msg("%s, case %d: %g, should be %g", name, i, fast, slow);
    }
    assert_true(finite > cases / 2);
}

static void test_weight_stationary(void **state) {
    (void)state;
    agree("simba", best_weights, 150, 7);
}

static void test_output_stationary(void **state) {
    (void)state;
    agree("shidiannao", best_outputs, 150, 7);
}

static void test_row_stationary(void **state) {
    (void)state;
    agree("eyeriss", best_rows, 400, 9);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weight_stationary),
        cmocka_unit_test(test_output_stationary),
        cmocka_unit_test(test_row_stationary),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
