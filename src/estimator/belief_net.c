#include "estimator/belief_net.h"

#include <math.h>
#include <string.h>

#include "estimator/belief_net_int.h"
#include "learn/activation.h"

enum { WIDTH = BELIEF_WIDTH, HIDDEN = BELIEF_HIDDEN, HEAD = BELIEF_HEAD };

static size_t take(size_t *at, size_t n) {
    size_t from = *at;
    *at += n;
    return from;
}

static size_t mlp_params(void) {
    return dense_params(belief_dense(WIDTH, HIDDEN)) + dense_params(belief_dense(HIDDEN, WIDTH));
}

BeliefParts belief_net_parts(void) {
    BeliefParts p = {0};
    p.job = take(&p.n, dense_params(belief_dense(BELIEF_JOB, WIDTH)));
    p.record = take(&p.n, dense_params(belief_dense(BELIEF_RECORD, WIDTH)));
    p.mlp = take(&p.n, mlp_params());
    p.kv = take(&p.n, dense_params(belief_dense(WIDTH, BELIEF_KV)));
    p.query = take(&p.n, dense_params(belief_dense(BELIEF_QUERY, WIDTH)));
    for (uint32_t l = 0; l < BELIEF_LAYERS; l++) {
        BeliefLayer *y = &p.layers[l];
        y->norm = take(&p.n, layer_norm_params(belief_norm()));
        y->query = take(&p.n, dense_params(belief_dense(WIDTH, WIDTH)));
        y->pair = take(&p.n, (size_t)BELIEF_PAIR * BELIEF_HEADS);
        y->output = take(&p.n, dense_params(belief_dense(WIDTH, WIDTH)));
        y->norm_mlp = take(&p.n, layer_norm_params(belief_norm()));
        y->mlp = take(&p.n, mlp_params());
    }
    p.last_norm = take(&p.n, layer_norm_params(belief_norm()));
    p.hidden = take(&p.n, dense_params(belief_dense(WIDTH, HIDDEN)));
    p.out = take(&p.n, dense_params(belief_dense(HIDDEN, BELIEF_OUT)));
    return p;
}

size_t belief_net_params(void) { return belief_net_parts().n; }

static void init_mlp(float *w, Rng *rng) {
    size_t second = dense_params(belief_dense(WIDTH, HIDDEN));
    dense_init(belief_dense(WIDTH, HIDDEN), w, sqrtf(2), rng);
    dense_init(belief_dense(HIDDEN, WIDTH), w + second, 0.5f, rng);
}

void belief_net_init(float *w, Rng *rng) {
    BeliefParts p = belief_net_parts();
    memset(w, 0, p.n * sizeof *w);
    dense_init(belief_dense(BELIEF_JOB, WIDTH), w + p.job, 1, rng);
    dense_init(belief_dense(BELIEF_RECORD, WIDTH), w + p.record, 1, rng);
    dense_init(belief_dense(WIDTH, BELIEF_KV), w + p.kv, 1, rng);
    dense_init(belief_dense(BELIEF_QUERY, WIDTH), w + p.query, 1, rng);
    dense_init(belief_dense(WIDTH, HIDDEN), w + p.hidden, sqrtf(2), rng);
    dense_init(belief_dense(HIDDEN, BELIEF_OUT), w + p.out, 0.3f, rng);
    init_mlp(w + p.mlp, rng);
    for (uint32_t l = 0; l < BELIEF_LAYERS; l++) {
        layer_norm_init(belief_norm(), w + p.layers[l].norm);
        layer_norm_init(belief_norm(), w + p.layers[l].norm_mlp);
        dense_init(belief_dense(WIDTH, WIDTH), w + p.layers[l].query, 1, rng);
        dense_init(belief_dense(WIDTH, WIDTH), w + p.layers[l].output, 0.5f, rng);
        init_mlp(w + p.layers[l].mlp, rng);
    }
    layer_norm_init(belief_norm(), w + p.last_norm);
    float *bias = w + p.out + (size_t)HIDDEN * BELIEF_OUT;
    for (uint32_t k = 0; k < BELIEF_MIX; k++) bias[BELIEF_MIX + k] = (float)k - 1;
}

