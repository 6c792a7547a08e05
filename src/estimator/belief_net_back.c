#include <math.h>
#include <string.h>

#include "estimator/belief_net_int.h"
#include "learn/activation.h"

enum { WIDTH = BELIEF_WIDTH, HIDDEN = BELIEF_HIDDEN, HEAD = BELIEF_HEAD };

static void add_to(size_t n, const float *x, float *y) {
    for (size_t i = 0; i < n; i++) y[i] += x[i];
}

// Gradients of the records' layer from those of the tokens.
static void records_back(const float *w, float *gw, const BeliefTokens *t, const float *records,
                         const float *d_token, float *d_records) {
    size_t rows = (size_t)t->n * BELIEF_RECORDS;
    for (size_t r = 0; r < rows; r++)
        memcpy(d_records + r * WIDTH, d_token + r / BELIEF_RECORDS * WIDTH,
               WIDTH * sizeof *d_records);
    activation_backward(ACTIVATION_RELU, rows * WIDTH, records, d_records, d_records);
    dense_backward(belief_dense(BELIEF_RECORD, WIDTH), w, gw, rows, mat(t->records, BELIEF_RECORD),
                   mat(d_records, WIDTH), mat_out(NULL, 0));
}

// dx = gradients of the block's input, without what is kept.
static void mlp_back(const float *w, float *gw, size_t n, const float *x, const float *hidden,
                     const float *dy, float *d_hidden, float *dx) {
    Dense  first = belief_dense(WIDTH, HIDDEN), second = belief_dense(HIDDEN, WIDTH);
    size_t at = dense_params(first);
    dense_backward(second, w + at, gw + at, n, mat(hidden, HIDDEN), mat(dy, WIDTH),
                   mat_out(d_hidden, HIDDEN));
    activation_backward(ACTIVATION_RELU, n * HIDDEN, hidden, d_hidden, d_hidden);
    dense_backward(first, w, gw, n, mat(x, WIDTH), mat(d_hidden, HIDDEN), mat_out(dx, WIDTH));
}

void belief_net_encode_back(const float *w, float *gw, const BeliefTokens *jobs, const float *d_kv,
                            float *cache) {
    MatBackend      was = mat_set_backend(MAT_REPRODUCIBLE);
    BeliefParts     p = belief_net_parts();
    size_t          floats, n = jobs->n;
    BeliefJobsCache k = belief_jobs_cached(jobs->n, cache, &floats);
    float          *d_h = k.t;  // t is not needed after the first step
    dense_backward(belief_dense(WIDTH, BELIEF_KV), w + p.kv, gw + p.kv, n, mat(k.t, WIDTH),
                   mat(d_kv, BELIEF_KV), mat_out(k.d, WIDTH));
    mlp_back(w + p.mlp, gw + p.mlp, n, k.h, k.hidden, k.d, k.d_hidden, d_h);
    add_to(n * WIDTH, k.d, d_h);
    records_back(w + p.record, gw + p.record, jobs, k.records, d_h, k.d_records);
    dense_backward(belief_dense(BELIEF_JOB, WIDTH), w + p.job, gw + p.job, n,
                   mat(jobs->features, BELIEF_JOB), mat(d_h, WIDTH), mat_out(NULL, 0));
    mat_set_backend(was);
}

typedef struct HeadBack {  // one query's head
    const float *q, *share, *d_mixed;
    float       *d_q, *g_pair;
    size_t       at;      // first of its pairs
    size_t       column;  // of its keys; values are WIDTH after them
} HeadBack;

// The logit whose value is 0 takes part in the sum of shares only.
static void head_back(const HeadBack *x, const BeliefQueries *b, uint32_t len, const float *kv,
                      float *d_kv) {
    const float scale = 1 / sqrtf(HEAD);
    float       d_share[BELIEF_CONTEXT], mean = 0;
    for (uint32_t j = 0; j < len; j++) {
        size_t       row = (size_t)b->context[x->at + j] * BELIEF_KV + x->column;
        const float *value = kv + row + WIDTH;
        float       *d_value = d_kv + row + WIDTH, sum = 0;
        for (uint32_t d = 0; d < HEAD; d++) {
            sum += x->d_mixed[d] * value[d];
            d_value[d] += x->share[j] * x->d_mixed[d];
        }
        d_share[j] = sum;
        mean += x->share[j] * sum;
    }
    for (uint32_t j = 0; j < len; j++) {
        float        d_logit = x->share[j] * (d_share[j] - mean);
        const float *pair = b->pair + (x->at + j) * BELIEF_PAIR;
        size_t       row = (size_t)b->context[x->at + j] * BELIEF_KV + x->column;
        for (uint32_t f = 0; f < BELIEF_PAIR; f++) x->g_pair[f * BELIEF_HEADS] += d_logit * pair[f];
        for (uint32_t d = 0; d < HEAD; d++) {
            x->d_q[d] += scale * d_logit * kv[row + d];
            d_kv[row + d] += scale * d_logit * x->q[d];
        }
    }
}

