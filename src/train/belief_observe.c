// What is observed of a BeliefWorld at one time, and the losses of what a network says of it.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/belief_world.h"

static double end_of(const BeliefWorldJob *j) { return j->start_s + j->work_s / j->rate; }

typedef struct Observed {
    const BeliefWorld *world;
    double             at_s;
    BeliefJob         *jobs;   // [n] first the ended ones, the newest first
    uint32_t          *index;  // [n] in the world
    uint32_t           n, n_ended;
    uint32_t          *queries;  // [n_queries] indices in the world
    uint32_t           n_queries;
} Observed;

typedef struct Ending {
    double   at_s;
    uint32_t job;
} Ending;

static int newest_first(const void *a, const void *b) {
    const Ending *x = a, *y = b;
    if (x->at_s != y->at_s) return x->at_s < y->at_s ? 1 : -1;
    return (x->job < y->job) - (x->job > y->job);
}

static BeliefJob seen(const BeliefWorld *w, uint32_t i, double at_s) {
    const BeliefWorldJob *j = &w->jobs[i];
    double    work = at_s > j->start_s ? fmin((at_s - j->start_s) * j->rate, j->work_s) : 0;
    BeliefJob b = {.traits = j->traits, .submit_s = j->submit_s, .work_s = work, .serial = i};
    b.ended = end_of(j) <= at_s;
    b.n_records = work > 0 ? j->n_records : 0;
    memcpy(b.records, j->records, sizeof b.records);
    return b;
}

static void look(Observed *o, Arena *a) {
    const BeliefWorld *w = o->world;
    Ending            *ends = arena_new(a, Ending, w->n);
    o->jobs = arena_new(a, BeliefJob, w->n);
    o->index = arena_new(a, uint32_t, w->n);
    o->queries = arena_new(a, uint32_t, w->n);
    for (uint32_t i = 0; i < w->n; i++)
        if (end_of(&w->jobs[i]) <= o->at_s) ends[o->n_ended++] = (Ending){end_of(&w->jobs[i]), i};
    qsort(ends, o->n_ended, sizeof *ends, newest_first);
    for (; o->n < o->n_ended; o->n++) o->index[o->n] = ends[o->n].job;
    for (uint32_t i = 0; i < w->n; i++) {
        bool ended = end_of(&w->jobs[i]) <= o->at_s;
        if (!ended && w->jobs[i].start_s < o->at_s) o->index[o->n++] = i;
    }
    for (uint32_t i = 0; i < o->n; i++) o->jobs[i] = seen(w, o->index[i], o->at_s);
}

// Up to half of them are submitted next or wait.
static void choose(Observed *o, Rng *rng) {
    const BeliefWorld *w = o->world;
    uint32_t           next = 0, first = o->n_ended;
    for (uint32_t i = 0; i < w->n && o->n_queries < BELIEF_WORLD_QUERIES / 2; i++) {
        bool ahead = w->jobs[i].submit_s >= o->at_s;
        if (ahead && next++ >= BELIEF_WORLD_QUERIES / 4) break;
        if (ahead || (w->jobs[i].start_s >= o->at_s && rng_below(rng, 2) == 0))
            o->queries[o->n_queries++] = i;
    }
    uint32_t room = BELIEF_WORLD_QUERIES - o->n_queries, n = o->n - first;
    for (uint32_t i = 0; i < n && room > 0; i++) {
        if (rng_below(rng, n - i) >= room) continue;
        o->queries[o->n_queries++] = o->index[first + i];
        room--;
    }
}

static BeliefTokens tokens_new(uint32_t n, uint32_t features, Arena *a) {
    return (BeliefTokens){float_vec_new(a, (size_t)n * features).at,
                          float_vec_new(a, (size_t)n * BELIEF_RECORDS * BELIEF_RECORD).at,
                          arena_new(a, uint8_t, n + 1), n};
}

static float log_speed(const BeliefWorldJob *j, uint32_t level) {
    if (level == BELIEF_LEVELS) return (float)log(j->profile.beside);
    const BeliefAmounts *l = &belief_levels[level];
    return (float)log(belief_profile_speed(&j->profile, l->cores, l->memory));
}

static void put_query(const Observed *o, uint32_t i, const BeliefBatch *b, Rng *rng) {
    const BeliefWorldJob *j = &o->world->jobs[o->queries[i]];
    BeliefJob             q = seen(o->world, o->queries[i], o->at_s);
    float                *records = b->queries.tokens.records;
    float                 told[BELIEF_LEVELS];
    uint32_t             *rows = b->queries.context + (size_t)i * BELIEF_CONTEXT;
    uint32_t              n = 0, candidates[BELIEF_WORLD_JOBS];
    if (q.n_records > 0) q.n_records = (uint8_t)rng_below(rng, q.n_records + 1u);
    for (uint32_t k = 0; k < o->n; k++) {
        if (o->index[k] == o->queries[i]) continue;
        candidates[n++] = k;
    }
    BeliefCandidates c = {o->jobs, candidates, n};
    b->queries.len[i] =
        belief_select(&c, &q, rows, b->queries.pair + (size_t)i * BELIEF_CONTEXT * BELIEF_PAIR);
    for (uint32_t l = 0; l < BELIEF_LEVELS; l++) told[l] = (float)j->told_power * log_speed(j, l);
    belief_query_features(&q, o->world->told ? told : NULL,
                          b->queries.tokens.features + (size_t)i * BELIEF_QUERY,
                          records + (size_t)i * BELIEF_RECORDS * BELIEF_RECORD);
    b->queries.tokens.n_records[i] = q.n_records;
    b->log_left[i] = (float)log(fmax(j->work_s - q.work_s, 1));
    for (uint32_t l = 0; l < BELIEF_SPEEDS; l++) b->speeds[i][l] = log_speed(j, l);
}

