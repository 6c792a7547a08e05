#include <math.h>
#include <string.h>

#include "base/fp.h"
#include "learn/activation.h"
#include "learn/actor_critic.h"
#include "learn/float_vec.h"
#include "learn/lstm.h"
#include "learn/repro_gemm.h"

static size_t dense_part(Trunk t) { return t.embed > 0 ? dense_params(trunk_dense(t)) : 0; }

size_t trunk_params(Trunk t) {
    return dense_part(t) + (t.bidirectional ? 2 : 1) * lstm_params(trunk_lstm(t, false));
}

size_t trunk_cache_size(Trunk t, size_t rows, size_t seqs) {
    return (t.bidirectional ? 2 : 1) * lstm_cache_size(trunk_lstm(t, false), rows, seqs);
}

void trunk_init(Trunk t, float *w, Rng *rng) {
    Lstm l = trunk_lstm(t, false);
    if (t.embed > 0) dense_init(trunk_dense(t), w, 1.414f, rng);
    w += dense_part(t);
    lstm_init(l, w, rng);
    if (t.bidirectional) lstm_init(l, w + lstm_params(l), rng);
}

void trunk_forward(Trunk t, const float *w, const Ragged *r, Mat x, float *y, float *cache) {
    size_t width = trunk_width(t), base = trunk_base(t), rows = r->n_rows;
    Lstm   ahead = trunk_lstm(t, false), back = trunk_lstm(t, true);
    if (t.embed > 0) {
        dense_forward(trunk_dense(t), w, rows, x, mat_out(y, width));
        for (size_t i = 0; i < rows; i++)
            activation_forward(ACTIVATION_RELU, base, y + i * width, y + i * width);
    } else {
        mat_copy(rows, base, x, mat_out(y, width));
    }
    w += dense_part(t);
    lstm_forward(ahead, w, r, mat(y, width), NULL, mat_out(y + base, width), NULL, cache);
    if (t.bidirectional)
        lstm_forward(back, w + lstm_params(ahead), r, mat(y, width), NULL,
                     mat_out(y + base + t.hidden, width), NULL,
                     cache + lstm_cache_size(ahead, rows, r->n_seqs));
}

void trunk_backward(Trunk t, const float *w, float *gw, const Ragged *r, Mat x, const float *y,
                    float *dy, MatOut dx, float *cache) {
    size_t width = trunk_width(t), base = trunk_base(t), rows = r->n_rows, dense = dense_part(t);
    Lstm   ahead = trunk_lstm(t, false), back = trunk_lstm(t, true);
    MatOut dbase = mat_out(dy, width);
    lstm_backward(ahead, w + dense, float_vec_after(gw, dense), r, mat(y, width), NULL,
                  mat(dy + base, width), NULL, dbase, NULL, cache);
    if (t.bidirectional)
        lstm_backward(back, w + dense + lstm_params(ahead),
                      float_vec_after(gw, dense + lstm_params(ahead)), r, mat(y, width), NULL,
                      mat(dy + base + t.hidden, width), NULL, dbase, NULL,
                      cache + lstm_cache_size(ahead, rows, r->n_seqs));
    if (t.embed > 0) {
        for (size_t i = 0; i < rows; i++)
            activation_backward(ACTIVATION_RELU, base, y + i * width, dy + i * width,
                                dy + i * width);
        dense_backward(trunk_dense(t), w, gw, rows, x, mat(dy, width), dx);
    } else if (dx.at != NULL) {
        mat_copy(rows, base, mat(dy, width), dx);
    }
}

typedef struct ActorCache {
    float *mix, *d_mix, *raw, *d_raw, *trunk;  // raw: actions before tanh
} ActorCache;

static ActorCache actor_cache(Actor a, size_t rows, float *at) {
    size_t mix = rows * trunk_width(a.trunk), raw = rows * a.actions;
    return (ActorCache){at, at + mix, at + 2 * mix, at + 2 * mix + raw, at + 2 * (mix + raw)};
}

size_t actor_cache_size(Actor a, size_t rows, size_t seqs) {
    return 2 * rows * (trunk_width(a.trunk) + a.actions) + trunk_cache_size(a.trunk, rows, seqs);
}

void actor_init(Actor a, float *w, Rng *rng) {
    trunk_init(a.trunk, w, rng);
    dense_init(actor_head(a), w + trunk_params(a.trunk), 0.1f, rng);
}

void actor_forward(Actor a, const float *w, const Ragged *r, const float *x, float *out,
                   float *cache) {
    ActorCache k = actor_cache(a, r->n_rows, cache);
    size_t     rows = r->n_rows;
    trunk_forward(a.trunk, w, r, mat(x, a.trunk.in), k.mix, k.trunk);
    dense_forward(actor_head(a), w + trunk_params(a.trunk), rows, mat(k.mix, trunk_width(a.trunk)),
                  mat_out(k.raw, a.actions));
    activation_forward(ACTIVATION_TANH, rows * a.actions, k.raw, out);
}

