#include "learn/attend.h"

#include <math.h>
#include <string.h>

#include "learn/act.h"
#include "learn/block.h"

enum { QUERY, KEY, VALUE, OUTPUT, LAYERS };

// Rows of asks and answers, each [width] with heads side by side; share [batch][heads][asks]
// [answers] after softmax; d_share of one head. d_* for backward.
typedef struct Cache {
    float *q, *k, *v, *mixed, *share, *d_q, *d_k, *d_v, *d_mixed, *d_share;
} Cache;

static Cache cache_of(Attend a, const AttendSize *s, float *at) {
    size_t asks = (size_t)s->batch * s->asks * a.width;
    size_t answers = (size_t)s->batch * s->answers * a.width;
    size_t pairs = (size_t)s->asks * s->answers;
    Cache  k = {.q = at, .k = at + asks};
    k.v = k.k + answers;
    k.mixed = k.v + answers;
    k.share = k.mixed + asks;
    k.d_q = k.share + s->batch * a.heads * pairs;
    k.d_k = k.d_q + asks;
    k.d_v = k.d_k + answers;
    k.d_mixed = k.d_v + answers;
    k.d_share = k.d_mixed + asks;
    return k;
}

size_t attend_cache_size(Attend a, const AttendSize *s) {
    size_t pairs = (size_t)s->asks * s->answers;
    return 4 * (size_t)s->batch * ((size_t)s->asks + s->answers) * a.width +
           ((size_t)s->batch * a.heads + 1) * pairs;
}

static size_t layer(Attend a, size_t which) { return which * dense_params(attend_dense(a)); }

void attend_init(Attend a, float *w, Rng *rng) {
    for (size_t i = 0; i < LAYERS; i++) dense_init(attend_dense(a), w + layer(a, i), 1, rng);
}

// What is hidden becomes so unlike that softmax gives it nothing; a row that hears nobody is 0.
static void share_out(Attend a, const AttendSize *s, uint32_t b, float *share) {
    uint32_t each = a.width / a.heads, n = s->len ? s->len[b] : s->answers;
    float    scale = 1 / sqrtf((float)each);
    for (uint32_t i = 0; i < s->asks; i++, share += s->answers) {
        const uint8_t *hide = s->hide ? s->hide + (size_t)i * s->answers : NULL;
        uint32_t       heard = 0;
        for (uint32_t j = 0; j < n; j++) {
            bool hidden = hide && hide[j];
            share[j] = hidden ? -1e30f : share[j] * scale;
            heard += !hidden;
        }
        uint32_t len = heard > 0 ? n : 0;
        act_softmax(1, s->answers, &len, share, share);
        for (uint32_t j = 0; hide && j < n; j++)
            if (hide[j]) share[j] = 0;
    }
}

void attend_forward(Attend a, const float *w, const AttendSize *s, const float *x, const float *y,
                    float *out, float *cache) {
    Cache  k = cache_of(a, s, cache);
    Dense  d = attend_dense(a);
    size_t width = a.width, each = a.width / a.heads, pairs = (size_t)s->asks * s->answers;
    size_t asks = (size_t)s->batch * s->asks, answers = (size_t)s->batch * s->answers;
    dense_forward(d, w + layer(a, QUERY), asks, mat(x, width), mat_out(k.q, width));
    dense_forward(d, w + layer(a, KEY), answers, mat(y, width), mat_out(k.k, width));
    dense_forward(d, w + layer(a, VALUE), answers, mat(y, width), mat_out(k.v, width));
    for (uint32_t b = 0; b < s->batch; b++)
        for (uint32_t h = 0; h < a.heads; h++) {
            size_t ask = (size_t)b * s->asks * width + h * each;
            size_t answer = (size_t)b * s->answers * width + h * each;
            float *share = k.share + ((size_t)b * a.heads + h) * pairs;
            mat_mul_nt(s->asks, s->answers, each, mat(k.q + ask, width), mat(k.k + answer, width),
                       0, mat_out(share, s->answers));
            share_out(a, s, b, share);
            mat_mul(s->asks, each, s->answers, mat(share, s->answers), mat(k.v + answer, width), 0,
                    mat_out(k.mixed + ask, width));
        }
    dense_forward(d, w + layer(a, OUTPUT), asks, mat(k.mixed, width), mat_out(out, width));
}

