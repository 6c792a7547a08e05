#include "learn/critic.h"

#include <string.h>

#include "learn/act.h"
#include "learn/block.h"

typedef struct Cache {
    float *x, *mix, *d_mix;            // by row
    float *pool, *d_pool, *in, *d_in;  // by sequence
    float *trunk;
} Cache;

static Trunk trunk_of(Critic c) {
    return (Trunk){c.features + c.actions, c.embed, c.hidden, c.both_ways};
}
static Dense inner(Critic c) { return (Dense){trunk_width(trunk_of(c)) + 1, c.hidden}; }
static Dense outer(Critic c) { return (Dense){c.hidden, 1}; }

static Cache cache_of(Critic c, size_t rows, size_t seqs, float *at) {
    size_t width = trunk_width(trunk_of(c)), pool = seqs * (width + 1), in = seqs * c.hidden;
    Cache  k = {.x = at};
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

static const float COUNT = 1.0f / 32;  // how much one more item is, for the layers behind the mean

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
    size_t rows = r->n_rows, seqs = r->n_seqs, in = c.features + c.actions;
    size_t width = trunk_width(trunk_of(c));
    Cache  k = cache_of(c, rows, seqs, cache);
    mat_copy(rows, c.features, mat(x, c.features), mat_out(k.x, in));
    mat_copy(rows, c.actions, mat(a, c.actions), mat_out(k.x + c.features, in));
    trunk_forward(trunk_of(c), w, r, mat(k.x, in), k.mix, k.trunk);
    pool_forward(r, width, k.mix, k.pool);
    w += trunk_params(trunk_of(c));
    dense_forward(inner(c), w, seqs, mat(k.pool, width + 1), mat_out(k.in, c.hidden));
    act_forward(ACT_RELU, seqs * c.hidden, k.in, k.in);
    dense_forward(outer(c), w + dense_params(inner(c)), seqs, mat(k.in, c.hidden), mat_out(q, 1));
}

void critic_backward(Critic c, const float *w, float *gw, const Ragged *r, const float *dq,
                     float *da, float *cache) {
    size_t rows = r->n_rows, seqs = r->n_seqs, in = c.features + c.actions;
    size_t width = trunk_width(trunk_of(c)), trunk = trunk_params(trunk_of(c));
    size_t to_outer = trunk + dense_params(inner(c));
    Cache  k = cache_of(c, rows, seqs, cache);
    dense_backward(outer(c), w + to_outer, block_after(gw, to_outer), seqs, mat(k.in, c.hidden),
                   mat(dq, 1), mat_out(k.d_in, c.hidden));
    act_backward(ACT_RELU, seqs * c.hidden, k.in, k.d_in, k.d_in);
    dense_backward(inner(c), w + trunk, block_after(gw, trunk), seqs, mat(k.pool, width + 1),
                   mat(k.d_in, c.hidden), mat_out(k.d_pool, width + 1));
    pool_backward(r, width, k.d_pool, k.d_mix);
    // What reads features and actions is not needed any more once it has been differentiated.
    trunk_backward(trunk_of(c), w, gw, r, mat(k.x, in), k.mix, k.d_mix,
                   da ? mat_out(k.x, in) : mat_out(NULL, 0), k.trunk);
    if (da != NULL) mat_copy(rows, c.actions, mat(k.x + c.features, in), mat_out(da, c.actions));
}
