#include <math.h>
#include <string.h>

#include "learn/activation.h"
#include "learn/float_vec.h"
#include "learn/transformer.h"

enum { QUERY, KEY, VALUE, OUTPUT, LAYERS };

// Projections [rows][width], heads side by side; share: attention weights [batch][heads][queries]
// [keys] after softmax; d_*: gradients (d_share of one head at a time).
typedef struct Cache {
    float *q, *k, *v, *mixed, *share, *d_q, *d_k, *d_v, *d_mixed, *d_share;
} Cache;

static Cache cache_of(MultiHeadAttention a, const AttentionShape *s, float *at) {
    size_t queries = (size_t)s->batch * s->queries * a.width;
    size_t keys = (size_t)s->batch * s->keys * a.width;
    size_t pairs = (size_t)s->queries * s->keys;
    Cache  k = {.q = at, .k = at + queries};
    k.v = k.k + keys;
    k.mixed = k.v + keys;
    k.share = k.mixed + queries;
    k.d_q = k.share + s->batch * a.heads * pairs;
    k.d_k = k.d_q + queries;
    k.d_v = k.d_k + keys;
    k.d_mixed = k.d_v + keys;
    k.d_share = k.d_mixed + queries;
    return k;
}

size_t mha_cache_size(MultiHeadAttention a, const AttentionShape *s) {
    size_t pairs = (size_t)s->queries * s->keys;
    return 4 * (size_t)s->batch * ((size_t)s->queries + s->keys) * a.width +
           ((size_t)s->batch * a.heads + 1) * pairs;
}

static size_t layer(MultiHeadAttention a, size_t which) {
    return which * dense_params(mha_dense(a));
}

void mha_init(MultiHeadAttention a, float *w, Rng *rng) {
    for (size_t i = 0; i < LAYERS; i++) dense_init(mha_dense(a), w + layer(a, i), 1, rng);
}

// Scaled softmax with mask; a fully masked row becomes 0.
static void attention_weights(MultiHeadAttention a, const AttentionShape *s, uint32_t b,
                              float *share) {
    uint32_t each = a.width / a.heads, n = s->len ? s->len[b] : s->keys;
    float    scale = 1 / sqrtf((float)each);
    if (s->hide == NULL && n == s->keys) {
        for (size_t i = 0; i < (size_t)s->queries * n; i++) share[i] *= scale;
        activation_softmax(s->queries, n, NULL, share, share);
        return;
    }
    for (uint32_t i = 0; i < s->queries; i++, share += s->keys) {
        const uint8_t *hide = s->hide ? s->hide + (size_t)i * s->keys : NULL;
        uint32_t       visible = 0;
        for (uint32_t j = 0; j < n; j++) {
            bool hidden = hide && hide[j];
            share[j] = hidden ? -1e30f : share[j] * scale;
            visible += !hidden;
        }
        uint32_t len = visible > 0 ? n : 0;
        activation_softmax(1, s->keys, &len, share, share);
        for (uint32_t j = 0; hide && j < n; j++)
            if (hide[j]) share[j] = 0;
    }
}

// Keys or values: rows that several keys share are projected once.
static void project_keys(MultiHeadAttention a, const float *w, const AttentionShape *s,
                         const float *y, float *once, float *to) {
    size_t width = a.width, keys = (size_t)s->batch * s->keys;
    if (s->row_of == NULL) {
        dense_forward(mha_dense(a), w, keys, mat(y, width), mat_out(to, width));
        return;
    }
    dense_forward(mha_dense(a), w, s->rows, mat(y, width), mat_out(once, width));
    for (size_t i = 0; i < keys; i++)
        memcpy(to + i * width, once + s->row_of[i] * width, width * sizeof *to);
}

void mha_forward(MultiHeadAttention a, const float *w, const AttentionShape *s, const float *x,
                 const float *y, float *out, float *cache) {
    Cache  k = cache_of(a, s, cache);
    Dense  d = mha_dense(a);
    size_t width = a.width, each = a.width / a.heads, pairs = (size_t)s->queries * s->keys;
    size_t queries = (size_t)s->batch * s->queries;
    dense_forward(d, w + layer(a, QUERY), queries, mat(x, width), mat_out(k.q, width));
    project_keys(a, w + layer(a, KEY), s, y, k.d_k, k.k);
    project_keys(a, w + layer(a, VALUE), s, y, k.d_v, k.v);
    for (uint32_t b = 0; b < s->batch; b++)
        for (uint32_t h = 0; h < a.heads; h++) {
            size_t query = (size_t)b * s->queries * width + h * each;
            size_t key = (size_t)b * s->keys * width + h * each;
            float *share = k.share + ((size_t)b * a.heads + h) * pairs;
            mat_mul_nt(s->queries, s->keys, each, mat(k.q + query, width), mat(k.k + key, width), 0,
                       mat_out(share, s->keys));
            attention_weights(a, s, b, share);
            mat_mul(s->queries, each, s->keys, mat(share, s->keys), mat(k.v + key, width), 0,
                    mat_out(k.mixed + query, width));
        }
    dense_forward(d, w + layer(a, OUTPUT), queries, mat(k.mixed, width), mat_out(out, width));
}

