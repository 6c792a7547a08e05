// RNN, GRU and LSTM against the reference: directions, layouts, states, lengths, peepholes, parts.
#include "kernel/gated_rnn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"
#include "kernel/ref/ref_rnn.h"
#include "tests/kernel/arrays.h"
#include "tests/runner.h"

// Inputs and outputs.
typedef struct Data {
    float   *x, *w, *r, *b, *p, *h0, *c0;
    int32_t *lens;
} Data;

typedef struct Out {
    float *y, *yh, *yc;
} Out;

static float *noise(Rng *r, size_t n) {
    float *x = exact_bytes(n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = (float)rng_below(r, 2001) / 1000 - 1;
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

static size_t state_count(const GatedRnnShape *s) {
    return (size_t)s->directions * s->batch * s->hidden;
}

static size_t gates_of(const GatedRnnShape *s) {
    return s->kind == GATED_RNN_LSTM ? 4 : s->kind == GATED_RNN_GRU ? 3 : 1;
}

static Data data_of(const GatedRnnShape *s, Rng *r) {
    size_t gates = gates_of(s), d = s->directions, h = s->hidden;
    Data   x = {.x = noise(r, (size_t)s->steps * s->batch * s->input),
                .w = noise(r, d * gates * h * s->input),
                .r = noise(r, d * gates * h * h),
                .b = noise(r, d * 2 * gates * h),
                .p = noise(r, d * 3 * h),
                .h0 = noise(r, state_count(s)),
                .c0 = noise(r, state_count(s)),
                .lens = exact_bytes(s->batch * sizeof(int32_t))};
    for (uint32_t i = 0; i < s->batch; i++) x.lens[i] = (int32_t)rng_below(r, s->steps + 1);
    return x;
}

static void data_free(Data *d) {
    void *all[] = {d->x, d->w, d->r, d->b, d->p, d->h0, d->c0, d->lens};
    for (size_t i = 0; i < COUNT(all); i++) free(all[i]);
}

static Out out_of(const GatedRnnShape *s) {
    return (Out){exact_bytes(s->steps * state_count(s) * sizeof(float)),
                 exact_bytes(state_count(s) * sizeof(float)),
                 exact_bytes(state_count(s) * sizeof(float))};
}

static void out_free(Out *o) {
    free(o->y);
    free(o->yh);
    free(o->yc);
}

static void reference(const GatedRnnShape *s, const Data *d, bool bare, Out *o) {
    Arena   a;
    int64_t big = 1 << 20;
    Tensor x = ARRAY(DT_F32, d->x, big), w = ARRAY(DT_F32, d->w, big), r = ARRAY(DT_F32, d->r, big);
    Tensor b = ARRAY(DT_F32, d->b, big), p = ARRAY(DT_F32, d->p, big),
           h0 = ARRAY(DT_F32, d->h0, big);
    Tensor c0 = ARRAY(DT_F32, d->c0, big), lens = ARRAY(DT_I32, d->lens, big);
    Tensor y = ARRAY(DT_F32, o->y, big), yh = ARRAY(DT_F32, o->yh, big),
           yc = ARRAY(DT_F32, o->yc, big);
    RefRnn n = {.kind = s->kind == GATED_RNN_LSTM  ? REF_LSTM
                        : s->kind == GATED_RNN_GRU ? REF_GRU
                                                   : REF_RNN,
                .steps = s->steps,
                .batch = s->batch,
                .input = s->input,
                .hidden = s->hidden,
                .gates = (int32_t)gates_of(s),
                .directions = (int32_t)s->directions,
                .reversed = s->reversed,
                .batch_first = s->batch_first,
                .linear_before_reset = s->linear_before_reset,
                .input_forget = s->input_forget,
                .clip = isinf(s->clip) ? 0 : (double)s->clip,
                .x = &x,
                .w = &w,
                .r = &r,
                .y = &y,
                .yh = &yh,
                .yc = s->kind == GATED_RNN_LSTM ? &yc : NULL};
    for (int i = 0; i < 2; i++) {
        n.gate[i][0].fn = s->kind == GATED_RNN_TANH   ? REF_GATE_TANH
                          : s->kind == GATED_RNN_RELU ? REF_GATE_RELU
                                                      : REF_GATE_SIGMOID;
        n.gate[i][1].fn = n.gate[i][2].fn = REF_GATE_TANH;
    }
    if (!bare) n.b = &b, n.lens = &lens, n.h0 = &h0;
    if (!bare && s->kind == GATED_RNN_LSTM) n.c0 = &c0;
    if (s->peepholes) n.p = &p;
    memset(o->y, 0, s->steps * state_count(s) * sizeof(float));
    assert_int_equal(arena_init(&a, 1 << 24), ERR_OK);
    assert_int_equal(ref_rnn(&n, &a), ERR_OK);
    arena_finish(&a);
}

static void compare(const char *what, const float *got, const float *want, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) < 5e-5f * fmaxf(1, fabsf(want[i]))))
            fail_msg("%s: number %zu is %g, not %g", what, i, (double)got[i], (double)want[i]);
}