void actor_backward(Actor a, const float *w, float *gw, const Ragged *r, const float *x,
                    const float *out, const float *d_out, float pre_tanh_l2, float *cache) {
    ActorCache k = actor_cache(a, r->n_rows, cache);
    size_t     rows = r->n_rows, n = rows * a.actions, width = trunk_width(a.trunk);
    size_t     trunk = trunk_params(a.trunk);
    activation_backward(ACTIVATION_TANH, n, out, d_out, k.d_raw);
    if (pre_tanh_l2 != 0)
        for (size_t i = 0; i < n; i++) k.d_raw[i] += pre_tanh_l2 * k.raw[i];
    dense_backward(actor_head(a), w + trunk, gw + trunk, rows, mat(k.mix, width),
                   mat(k.d_raw, a.actions), mat_out(k.d_mix, width));
    trunk_backward(a.trunk, w, gw, r, mat(x, a.trunk.in), k.mix, k.d_mix, mat_out(NULL, 0),
                   k.trunk);
}

double actor_macs(Actor a, uint32_t items) {
    Trunk  t = a.trunk;
    double base = trunk_base(t), hidden = t.hidden, ways = t.bidirectional ? 2 : 1;
    double each = (double)t.in * t.embed + ways * 4 * hidden * (base + hidden) +
                  (double)trunk_width(t) * a.actions;
    return each * items;
}

static GemmView view(Mat x) { return (GemmView){x.at, x.ld, 1}; }

static const float *infer_dense(Dense d, const float *w, uint32_t rows, Mat x, MatOut y) {
    mat_set_rows(rows, d.out, w + (size_t)d.in * d.out, y);
    repro_gemm(rows, d.out, d.in, view(x), view(mat(w, d.out)), y);
    return w + dense_params(d);
}

// scratch: gates [items][4 hidden], c of two steps, tanh c. The bias is added last.
static const float *infer_lstm(Lstm l, const float *w, uint32_t items, Mat x, MatOut h,
                               float *scratch) {
    size_t       n = l.hidden, wide = 4 * n;
    const float *wh = w + l.in * wide, *b = wh + n * wide, *before;
    float       *gates = scratch, *c = gates + items * wide, *tanh_c = c + 2 * n, *last = NULL;
    memset(scratch, 0, (items * wide + 2 * n) * sizeof *scratch);
    before = c + n;
    repro_gemm(items, wide, l.in, view(x), view(mat(w, wide)), mat_out(gates, wide));
    for (uint32_t i = 0; i < items; i++) {
        uint32_t at = l.backwards ? items - 1 - i : i;
        float   *g = gates + at * wide, *out = h.at + at * h.ld, *now = c + (i & 1) * n;
        if (last != NULL) repro_gemv(wide, n, last, wh, g);
        lstm_cell_forward(n, b, g, before, now, tanh_c, out);
        before = now;
        last = out;
    }
    return b + wide;
}

size_t actor_infer_scratch(Actor a, uint32_t items) {
    size_t n = a.trunk.hidden;
    return items * ((size_t)trunk_width(a.trunk) + 4 * n) + 3 * n;
}

// Denormals are flushed here whatever the mode of the thread, for reproducible bits.
void actor_infer(Actor a, const float *w, uint32_t items, const float *x, float *out,
                 float *scratch) {
    Trunk    t = a.trunk;
    size_t   width = trunk_width(t), base = trunk_base(t);
    float   *mix = scratch, *rest = scratch + items * width;
    FpuState was = fpu_flush_denormals();
    if (t.embed > 0) {
        w = infer_dense(trunk_dense(t), w, items, mat(x, t.in), mat_out(mix, width));
        for (uint32_t i = 0; i < items; i++)
            activation_forward(ACTIVATION_RELU, base, mix + i * width, mix + i * width);
    } else {
        mat_copy(items, base, mat(x, t.in), mat_out(mix, width));
    }
    w = infer_lstm(trunk_lstm(t, false), w, items, mat(mix, width), mat_out(mix + base, width),
                   rest);
    if (t.bidirectional)
        w = infer_lstm(trunk_lstm(t, true), w, items, mat(mix, width),
                       mat_out(mix + base + t.hidden, width), rest);
    infer_dense(actor_head(a), w, items, mat(mix, width), mat_out(out, a.actions));
    activation_forward(ACTIVATION_TANH, (size_t)items * a.actions, out, out);
    fpu_restore(was);
}

typedef struct CriticCache {
    float *x, *mix, *d_mix;            // per row
    float *pool, *d_pool, *in, *d_in;  // per sequence
    float *trunk;
} CriticCache;

static Trunk trunk_of(Critic c) {
    return (Trunk){c.features + c.actions, c.embed, c.hidden, c.bidirectional};
}
static Dense inner(Critic c) { return (Dense){trunk_width(trunk_of(c)) + 1, c.hidden}; }
static Dense outer(Critic c) { return (Dense){c.hidden, 1}; }