static void head_backward(MultiHeadAttention a, const AttentionShape *s, const Cache *k, uint32_t b,
                          uint32_t h) {
    size_t width = a.width, each = a.width / a.heads, pairs = (size_t)s->queries * s->keys;
    size_t query = (size_t)b * s->queries * width + h * each;
    size_t key = (size_t)b * s->keys * width + h * each;
    float *share = k->share + ((size_t)b * a.heads + h) * pairs, *d_share = k->d_share;
    float  scale = 1 / sqrtf((float)each);
    mat_mul_tn(s->keys, each, s->queries, mat(share, s->keys), mat(k->d_mixed + query, width), 0,
               mat_out(k->d_v + key, width));
    mat_mul_nt(s->queries, s->keys, each, mat(k->d_mixed + query, width), mat(k->v + key, width), 0,
               mat_out(d_share, s->keys));
    activation_softmax_backward(s->queries, s->keys, share, d_share, d_share);
    for (size_t i = 0; i < pairs; i++) d_share[i] *= scale;
    mat_mul(s->queries, each, s->keys, mat(d_share, s->keys), mat(k->k + key, width), 0,
            mat_out(k->d_q + query, width));
    mat_mul_tn(s->keys, each, s->queries, mat(d_share, s->keys), mat(k->q + query, width), 0,
               mat_out(k->d_k + key, width));
}

// dense_backward that adds to dx.
static void dense_add_back(Dense d, const float *w, float *gw, size_t rows, const float *x,
                           const float *dy, float *dx) {
    if (gw != NULL) dense_backward(d, w, gw, rows, mat(x, d.in), mat(dy, d.out), mat_out(NULL, 0));
    if (dx != NULL)
        mat_mul_nt(rows, d.in, d.out, mat(dy, d.out), mat(w, d.out), 1, mat_out(dx, d.in));
}

void mha_backward(MultiHeadAttention a, const float *w, float *gw, const AttentionShape *s,
                  const float *x, const float *y, const float *d_out, float *dx, float *dy,
                  float *cache) {
    Cache  k = cache_of(a, s, cache);
    Dense  d = mha_dense(a);
    size_t width = a.width, to[LAYERS];
    size_t queries = (size_t)s->batch * s->queries, keys = (size_t)s->batch * s->keys;
    for (size_t i = 0; i < LAYERS; i++) to[i] = layer(a, i);
    dense_backward(d, w + to[OUTPUT], float_vec_after(gw, to[OUTPUT]), queries, mat(k.mixed, width),
                   mat(d_out, width), mat_out(k.d_mixed, width));
    for (uint32_t b = 0; b < s->batch; b++)
        for (uint32_t h = 0; h < a.heads; h++) head_backward(a, s, &k, b, h);
    dense_add_back(d, w + to[QUERY], float_vec_after(gw, to[QUERY]), queries, x, k.d_q, dx);
    dense_add_back(d, w + to[KEY], float_vec_after(gw, to[KEY]), keys, y, k.d_k, dy);
    dense_add_back(d, w + to[VALUE], float_vec_after(gw, to[VALUE]), keys, y, k.d_v, dy);
}

const float *mha_weights(MultiHeadAttention a, const AttentionShape *s, const float *cache,
                         uint32_t batch, uint32_t head, uint32_t query) {
    size_t rows = (size_t)s->batch * (2 * (size_t)s->queries + 2 * (size_t)s->keys);
    return cache + rows * a.width +
           (((size_t)batch * a.heads + head) * s->queries + query) * s->keys;
}

static const float EPSILON = 1e-5f;

void layer_norm_init(LayerNorm l, float *w) {
    for (uint32_t i = 0; i < l.n; i++) {
        w[i] = 1;
        w[l.n + i] = 0;
    }
}

// The cache has x' [rows][n], then 1 / deviation [rows].
static float row_forward(size_t n, const float *x, float *flat) {
    double mean = 0, spread = 0;
    for (size_t i = 0; i < n; i++) mean += (double)x[i];
    mean /= (double)(n > 0 ? n : 1);
    for (size_t i = 0; i < n; i++) {
        double off = (double)x[i] - mean;
        spread += off * off;
    }
    float scale = (float)(1 / sqrt(spread / (double)(n > 0 ? n : 1) + (double)EPSILON));
    for (size_t i = 0; i < n; i++) flat[i] = (x[i] - (float)mean) * scale;
    return scale;
}

void layer_norm_forward(LayerNorm l, const float *w, size_t rows, const float *x, float *y,
                        float *cache) {
    float *scale = cache + rows * l.n;
    for (size_t r = 0; r < rows; r++) {
        float *flat = cache + r * l.n;
        scale[r] = row_forward(l.n, x + r * l.n, flat);
        for (uint32_t i = 0; i < l.n; i++) y[r * l.n + i] = w[i] * flat[i] + w[l.n + i];
    }
}

// With d = gain dy: dx = scale (d - mean d - x' mean(d x')).
static void row_backward(size_t n, const float *gain, const float *dy, const float *flat,
                         float scale, float *dx) {
    float mean = 0, along = 0, share = 1.0f / (float)(n > 0 ? n : 1);
    for (size_t i = 0; i < n; i++) {
        mean += gain[i] * dy[i];
        along += gain[i] * dy[i] * flat[i];
    }
    for (size_t i = 0; i < n; i++)
        dx[i] = scale * (gain[i] * dy[i] - share * (mean + flat[i] * along));
}

void layer_norm_backward(LayerNorm l, const float *w, float *gw, size_t rows, const float *dy,
                         float *dx, const float *cache) {
    const float *scale = cache + rows * l.n;
    for (size_t r = 0; r < rows; r++) {
        const float *flat = cache + r * l.n, *d = dy + r * l.n;
        for (uint32_t i = 0; gw != NULL && i < l.n; i++) {
            gw[i] += d[i] * flat[i];
            gw[l.n + i] += d[i];
        }
        if (dx != NULL) row_backward(l.n, w, d, flat, scale[r], dx + r * l.n);
    }
}