static void run(const GatedRnnShape *s, const GatedRnn *g, const Isa *isa, uint32_t parts) {
    for (uint32_t i = 0; i < parts; i++) {
        Part part = {i, parts, exact_bytes(gated_rnn_scratch(s, isa, &g->version))};
        isa->gated_rnn(g, part);
        free(part.scratch);
    }
}

static void every_version(const GatedRnnShape *s, const Data *d, bool bare, const Isa *isa,
                          const Out *want) {
    static const uint32_t   parts[] = {1, 2, 3, 7};
    static const CacheSizes caches[] = {{32 << 10, 1 << 20, 32 << 20}, {1 << 10, 2 << 10, 1 << 20}};
    Out                     o = out_of(s);
    float                  *packed = exact_bytes(gated_rnn_pack_bytes(s, isa));
    gated_rnn_pack(s, &(GatedRnnWeights){d->w, d->r, bare ? NULL : d->b, d->p}, isa, packed);
    GatedRnn g = {.shape = *s, .packed = packed, .x = d->x, .y = o.y, .yh = o.yh};
    if (!bare) g.lens = d->lens, g.h0 = d->h0;
    if (!bare && s->kind == GATED_RNN_LSTM) g.c0 = d->c0;
    if (s->kind == GATED_RNN_LSTM) g.yc = o.yc;
    for (size_t c = 0; c < COUNT(caches); c++) {
        Version  v[8];
        uint32_t n = gated_rnn_versions(s, isa, &caches[c], v, 8);
        assert_true(n >= 1);
        for (uint32_t i = 0; i < n * COUNT(parts); i++) {
            g.version = v[i / COUNT(parts)];
            memset(o.y, 0x7f, s->steps * state_count(s) * sizeof(float));
            run(s, &g, isa, parts[i % COUNT(parts)]);
            compare("y", o.y, want->y, s->steps * state_count(s));
            compare("y_h", o.yh, want->yh, state_count(s));
            if (g.yc != NULL) compare("y_c", o.yc, want->yc, state_count(s));
        }
    }
    free(packed);
    out_free(&o);
}

static void one_case(const GatedRnnShape *s, bool bare, Rng *r) {
    const Isa *isas[3];
    uint32_t   n = instruction_sets(isas);
    Data       d = data_of(s, r);
    Out        want = out_of(s);
    reference(s, &d, bare, &want);
    for (uint32_t i = 0; i < n; i++) every_version(s, &d, bare, isas[i], &want);
    data_free(&d);
    out_free(&want);
}

static void sizes_and_switches(void **state) {
    (void)state;
    static const uint32_t sizes[][4] = {
        {1, 1, 1, 1}, {7, 1, 10, 18}, {5, 3, 4, 8}, {20, 2, 3, 5}, {3, 9, 6, 33}};
    static const GatedRnnKind kinds[] = {GATED_RNN_GRU, GATED_RNN_LSTM, GATED_RNN_TANH,
                                         GATED_RNN_RELU};
    Rng                       r = {11};
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (uint32_t k = 0; k < 64; k++) {
            GatedRnnShape s = {.kind = kinds[(k & 1) + (k >> 4 & 2)],
                               .steps = sizes[i][0],
                               .batch = sizes[i][1],
                               .input = sizes[i][2],
                               .hidden = sizes[i][3],
                               .directions = (k & 2) != 0 ? 2 : 1,
                               .reversed = k % 3 == 0,
                               .batch_first = (k & 4) != 0,
                               .linear_before_reset = (k & 8) != 0,
                               .clip = (k & 16) != 0 ? 0.5f : INFINITY};
            s.input_forget = s.kind == GATED_RNN_LSTM && k % 5 == 0;
            s.peepholes = s.kind == GATED_RNN_LSTM && (k & 8) != 0;
            one_case(&s, k % 7 == 0, &r);
        }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sizes_and_switches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
