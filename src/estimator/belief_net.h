// BeliefNet: the network behind beliefs by attention: from what was observed of a job and of up to
// BELIEF_CONTEXT others, a mixture of Gaussians for the logarithm of its work left and a Student's
// t for the logarithm of its speed at each of a few allocations and beside a co-runner.
//
//     t_j = h_j + mlp(h_j)   h_j = Wj job_j + sum of relu(Wr record)      per context job: k, v
//     x  += Wo attend(q(norm x), k, v, bias = B pair)   x += mlp(norm x)  per query, two layers
//
// Relations of two jobs enter as bias of the logits only; a key with logit and value 0 takes part.
// Sums have a fixed order: every machine computes the same bits.
#pragma once

#include "base/rng.h"
#include "learn/float_vec.h"

enum {
    BELIEF_CONTEXT = 48,
    BELIEF_RECORDS = 3,
    BELIEF_LEVELS = 9,                  // allocations, see belief_levels
    BELIEF_SPEEDS = BELIEF_LEVELS + 1,  // the last one: beside a co-runner
    BELIEF_MIX = 3,
    BELIEF_JOB = 6,  // features
    BELIEF_RECORD = 5,
    BELIEF_TOLD = BELIEF_LEVELS + 1,  // of a library's profile; the last one: whether there is one
    BELIEF_QUERY = BELIEF_JOB + BELIEF_TOLD,
    BELIEF_PAIR = 14,
    BELIEF_WIDTH = 32,
    BELIEF_HEADS = 4,
    BELIEF_LAYERS = 2,
    BELIEF_KV = 2 * BELIEF_WIDTH * BELIEF_LAYERS,       // keys and values of a context job
    BELIEF_TRUST = 3 * BELIEF_MIX + 2 * BELIEF_SPEEDS,  // output that scales what was told
    BELIEF_OUT,
};

static const float BELIEF_LOG_MIDDLE = 6.5f, BELIEF_LOG_UNIT = 2.5f;  // of log seconds
static const float BELIEF_SD_LEAST = 0.1f, BELIEF_SCALE_LEAST = 0.03f;

#define BELIEF_FACTS "policy=beliefs\nnetwork=1\n"  // metadata of its weights files

// Jobs or queries; queries have BELIEF_QUERY features, jobs BELIEF_JOB.
typedef struct BeliefTokens {
    float   *features;   // [n][...]
    float   *records;    // [n][BELIEF_RECORDS][BELIEF_RECORD]
    uint8_t *n_records;  // [n]
    uint32_t n;
} BeliefTokens;

typedef struct BeliefQueries {
    BeliefTokens tokens;
    uint32_t    *context;  // [n][BELIEF_CONTEXT] rows of kv
    uint32_t    *len;      // [n]
    float       *pair;     // [n][BELIEF_CONTEXT][BELIEF_PAIR]
} BeliefQueries;

typedef struct BeliefOutput {  // of the work left in seconds, and of speeds relative to the default
    float weight[BELIEF_MIX], mean[BELIEF_MIX], sd[BELIEF_MIX];  // of the logarithm
    float speed[BELIEF_SPEEDS], scale[BELIEF_SPEEDS];            // of the logarithm
} BeliefOutput;

size_t belief_net_params(void);
void   belief_net_init(float *w, Rng *rng);

// kv [n][BELIEF_KV]. cache: NULL, or belief_jobs_cache(n) floats that backward needs.
void   belief_net_encode(const float *w, const BeliefTokens *jobs, float *kv, float *cache);
size_t belief_jobs_cache(uint32_t n);

// raw [n][BELIEF_OUT]; cache: belief_queries_cache(n) floats.
void   belief_net_query(const float *w, const BeliefQueries *q, const float *kv, float *raw,
                        float *cache);
size_t belief_queries_cache(uint32_t n);
// told [BELIEF_LEVELS]: logarithms of speeds by a library, which the outputs correct; NULL: none.
void belief_net_output(const float *raw, const float *told, BeliefOutput *out);

// gw += gradients, d_kv += gradients; after belief_net_query with the same cache.
void belief_net_query_back(const float *w, float *gw, const BeliefQueries *q, const float *kv,
                           const float *d_raw, float *d_kv, float *cache);
void belief_net_encode_back(const float *w, float *gw, const BeliefTokens *jobs, const float *d_kv,
                            float *cache);
