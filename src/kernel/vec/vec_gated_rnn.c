#include "kernel/gated_rnn.h"
#include "kernel/vec/vec_int.h"
#include "kernel/vec/vec_math.h"

gated_rnn_fn VEC(gated_rnn);

// Offset of vector i of a row.
#define AT(i) ((size_t)(i)*VEC_LANES)

// Sequences [first, first + rows) of one direction, and the part's scratch for them.
typedef struct Run {
    const GatedRnn *g;
    GatedRnnPlan    plan;
    GatedRnnScratch layout;
    const float    *packed;  // weights of the direction
    float          *sums, *h, *c, *late;
    Gemm            inputs, early, later;
    uint32_t        direction, first, rows;
} Run;

static size_t state_at(const GatedRnnShape *s, uint32_t direction, uint32_t n) {
    return ((s->batch_first ? (size_t)n * s->directions + direction
                            : (size_t)direction * s->batch + n)) *
           s->hidden;
}

static size_t output_at(const GatedRnnShape *s, uint32_t direction, uint32_t n, uint32_t t) {
    if (s->batch_first) return (((size_t)n * s->steps + t) * s->directions + direction) * s->hidden;
    return (((size_t)t * s->directions + direction) * s->batch + n) * s->hidden;
}

static Gemm product(uint32_t m, uint32_t n, uint32_t k, const float *b) {
    static const CacheSizes caches = {32 << 10, 512 << 10, 0};
    const Isa               self = {.lanes = VEC_LANES, .registers = VEC_LANES == 16 ? 32 : 16};
    Gemm                    g = {.shape = gemm_shape(m, n, k), .b = b};
    g.epilogue.lo = -INFINITY;
    g.epilogue.hi = INFINITY;
    gemm_versions(&g.shape, &self, &caches, &g.version, 1);
    return g;
}

// y += a b, or y = bias + a b if the product has a bias. Such products need no scratch.
static void add_product(const Run *r, Gemm *g, const float *a, size_t a_row, float *y,
                        size_t y_row) {
    g->a = a;
    g->shape.a.row = a_row;
    g->y = y;
    g->shape.y.row = y_row;
    g->epilogue.add = g->epilogue.bias == NULL ? y : NULL;
    VEC(gemm)(g, (Part){0, 1, r->sums});
}

// Input projections of steps [from, from + steps), to sums [steps][rows][columns].
static void project_inputs(Run *r, uint32_t from, uint32_t steps) {
    const GatedRnnShape *s = &r->g->shape;
    Gemm                *g = &r->inputs;
    bool                 together = !s->batch_first && r->rows == s->batch;
    size_t               first =
        s->batch_first ? (size_t)r->first * s->steps + from : (size_t)from * s->batch + r->first;
    g->a = r->g->x + first * s->input;
    g->y = r->sums;
    g->shape.m = together ? steps * r->rows : steps;
    g->shape.batch[2] = together ? 1 : r->rows;
    g->shape.a.row = s->batch_first || together ? s->input : (size_t)s->batch * s->input;
    g->shape.a.batch[2] = s->batch_first ? (size_t)s->steps * s->input : s->input;
    g->shape.y.row = together ? r->plan.columns : (size_t)r->rows * r->plan.columns;
    g->shape.y.batch[2] = r->plan.columns;
    VEC(gemm)(g, (Part){0, 1, r->sums});
}

typedef struct Limits {
    Vf lo, hi;
} Limits;

VEC_INLINE Vf limit(const Limits *l, Vf x) { return vf_min(l->hi, vf_max(l->lo, x)); }