BeliefBatch belief_world_observe(const BeliefWorld *w, double at_s, Rng rng, Arena *a) {
    Observed o = {.world = w, .at_s = at_s};
    look(&o, a);
    choose(&o, &rng);
    uint32_t    n = o.n_queries;
    BeliefBatch b = {
        .jobs = tokens_new(o.n, BELIEF_JOB, a),
        .queries = {.tokens = tokens_new(n, BELIEF_QUERY, a),
                    .context = arena_new(a, uint32_t, (size_t)n * BELIEF_CONTEXT + 1),
                    .len = arena_new(a, uint32_t, n + 1),
                    .pair = float_vec_new(a, (size_t)n * BELIEF_CONTEXT * BELIEF_PAIR).at},
        .log_left = float_vec_new(a, n).at,
        .speeds = arena_alloc(a, n + 1, sizeof *b.speeds, 16)};
    for (uint32_t i = 0; i < o.n; i++) {
        belief_features(&o.jobs[i], b.jobs.features + (size_t)i * BELIEF_JOB,
                        b.jobs.records + (size_t)i * BELIEF_RECORDS * BELIEF_RECORD);
        b.jobs.n_records[i] = o.jobs[i].n_records;
    }
    for (uint32_t i = 0; i < n; i++) put_query(&o, i, &b, &rng);
    return b;
}

BeliefBatch belief_world_sample(Rng rng, const JobList *like, Arena *a) {
    BeliefWorld w = belief_world_draw(rng_split(&rng), like, a);
    uint32_t    at = w.n / 16 + (uint32_t)rng_below(&rng, w.n - w.n / 16);
    return belief_world_observe(&w, w.jobs[at].submit_s, rng, a);
}

// d: gradients of the logits, means and raw deviations of the mixture.
static double left_loss(const float *raw, const BeliefOutput *x, double y, double share, float *d) {
    double like[BELIEF_MIX], sum = 1e-12;
    for (uint32_t k = 0; k < BELIEF_MIX; k++) {
        double sd = (double)x->sd[k], z = (y - (double)x->mean[k]) / sd;
        sum += like[k] = (double)x->weight[k] / sd * exp(-z * z / 2);
    }
    for (uint32_t k = 0; d != NULL && k < BELIEF_MIX; k++) {
        double sd = (double)x->sd[k], z = (y - (double)x->mean[k]) / sd, of = like[k] / sum;
        double slope = 1 / (1 + exp(-(double)raw[2 * BELIEF_MIX + k]));  // of softplus
        d[k] = (float)(share * ((double)x->weight[k] - of));
        d[BELIEF_MIX + k] = (float)(-share * of * z / sd * (double)BELIEF_LOG_UNIT);
        d[2 * BELIEF_MIX + k] = (float)(share * of * (1 - z * z) / sd * slope);
    }
    return 0.918938533 - log(sum);
}

// Student's t with 4 degrees of freedom: a Gaussian loss diverges on speeds.
static double speed_loss(const float *raw, const float *told, const BeliefOutput *x, const float *y,
                         double share, float *d) {
    const double degrees = 4;
    double       loss = 0, trust = 0;
    for (uint32_t k = 0; k < BELIEF_SPEEDS; k++) {
        double s = (double)x->scale[k], z = ((double)y[k] - (double)x->speed[k]) / s;
        double pull = (degrees + 1) * z / (degrees + z * z);
        double slope = 1 / (1 + exp(2 - (double)raw[BELIEF_SPEEDS + k]));
        loss += (0.980829253 + log(s) + (degrees + 1) / 2 * log1p(z * z / degrees)) / BELIEF_SPEEDS;
        if (d == NULL) continue;
        double slip = -share * pull / s / BELIEF_SPEEDS;
        d[k] = (float)slip;
        if (k < BELIEF_LEVELS) trust += slip * (double)told[k];
        d[BELIEF_SPEEDS + k] = (float)(share * (1 - z * pull) / s * slope / BELIEF_SPEEDS);
    }
    if (d != NULL) d[2 * BELIEF_SPEEDS] = (float)trust;
    return loss;
}

BeliefLoss belief_loss(const BeliefBatch *b, const float *raw, float *d_raw) {
    BeliefLoss sum = {0, 0};
    uint32_t   n = b->queries.tokens.n;
    double     share = n > 0 ? 1.0 / n : 0;
    for (uint32_t i = 0; i < n; i++, raw += BELIEF_OUT) {
        BeliefOutput x;
        float       *d = d_raw == NULL ? NULL : d_raw + (size_t)i * BELIEF_OUT;
        const float *told = b->queries.tokens.features + (size_t)i * BELIEF_QUERY + BELIEF_JOB;
        belief_net_output(raw, told, &x);
        sum.left += share * left_loss(raw, &x, (double)b->log_left[i], share, d);
        sum.speed += share * speed_loss(raw + 3 * BELIEF_MIX, told, &x, b->speeds[i], share,
                                        d == NULL ? NULL : d + 3 * BELIEF_MIX);
    }
    return sum;
}