// c NULL: counts only.
static float *part(float *c, size_t *at, size_t n) {
    size_t from = take(at, (n + 15) / 16 * 16);
    return c == NULL ? NULL : c + from;
}

BeliefJobsCache belief_jobs_cached(uint32_t n, float *c, size_t *floats) {
    BeliefJobsCache k;
    size_t          rows = n, at = 0;
    k.records = part(c, &at, rows * BELIEF_RECORDS * WIDTH);
    k.h = part(c, &at, rows * WIDTH);
    k.t = part(c, &at, rows * WIDTH);
    k.hidden = part(c, &at, rows * HIDDEN);
    k.d = part(c, &at, rows * WIDTH);
    k.d_hidden = part(c, &at, rows * HIDDEN);
    k.d_records = part(c, &at, rows * BELIEF_RECORDS * WIDTH);
    *floats = at;
    return k;
}

size_t belief_jobs_cache(uint32_t n) {
    size_t floats;
    (void)belief_jobs_cached(n, NULL, &floats);
    return floats;
}

BeliefQueriesCache belief_queries_cached(uint32_t n, float *c, size_t *floats) {
    BeliefQueriesCache k;
    size_t             w = (size_t)n * WIDTH, at = 0;
    k.records = part(c, &at, w * BELIEF_RECORDS);
    for (uint32_t l = 0; l <= BELIEF_LAYERS; l++) k.x[l] = part(c, &at, w);
    for (uint32_t l = 0; l < BELIEF_LAYERS; l++) {
        BeliefLayerCache *y = &k.layers[l];
        y->normed = part(c, &at, w);
        y->norm = part(c, &at, layer_norm_cache_size(belief_norm(), n));
        y->q = part(c, &at, w);
        y->share = part(c, &at, (size_t)n * BELIEF_HEADS * BELIEF_CONTEXT);
        y->mixed = part(c, &at, w);
        y->mid = part(c, &at, w);
        y->normed_mlp = part(c, &at, w);
        y->norm_mlp = part(c, &at, layer_norm_cache_size(belief_norm(), n));
        y->hidden = part(c, &at, (size_t)n * HIDDEN);
    }
    k.last = part(c, &at, w);
    k.last_norm = part(c, &at, layer_norm_cache_size(belief_norm(), n));
    k.hidden = part(c, &at, (size_t)n * HIDDEN);
    k.d_x = part(c, &at, w);
    k.d_a = part(c, &at, w);
    k.d_b = part(c, &at, w);
    k.d_hidden = part(c, &at, (size_t)n * HIDDEN);
    k.d_records = part(c, &at, w * BELIEF_RECORDS);
    *floats = at;
    return k;
}

size_t belief_queries_cache(uint32_t n) {
    size_t floats;
    (void)belief_queries_cached(n, NULL, &floats);
    return floats;
}

static void add_to(size_t n, const float *x, float *y) {
    for (size_t i = 0; i < n; i++) y[i] += x[i];
}

// h = W features + the sum over a token's records of relu(Wr record).
static void embed(Dense d, const float *w, const float *w_record, const BeliefTokens *t,
                  float *records, float *h) {
    size_t rows = (size_t)t->n * BELIEF_RECORDS;
    dense_forward(d, w, t->n, mat(t->features, d.in), mat_out(h, WIDTH));
    dense_forward(belief_dense(BELIEF_RECORD, WIDTH), w_record, rows,
                  mat(t->records, BELIEF_RECORD), mat_out(records, WIDTH));
    activation_forward(ACTIVATION_RELU, rows * WIDTH, records, records);
    for (uint32_t i = 0; i < t->n; i++) {
        float *of = records + (size_t)i * BELIEF_RECORDS * WIDTH;
        memset(of + (size_t)t->n_records[i] * WIDTH, 0,
               (size_t)(BELIEF_RECORDS - t->n_records[i]) * WIDTH * sizeof *of);
        for (uint32_t r = 0; r < t->n_records[i]; r++)
            add_to(WIDTH, of + (size_t)r * WIDTH, h + (size_t)i * WIDTH);
    }
}