static void lstm_row(const Run *r, const float *sums, float *h, float *c) {
    const GatedRnnShape *s = &r->g->shape;
    const float         *peep = s->peepholes ? r->packed + r->plan.peep : NULL;
    const Limits         l = {vf_set(-s->clip), vf_set(s->clip)};
    uint32_t             padded = r->plan.padded;
    for (uint32_t j = 0; j < padded; j += VEC_LANES, sums += AT(4)) {
        Vf i = vf_load(sums), o = vf_load(sums + AT(1)), f = vf_load(sums + AT(2));
        Vf g = vf_tanh(limit(&l, vf_load(sums + AT(3)))), was = vf_load(c + j);
        if (peep != NULL) i += vf_load(peep + j) * was;
        if (peep != NULL) f += vf_load(peep + (size_t)2 * padded + j) * was;
        i = vf_sigmoid(limit(&l, i));
        f = s->input_forget ? 1.0f - i : vf_sigmoid(limit(&l, f));
        Vf now = f * was + i * g;
        if (peep != NULL) o += vf_load(peep + padded + j) * now;
        vf_store(c + j, now);
        vf_store(h + j, vf_sigmoid(limit(&l, o)) * vf_tanh(limit(&l, now)));
    }
}

static void plain_row(const Run *r, const float *sums, float *h) {
    const Limits l = {vf_set(-r->g->shape.clip), vf_set(r->g->shape.clip)};
    bool         relu = r->g->shape.kind == GATED_RNN_RELU;
    for (uint32_t j = 0; j < r->plan.padded; j += VEC_LANES) {
        Vf x = limit(&l, vf_load(sums + j));
        vf_store(h + j, relu ? vf_max(x, vf_set(0)) : vf_tanh(x));
    }
}

// Applies the z and r gates in place; unless linear_before_reset, r * h goes to late.
static void gru_early(const Run *r, float *sums, const float *h, float *late) {
    const GatedRnnShape *s = &r->g->shape;
    const Limits         l = {vf_set(-s->clip), vf_set(s->clip)};
    for (uint32_t j = 0; j < r->plan.padded; j += VEC_LANES, sums += AT(2)) {
        vf_store(sums, vf_sigmoid(limit(&l, vf_load(sums))));
        Vf reset = vf_sigmoid(limit(&l, vf_load(sums + AT(1))));
        vf_store(sums + AT(1), reset);
        if (!s->linear_before_reset) vf_store(late + j, reset * vf_load(h + j));
    }
}

static void gru_late(const Run *r, const float *sums, const float *late, float *h) {
    const GatedRnnShape *s = &r->g->shape;
    const Limits         l = {vf_set(-s->clip), vf_set(s->clip)};
    const float         *last = sums + r->plan.early;
    for (uint32_t j = 0; j < r->plan.padded; j += VEC_LANES, sums += AT(2)) {
        Vf z = vf_load(sums), g = vf_load(last + j);
        if (s->linear_before_reset) g += vf_load(sums + AT(1)) * vf_load(late + j);
        g = vf_tanh(limit(&l, g));
        vf_store(h + j, (1.0f - z) * g + z * vf_load(h + j));
    }
}

static bool active(const Run *r, uint32_t row, uint32_t t) {
    return r->g->lens == NULL || (int64_t)t < (int64_t)r->g->lens[r->first + row];
}

static void gru_step(Run *r, float *sums, uint32_t t) {
    const GatedRnnPlan *p = &r->plan;
    size_t              padded = p->padded, columns = p->columns;
    for (uint32_t i = 0; i < r->rows; i++)
        gru_early(r, sums + i * columns, r->h + i * padded, r->late + i * padded);
    if (r->g->shape.linear_before_reset)
        add_product(r, &r->later, r->h, padded, r->late, padded);
    else
        add_product(r, &r->later, r->late, padded, sums + p->early, columns);
    for (uint32_t i = 0; i < r->rows; i++)
        if (active(r, i, t))
            gru_late(r, sums + i * columns, r->late + i * padded, r->h + i * padded);
}

static void write_step(const Run *r, uint32_t t) {
    const GatedRnnShape *s = &r->g->shape;
    for (uint32_t i = 0; i < r->rows && r->g->y != NULL; i++) {
        float *to = r->g->y + output_at(s, r->direction, r->first + i, t);
        if (active(r, i, t))
            memcpy(to, r->h + i * (size_t)r->plan.padded, s->hidden * sizeof(float));
        else
            memset(to, 0, s->hidden * sizeof(float));
    }
}