static void attend_back(float *g_pair, const BeliefQueries *b, const float *kv, uint32_t layer,
                        const BeliefLayerCache *y, const float *d_mixed, float *d_q, float *d_kv) {
    memset(d_q, 0, (size_t)b->tokens.n * WIDTH * sizeof *d_q);
    for (uint32_t i = 0; i < b->tokens.n; i++)
        for (uint32_t h = 0; h < BELIEF_HEADS; h++) {
            size_t   column = (size_t)i * WIDTH + (size_t)h * HEAD;
            HeadBack x = {
                .q = y->q + column,
                .share = y->share + ((size_t)i * BELIEF_HEADS + h) * BELIEF_CONTEXT,
                .d_mixed = d_mixed + column,
                .d_q = d_q + column,
                .g_pair = g_pair + h,
                .at = (size_t)i * BELIEF_CONTEXT,
                .column = (size_t)layer * 2 * WIDTH + (size_t)h * HEAD,
            };
            head_back(&x, b, b->len[i], kv, d_kv);
        }
}

// k->d_x: gradients of the layer's output, then of its input.
static void layer_back(const float *w, float *gw, const BeliefLayer *p, const BeliefQueries *b,
                       const float *kv, uint32_t l, const BeliefQueriesCache *k, float *d_kv) {
    const BeliefLayerCache *y = &k->layers[l];
    size_t                  n = b->tokens.n;
    Dense                   square = belief_dense(WIDTH, WIDTH);
    mlp_back(w + p->mlp, gw + p->mlp, n, y->normed_mlp, y->hidden, k->d_x, k->d_hidden, k->d_a);
    layer_norm_backward(belief_norm(), w + p->norm_mlp, gw + p->norm_mlp, n, k->d_a, k->d_a,
                        y->norm_mlp);
    add_to(n * WIDTH, k->d_a, k->d_x);
    dense_backward(square, w + p->output, gw + p->output, n, mat(y->mixed, WIDTH),
                   mat(k->d_x, WIDTH), mat_out(k->d_a, WIDTH));
    attend_back(gw + p->pair, b, kv, l, y, k->d_a, k->d_b, d_kv);
    dense_backward(square, w + p->query, gw + p->query, n, mat(y->normed, WIDTH),
                   mat(k->d_b, WIDTH), mat_out(k->d_a, WIDTH));
    layer_norm_backward(belief_norm(), w + p->norm, gw + p->norm, n, k->d_a, k->d_a, y->norm);
    add_to(n * WIDTH, k->d_a, k->d_x);
}

void belief_net_query_back(const float *w, float *gw, const BeliefQueries *q, const float *kv,
                           const float *d_raw, float *d_kv, float *cache) {
    MatBackend         was = mat_set_backend(MAT_REPRODUCIBLE);
    BeliefParts        p = belief_net_parts();
    size_t             floats, n = q->tokens.n;
    BeliefQueriesCache k = belief_queries_cached(q->tokens.n, cache, &floats);
    dense_backward(belief_dense(HIDDEN, BELIEF_OUT), w + p.out, gw + p.out, n,
                   mat(k.hidden, HIDDEN), mat(d_raw, BELIEF_OUT), mat_out(k.d_hidden, HIDDEN));
    activation_backward(ACTIVATION_RELU, n * HIDDEN, k.hidden, k.d_hidden, k.d_hidden);
    dense_backward(belief_dense(WIDTH, HIDDEN), w + p.hidden, gw + p.hidden, n, mat(k.last, WIDTH),
                   mat(k.d_hidden, HIDDEN), mat_out(k.d_x, WIDTH));
    layer_norm_backward(belief_norm(), w + p.last_norm, gw + p.last_norm, n, k.d_x, k.d_x,
                        k.last_norm);
    for (uint32_t l = BELIEF_LAYERS; l-- > 0;) layer_back(w, gw, &p.layers[l], q, kv, l, &k, d_kv);
    records_back(w + p.record, gw + p.record, &q->tokens, k.records, k.d_x, k.d_records);
    dense_backward(belief_dense(BELIEF_QUERY, WIDTH), w + p.query, gw + p.query, n,
                   mat(q->tokens.features, BELIEF_QUERY), mat(k.d_x, WIDTH), mat_out(NULL, 0));
    mat_set_backend(was);
}