// y = keep + mlp(x)
static void mlp_forward(const float *w, size_t n, const float *x, const float *keep, float *hidden,
                        float *y) {
    Dense first = belief_dense(WIDTH, HIDDEN), second = belief_dense(HIDDEN, WIDTH);
    dense_forward(first, w, n, mat(x, WIDTH), mat_out(hidden, HIDDEN));
    activation_forward(ACTIVATION_RELU, n * HIDDEN, hidden, hidden);
    dense_forward(second, w + dense_params(first), n, mat(hidden, HIDDEN), mat_out(y, WIDTH));
    add_to(n * WIDTH, keep, y);
}

void belief_net_encode(const float *w, const BeliefTokens *jobs, float *kv, float *cache) {
    MatBackend      was = mat_set_backend(MAT_REPRODUCIBLE);
    BeliefParts     p = belief_net_parts();
    size_t          floats;
    BeliefJobsCache k = belief_jobs_cached(jobs->n, cache, &floats);
    embed(belief_dense(BELIEF_JOB, WIDTH), w + p.job, w + p.record, jobs, k.records, k.h);
    mlp_forward(w + p.mlp, jobs->n, k.h, k.h, k.hidden, k.t);
    dense_forward(belief_dense(WIDTH, BELIEF_KV), w + p.kv, jobs->n, mat(k.t, WIDTH),
                  mat_out(kv, BELIEF_KV));
    mat_set_backend(was);
}

static float dot(const float *a, const float *b) {
    float sum = 0;
    for (size_t i = 0; i < HEAD; i++) sum += a[i] * b[i];
    return sum;
}

// Softmax with one more logit, 0, whose value is 0.
static void share_out(uint32_t n, float *x) {
    float most = 0, sum;
    for (uint32_t j = 0; j < n; j++) most = x[j] > most ? x[j] : most;
    sum = repro_exp(0.0f - most);
    for (uint32_t j = 0; j < n; j++) sum += x[j] = repro_exp(x[j] - most);
    for (uint32_t j = 0; j < n; j++) x[j] /= sum;
}

static void attend(const float *w_pair, const BeliefQueries *b, const float *kv, uint32_t layer,
                   const BeliefLayerCache *y) {
    const float scale = 1 / sqrtf(HEAD);
    memset(y->mixed, 0, (size_t)b->tokens.n * WIDTH * sizeof *y->mixed);
    for (uint32_t i = 0; i < b->tokens.n; i++)
        for (uint32_t h = 0; h < BELIEF_HEADS; h++) {
            const float *q = y->q + (size_t)i * WIDTH + (size_t)h * HEAD;
            float       *share = y->share + ((size_t)i * BELIEF_HEADS + h) * BELIEF_CONTEXT;
            float       *to = y->mixed + (size_t)i * WIDTH + (size_t)h * HEAD;
            for (uint32_t j = 0; j < b->len[i]; j++) {
                size_t       at = (size_t)i * BELIEF_CONTEXT + j;
                const float *key = kv + (size_t)b->context[at] * BELIEF_KV +
                                   (size_t)layer * 2 * WIDTH + (size_t)h * HEAD;
                float sum = scale * dot(q, key);
                for (uint32_t f = 0; f < BELIEF_PAIR; f++)
                    sum += b->pair[at * BELIEF_PAIR + f] * w_pair[f * BELIEF_HEADS + h];
                share[j] = sum;
            }
            share_out(b->len[i], share);
            for (uint32_t j = 0; j < b->len[i]; j++) {
                const float *value =
                    kv + (size_t)b->context[(size_t)i * BELIEF_CONTEXT + j] * BELIEF_KV +
                    (size_t)layer * 2 * WIDTH + WIDTH + (size_t)h * HEAD;
                for (uint32_t d = 0; d < HEAD; d++) to[d] += share[j] * value[d];
            }
        }
}