static void step(Run *r, float *sums, uint32_t t) {
    size_t padded = r->plan.padded, columns = r->plan.columns;
    add_product(r, &r->early, r->h, padded, sums, columns);
    if (r->g->shape.kind == GATED_RNN_GRU) gru_step(r, sums, t);
    for (uint32_t i = 0; i < r->rows && r->g->shape.kind != GATED_RNN_GRU; i++) {
        if (!active(r, i, t)) continue;
        if (r->g->shape.kind == GATED_RNN_LSTM)
            lstm_row(r, sums + i * columns, r->h + i * padded, r->c + i * padded);
        else
            plain_row(r, sums + i * columns, r->h + i * padded);
    }
    write_step(r, t);
}

static void start_state(const Run *r, const float *from, float *to) {
    const GatedRnnShape *s = &r->g->shape;
    memset(to, 0, (size_t)r->rows * r->plan.padded * sizeof(float));
    for (uint32_t i = 0; i < r->rows && from != NULL; i++)
        memcpy(to + i * (size_t)r->plan.padded, from + state_at(s, r->direction, r->first + i),
               s->hidden * sizeof(float));
}

static void end_state(const Run *r, const float *from, float *to) {
    const GatedRnnShape *s = &r->g->shape;
    for (uint32_t i = 0; i < r->rows && to != NULL; i++)
        memcpy(to + state_at(s, r->direction, r->first + i), from + i * (size_t)r->plan.padded,
               s->hidden * sizeof(float));
}

static void run_sequences(Run *r) {
    const GatedRnnShape *s = &r->g->shape;
    bool                 back = r->direction == 1 || s->reversed;
    uint32_t             block = r->g->version.rows;
    start_state(r, r->g->h0, r->h);
    start_state(r, r->g->c0, r->c);
    for (uint32_t done = 0; done < s->steps; done += block) {
        uint32_t steps = s->steps - done < block ? s->steps - done : block;
        uint32_t from = back ? s->steps - done - steps : done;
        project_inputs(r, from, steps);
        for (uint32_t i = 0; i < steps; i++) {
            uint32_t at = back ? steps - 1 - i : i;
            step(r, r->sums + (size_t)at * r->rows * r->plan.columns, from + at);
        }
    }
    end_state(r, r->h, r->g->yh);
    end_state(r, r->c, r->g->yc);
}

static void prepare(Run *r, float *scratch) {
    const GatedRnnShape *s = &r->g->shape;
    const GatedRnnPlan  *p = &r->plan;
    uint32_t             steps = s->steps < r->g->version.rows ? s->steps : r->g->version.rows;
    bool                 together = !s->batch_first && r->rows == s->batch;
    r->packed = r->g->packed + r->direction * p->stride;
    r->layout = gated_rnn_scratch_layout(s, &r->g->version, p, r->rows);
    r->sums = scratch + r->layout.sums;
    r->h = scratch + r->layout.h;
    r->c = scratch + r->layout.c;
    r->late = scratch + r->layout.late;
    r->inputs = product(together ? steps * r->rows : steps, p->columns, s->input, r->packed);
    r->inputs.epilogue.bias = r->packed + p->bias;
    r->early = product(r->rows, p->early, s->hidden, r->packed + p->r);
    if (s->kind != GATED_RNN_GRU) return;
    r->later =
        product(r->rows, p->late, s->hidden, r->packed + p->r + (size_t)p->early * s->hidden);
    if (s->linear_before_reset) r->later.epilogue.bias = r->packed + p->late_bias;
}

void VEC(gated_rnn)(const GatedRnn *g, Part part) {
    uint32_t t, end, batch = g->shape.batch;
    Run      r = {.g = g, .plan = gated_rnn_plan(&g->shape, VEC_LANES)};
    part_range(part, g->shape.directions * batch, &t, &end);
    for (; t < end; t += r.rows) {
        r.direction = t / batch;
        r.first = t % batch;
        r.rows = end - t < batch - r.first ? end - t : batch - r.first;
        prepare(&r, part.scratch);
        run_sequences(&r);
    }
}