static CriticCache critic_cache(Critic c, size_t rows, size_t seqs, float *at) {
    size_t      width = trunk_width(trunk_of(c)), pool = seqs * (width + 1), in = seqs * c.hidden;
    CriticCache k = {.x = at};
    k.mix = k.x + rows * (c.features + c.actions);
    k.d_mix = k.mix + rows * width;
    k.pool = k.d_mix + rows * width;
    k.d_pool = k.pool + pool;
    k.in = k.d_pool + pool;
    k.d_in = k.in + in;
    k.trunk = k.d_in + in;
    return k;
}

size_t critic_params(Critic c) {
    return trunk_params(trunk_of(c)) + dense_params(inner(c)) + dense_params(outer(c));
}

size_t critic_cache_size(Critic c, size_t rows, size_t seqs) {
    size_t in = c.features + c.actions, width = trunk_width(trunk_of(c));
    return rows * (in + 2 * width) + 2 * seqs * (width + 1 + c.hidden) +
           trunk_cache_size(trunk_of(c), rows, seqs);
}

void critic_init(Critic c, float *w, Rng *rng) {
    trunk_init(trunk_of(c), w, rng);
    w += trunk_params(trunk_of(c));
    dense_init(inner(c), w, 1.414f, rng);
    dense_init(outer(c), w + dense_params(inner(c)), 0.1f, rng);
}

static const float COUNT = 1.0f / 32;  // scale of the item count as an input

static void pool_forward(const Ragged *r, size_t width, const float *mix, float *pool) {
    memset(pool, 0, r->n_seqs * (width + 1) * sizeof *pool);
    for (uint32_t t = 0; t < r->n_steps; t++)
        for (uint32_t i = 0; i < ragged_alive(r, t); i++) {
            const float *from = mix + (size_t)(r->start[t] + i) * width;
            float       *to = pool + i * (width + 1);
            for (size_t k = 0; k < width; k++) to[k] += from[k];
        }
    for (uint32_t i = 0; i < r->n_seqs; i++) {
        float *at = pool + i * (width + 1), share = 1.0f / (float)(r->len[i] > 0 ? r->len[i] : 1);
        for (size_t k = 0; k < width; k++) at[k] *= share;
        at[width] = COUNT * (float)r->len[i];
    }
}

static void pool_backward(const Ragged *r, size_t width, const float *d_pool, float *d_mix) {
    for (uint32_t t = 0; t < r->n_steps; t++)
        for (uint32_t i = 0; i < ragged_alive(r, t); i++) {
            float       *to = d_mix + (size_t)(r->start[t] + i) * width;
            const float *from = d_pool + i * (width + 1);
            float        share = 1.0f / (float)r->len[i];
            for (size_t k = 0; k < width; k++) to[k] = share * from[k];
        }
}

void critic_forward(Critic c, const float *w, const Ragged *r, const float *x, const float *a,
                    float *q, float *cache) {
    size_t      rows = r->n_rows, seqs = r->n_seqs, in = c.features + c.actions;
    size_t      width = trunk_width(trunk_of(c));
    CriticCache k = critic_cache(c, rows, seqs, cache);
    mat_copy(rows, c.features, mat(x, c.features), mat_out(k.x, in));
    mat_copy(rows, c.actions, mat(a, c.actions), mat_out(k.x + c.features, in));
    trunk_forward(trunk_of(c), w, r, mat(k.x, in), k.mix, k.trunk);
    pool_forward(r, width, k.mix, k.pool);
    w += trunk_params(trunk_of(c));
    dense_forward(inner(c), w, seqs, mat(k.pool, width + 1), mat_out(k.in, c.hidden));
    activation_forward(ACTIVATION_RELU, seqs * c.hidden, k.in, k.in);
    dense_forward(outer(c), w + dense_params(inner(c)), seqs, mat(k.in, c.hidden), mat_out(q, 1));
}

void critic_backward(Critic c, const float *w, float *gw, const Ragged *r, const float *dq,
                     float *da, float *cache) {
    size_t      rows = r->n_rows, seqs = r->n_seqs, in = c.features + c.actions;
    size_t      width = trunk_width(trunk_of(c)), trunk = trunk_params(trunk_of(c));
    size_t      to_outer = trunk + dense_params(inner(c));
    CriticCache k = critic_cache(c, rows, seqs, cache);
    dense_backward(outer(c), w + to_outer, float_vec_after(gw, to_outer), seqs, mat(k.in, c.hidden),
                   mat(dq, 1), mat_out(k.d_in, c.hidden));
    activation_backward(ACTIVATION_RELU, seqs * c.hidden, k.in, k.d_in, k.d_in);
    dense_backward(inner(c), w + trunk, float_vec_after(gw, trunk), seqs, mat(k.pool, width + 1),
                   mat(k.d_in, c.hidden), mat_out(k.d_pool, width + 1));
    pool_backward(r, width, k.d_pool, k.d_mix);
    // k.x is not needed after its use in the gradient, so dx may overwrite it.
    trunk_backward(trunk_of(c), w, gw, r, mat(k.x, in), k.mix, k.d_mix,
                   da ? mat_out(k.x, in) : mat_out(NULL, 0), k.trunk);
    if (da != NULL) mat_copy(rows, c.actions, mat(k.x + c.features, in), mat_out(da, c.actions));
}