static void layer_forward(const float *w, const BeliefLayer *p, const BeliefQueries *b,
                          const float *kv, uint32_t l, const BeliefQueriesCache *k) {
    const BeliefLayerCache *y = &k->layers[l];
    size_t                  n = b->tokens.n;
    Dense                   square = belief_dense(WIDTH, WIDTH);
    layer_norm_forward(belief_norm(), w + p->norm, n, k->x[l], y->normed, y->norm);
    dense_forward(square, w + p->query, n, mat(y->normed, WIDTH), mat_out(y->q, WIDTH));
    attend(w + p->pair, b, kv, l, y);
    dense_forward(square, w + p->output, n, mat(y->mixed, WIDTH), mat_out(y->mid, WIDTH));
    add_to(n * WIDTH, k->x[l], y->mid);
    layer_norm_forward(belief_norm(), w + p->norm_mlp, n, y->mid, y->normed_mlp, y->norm_mlp);
    mlp_forward(w + p->mlp, n, y->normed_mlp, y->mid, y->hidden, k->x[l + 1]);
}

void belief_net_query(const float *w, const BeliefQueries *q, const float *kv, float *raw,
                      float *cache) {
    MatBackend         was = mat_set_backend(MAT_REPRODUCIBLE);
    BeliefParts        p = belief_net_parts();
    size_t             floats, n = q->tokens.n;
    BeliefQueriesCache k = belief_queries_cached(q->tokens.n, cache, &floats);
    embed(belief_dense(BELIEF_QUERY, WIDTH), w + p.query, w + p.record, &q->tokens, k.records,
          k.x[0]);
    for (uint32_t l = 0; l < BELIEF_LAYERS; l++) layer_forward(w, &p.layers[l], q, kv, l, &k);
    layer_norm_forward(belief_norm(), w + p.last_norm, n, k.x[BELIEF_LAYERS], k.last, k.last_norm);
    dense_forward(belief_dense(WIDTH, HIDDEN), w + p.hidden, n, mat(k.last, WIDTH),
                  mat_out(k.hidden, HIDDEN));
    activation_forward(ACTIVATION_RELU, n * HIDDEN, k.hidden, k.hidden);
    dense_forward(belief_dense(HIDDEN, BELIEF_OUT), w + p.out, n, mat(k.hidden, HIDDEN),
                  mat_out(raw, BELIEF_OUT));
    mat_set_backend(was);
}

void belief_net_output(const float *raw, const float *told, BeliefOutput *out) {
    activation_softmax(1, BELIEF_MIX, NULL, raw, out->weight);
    for (uint32_t k = 0; k < BELIEF_MIX; k++)
        out->mean[k] = BELIEF_LOG_MIDDLE + BELIEF_LOG_UNIT * raw[BELIEF_MIX + k];
    activation_forward(ACTIVATION_SOFTPLUS, BELIEF_MIX, raw + 2 * BELIEF_MIX, out->sd);
    for (uint32_t k = 0; k < BELIEF_MIX; k++) out->sd[k] += BELIEF_SD_LEAST;
    const float *speed = raw + 3 * BELIEF_MIX;
    for (uint32_t k = 0; k < BELIEF_SPEEDS; k++) out->speed[k] = speed[k];
    for (uint32_t l = 0; told != NULL && l < BELIEF_LEVELS; l++)
        out->speed[l] += told[l] * (1 + raw[BELIEF_TRUST]);
    for (uint32_t k = 0; k < BELIEF_SPEEDS; k++) out->scale[k] = speed[BELIEF_SPEEDS + k] - 2;
    activation_forward(ACTIVATION_SOFTPLUS, BELIEF_SPEEDS, out->scale, out->scale);
    for (uint32_t k = 0; k < BELIEF_SPEEDS; k++) out->scale[k] += BELIEF_SCALE_LEAST;
}
