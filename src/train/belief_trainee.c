#include "train/belief_trainee.h"

#include <string.h>

#include "learn/adam.h"
#include "train/belief_world.h"

enum { BATCH = 4, CHECKS = 64 };  // samples of an update, and of an evaluation
static const float  RATE = 2e-3f, RATE_TUNE = 5e-4f;
static const double CLIP = 2, OWN = 0.75;  // OWN: share of a cluster's own jobs in fine-tuning

const TrainDefaults belief_train_defaults = {
    .plan = {.updates = 24, .check = 8, .tolerance = 1e9}, .parts = {1, 0, 0}, .rest_first = true};

typedef struct BeliefTrainee {
    Trainee        trainee;
    Evaluator      evaluator;
    BeliefTraining x;
    FloatVec       m, v;
} BeliefTrainee;

typedef struct Samples {  // of one update or evaluation
    const BeliefTrainee *of;
    const float         *w;
    uint64_t             seed, first;
    float               *gradients;  // [n][params]; NULL: losses only
    BeliefLoss          *losses;     // [n]
} Samples;

static void backward(const Samples *s, uint32_t i, const BeliefBatch *b, const float *kv,
                     const float *d_raw, float *jobs_cache, float *query_cache, Arena *a) {
    size_t params = s->of->trainee.params.n;
    float *d_kv = float_vec_new(a, (size_t)b->jobs.n * BELIEF_KV).at;
    float *g = s->gradients + i * params;
    memset(g, 0, params * sizeof *g);
    belief_net_query_back(s->w, g, &b->queries, kv, d_raw, d_kv, query_cache);
    belief_net_encode_back(s->w, g, &b->jobs, d_kv, jobs_cache);
}

static Err run_sample(void *self, uint32_t i, Arena *a) {
    Samples    *s = self;
    Rng         rng = rng_fork((Rng){s->seed}, s->first + i);
    bool        own = s->of->x.like != NULL && rng_unit64(&rng) < OWN;
    BeliefBatch b = belief_world_sample(rng, own ? s->of->x.like : NULL, a);
    uint32_t    n = b.queries.tokens.n;
    float      *kv = float_vec_new(a, (size_t)b.jobs.n * BELIEF_KV).at;
    float      *raw = float_vec_new(a, (size_t)n * BELIEF_OUT).at;
    float      *d_raw = float_vec_new(a, (size_t)n * BELIEF_OUT).at;
    float      *jobs_cache = float_vec_new(a, belief_jobs_cache(b.jobs.n)).at;
    float      *query_cache = float_vec_new(a, belief_queries_cache(n)).at;
    belief_net_encode(s->w, &b.jobs, kv, jobs_cache);
    belief_net_query(s->w, &b.queries, kv, raw, query_cache);
    s->losses[i] = belief_loss(&b, raw, d_raw);
    if (s->gradients != NULL) backward(s, i, &b, kv, d_raw, jobs_cache, query_cache, a);
    return ERR_OK;
}

static BeliefLoss mean_loss(const BeliefLoss *l, uint32_t n) {
    BeliefLoss sum = {0, 0};
    for (uint32_t i = 0; i < n; i++) {
        sum.left += l[i].left / n;
        sum.speed += l[i].speed / n;
    }
    return sum;
}

static float rate_of(const BeliefTraining *x, uint32_t generation) {
    float done = (float)generation / (float)(x->generations > 0 ? x->generations : 1);
    float rate = x->start != NULL ? RATE_TUNE : RATE;
    return rate * (done < 1 ? 1 - 0.95f * done : 0.05f);
}

static Err update(BeliefTrainee *t, const TrainRound *r, uint32_t u, Samples *s, double *loss) {
    uint64_t    step = (uint64_t)r->generation * r->updates + u;
    AdamOptions o = adam_defaults(rate_of(&t->x, r->generation));
    FloatVec    sum = {s->gradients, t->trainee.params.n};
    s->first = step * BATCH;
    TRY(train_parallel(run_sample, s, BATCH, r->threads));
    for (uint32_t i = 1; i < BATCH; i++)
        float_vec_add(sum, (FloatVec){s->gradients + i * sum.n, sum.n});
    float_vec_scale(sum, 1.0f / BATCH);
    (void)float_vec_clip(sum, CLIP);
    adam_step(&o, step + 1, t->trainee.params, sum, t->m, t->v);
    BeliefLoss mean = mean_loss(s->losses, BATCH);
    *loss += (mean.left + mean.speed) / r->updates;
    return ERR_OK;
}

static Err train(Trainee *self, const TrainRound *r, Arena *scratch, double *loss) {
    BeliefTrainee *t = self->self;
    BeliefLoss     losses[BATCH] = {{0, 0}};
    Samples        s = {.of = t,
                        .w = t->trainee.params.at,
                        .seed = rng_fork((Rng){r->seed}, 17).s,
                        .gradients = float_vec_new(scratch, t->trainee.params.n * BATCH).at,
                        .losses = losses};
    *loss = 0;
    for (uint32_t u = 0; u < r->updates; u++) TRY(update(t, r, u, &s, loss));
    return ERR_OK;
}

static void params_set(Trainee *self) {
    BeliefTrainee *t = self->self;
    float_vec_zero(t->m);
    float_vec_zero(t->v);
}

static Err evaluate(const Evaluator *e, const Trainee *trainee, const float *params, Arena *scratch,
                    Score *out) {
    const BeliefTrainee *t = e->self;
    BeliefLoss           losses[CHECKS] = {{0, 0}};
    Samples s = {.of = t, .w = params, .seed = rng_fork((Rng){0}, 18).s, .losses = losses};
    (void)trainee;
    (void)scratch;
    TRY(train_parallel(run_sample, &s, CHECKS, e->threads));
    BeliefLoss mean = mean_loss(losses, CHECKS);
    *out = (Score){.objective = -mean.left - mean.speed, .values = {mean.left, mean.speed}};
    return ERR_OK;
}

static Err evaluate_start(Evaluator *e, const Trainee *t, Arena *a, Score *rule) {
    return evaluate(e, t, t->params.at, a, rule);
}

void belief_training_open(const BeliefTraining *x, Arena *a, Trainee **trainee, Evaluator **out) {
    BeliefTrainee *t = arena_new(a, BeliefTrainee, 1);
    size_t         n = belief_net_params();
    FloatVec       state = float_vec_new(a, 3 * n);
    Rng            rng = rng_fork((Rng){x->seed}, 16);
    FloatVec       w = float_vec_part(state, 0, n);
    belief_net_init(w.at, &rng);
    if (x->start != NULL) memcpy(w.at, x->start, n * sizeof *w.at);
    *t = (BeliefTrainee){.x = *x,
                         .m = float_vec_part(state, n, n),
                         .v = float_vec_part(state, 2 * n, n),
                         .trainee = {.name = "beliefs",
                                     .params = w,
                                     .head = float_vec_part(state, 0, 0),
                                     .state = state,
                                     .facts = BELIEF_FACTS,
                                     .train = train,
                                     .params_set = params_set},
                         .evaluator = {.names = {"left", "speed", NULL},
                                       .facts = x->like != NULL ? "runs=own\n" : "runs=imagined\n",
                                       .open = evaluate_start,
                                       .evaluate = evaluate}};
    t->trainee.self = t->evaluator.self = t;
    *trainee = &t->trainee;
    *out = &t->evaluator;
}