static void head_backward(Attend a, const AttendSize *s, const Cache *k, uint32_t b, uint32_t h) {
    size_t width = a.width, each = a.width / a.heads, pairs = (size_t)s->asks * s->answers;
    size_t ask = (size_t)b * s->asks * width + h * each;
    size_t answer = (size_t)b * s->answers * width + h * each;
    float *share = k->share + ((size_t)b * a.heads + h) * pairs, *d_share = k->d_share;
    float  scale = 1 / sqrtf((float)each);
    mat_mul_tn(s->answers, each, s->asks, mat(share, s->answers), mat(k->d_mixed + ask, width), 0,
               mat_out(k->d_v + answer, width));
    mat_mul_nt(s->asks, s->answers, each, mat(k->d_mixed + ask, width), mat(k->v + answer, width),
               0, mat_out(d_share, s->answers));
    act_softmax_back(s->asks, s->answers, share, d_share, d_share);
    for (size_t i = 0; i < pairs; i++) d_share[i] *= scale;
    mat_mul(s->asks, each, s->answers, mat(d_share, s->answers), mat(k->k + answer, width), 0,
            mat_out(k->d_q + ask, width));
    mat_mul_tn(s->answers, each, s->asks, mat(d_share, s->answers), mat(k->q + ask, width), 0,
               mat_out(k->d_k + answer, width));
}

// A dense layer's backward that adds to dx.
static void dense_add_back(Dense d, const float *w, float *gw, size_t rows, const float *x,
                           const float *dy, float *dx) {
    if (gw != NULL) dense_backward(d, w, gw, rows, mat(x, d.in), mat(dy, d.out), mat_out(NULL, 0));
    if (dx != NULL)
        mat_mul_nt(rows, d.in, d.out, mat(dy, d.out), mat(w, d.out), 1, mat_out(dx, d.in));
}

void attend_backward(Attend a, const float *w, float *gw, const AttendSize *s, const float *x,
                     const float *y, const float *d_out, float *dx, float *dy, float *cache) {
    Cache  k = cache_of(a, s, cache);
    Dense  d = attend_dense(a);
    size_t width = a.width, to[LAYERS];
    size_t asks = (size_t)s->batch * s->asks, answers = (size_t)s->batch * s->answers;
    for (size_t i = 0; i < LAYERS; i++) to[i] = layer(a, i);
    dense_backward(d, w + to[OUTPUT], block_after(gw, to[OUTPUT]), asks, mat(k.mixed, width),
                   mat(d_out, width), mat_out(k.d_mixed, width));
    for (uint32_t b = 0; b < s->batch; b++)
        for (uint32_t h = 0; h < a.heads; h++) head_backward(a, s, &k, b, h);
    dense_add_back(d, w + to[QUERY], block_after(gw, to[QUERY]), asks, x, k.d_q, dx);
    dense_add_back(d, w + to[KEY], block_after(gw, to[KEY]), answers, y, k.d_k, dy);
    dense_add_back(d, w + to[VALUE], block_after(gw, to[VALUE]), answers, y, k.d_v, dy);
}

const float *attend_weights(Attend a, const AttendSize *s, const float *cache, uint32_t batch,
                            uint32_t head, uint32_t ask) {
    size_t rows = (size_t)s->batch * (2 * (size_t)s->asks + 2 * (size_t)s->answers);
    return cache + rows * a.width + (((size_t)batch * a.heads + head) * s->asks + ask) * s->answers;
}
