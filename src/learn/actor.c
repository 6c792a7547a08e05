#include "learn/actor.h"

#include "learn/act.h"

typedef struct Cache {
    float *mix, *d_mix, *raw, *d_raw, *trunk;  // raw: actions before tanh
} Cache;

static Cache cache_of(Actor a, size_t rows, float *at) {
    size_t mix = rows * trunk_width(a.trunk), raw = rows * a.actions;
    return (Cache){at, at + mix, at + 2 * mix, at + 2 * mix + raw, at + 2 * (mix + raw)};
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
    Cache  k = cache_of(a, r->n_rows, cache);
    size_t rows = r->n_rows;
    trunk_forward(a.trunk, w, r, mat(x, a.trunk.in), k.mix, k.trunk);
    dense_forward(actor_head(a), w + trunk_params(a.trunk), rows, mat(k.mix, trunk_width(a.trunk)),
                  mat_out(k.raw, a.actions));
    act_forward(ACT_TANH, rows * a.actions, k.raw, out);
}

void actor_backward(Actor a, const float *w, float *gw, const Ragged *r, const float *x,
                    const float *out, const float *d_out, float pull, float *cache) {
    Cache  k = cache_of(a, r->n_rows, cache);
    size_t rows = r->n_rows, n = rows * a.actions, width = trunk_width(a.trunk);
    size_t trunk = trunk_params(a.trunk);
    act_backward(ACT_TANH, n, out, d_out, k.d_raw);
    if (pull != 0)
        for (size_t i = 0; i < n; i++) k.d_raw[i] += pull * k.raw[i];
    dense_backward(actor_head(a), w + trunk, gw + trunk, rows, mat(k.mix, width),
                   mat(k.d_raw, a.actions), mat_out(k.d_mix, width));
    trunk_backward(a.trunk, w, gw, r, mat(x, a.trunk.in), k.mix, k.d_mix, mat_out(NULL, 0),
                   k.trunk);
}

double actor_macs(Actor a, uint32_t items) {
    Trunk  t = a.trunk;
    double base = trunk_base(t), hidden = t.hidden, ways = t.both_ways ? 2 : 1;
    double each = (double)t.in * t.embed + ways * 4 * hidden * (base + hidden) +
                  (double)trunk_width(t) * a.actions;
    return each * items;
}
