// BeliefParts: where the layers of the network have their parameters. belief_net.c: layers and
// forward; belief_net_back.c: backward.
#pragma once

#include "estimator/belief_net.h"
#include "learn/dense.h"
#include "learn/transformer.h"

enum { BELIEF_HIDDEN = 48, BELIEF_HEAD = BELIEF_WIDTH / BELIEF_HEADS };

typedef struct BeliefLayer {
    size_t norm, query, pair, output, norm_mlp, mlp;
} BeliefLayer;

typedef struct BeliefParts {
    size_t      job, record, mlp, kv, query, last_norm, hidden, out, n;
    BeliefLayer layers[BELIEF_LAYERS];
} BeliefParts;

typedef struct BeliefJobsCache {
    float *records;  // [n][BELIEF_RECORDS][BELIEF_WIDTH] after relu
    float *h, *t;    // [n][BELIEF_WIDTH] before and after the block
    float *hidden, *d, *d_hidden, *d_records;
} BeliefJobsCache;

typedef struct BeliefLayerCache {
    float *normed, *norm, *q, *share, *mixed;  // share [n][BELIEF_HEADS][BELIEF_CONTEXT]
    float *mid, *normed_mlp, *norm_mlp, *hidden;
} BeliefLayerCache;

typedef struct BeliefQueriesCache {
    float           *records, *x[BELIEF_LAYERS + 1];
    BeliefLayerCache layers[BELIEF_LAYERS];
    float           *last, *last_norm, *hidden;
    float           *d_x, *d_a, *d_b, *d_hidden, *d_records;
} BeliefQueriesCache;

static inline Dense belief_dense(uint32_t in, uint32_t out) { return (Dense){in, out}; }

static inline LayerNorm belief_norm(void) { return (LayerNorm){BELIEF_WIDTH}; }

BeliefParts        belief_net_parts(void);
BeliefJobsCache    belief_jobs_cached(uint32_t n, float *cache, size_t *floats);
BeliefQueriesCache belief_queries_cached(uint32_t n, float *cache, size_t *floats);
