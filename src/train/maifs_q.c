#include "train/maifs_q.h"

#include <math.h>
#include <string.h>

#include "base/err.h"
#include "learn/activation.h"
#include "learn/adam.h"
#include "learn/dense.h"

enum { PARTS = 4, HIDDEN = 32 };  // of a batch, for threads; hidden units of V

typedef struct Part {  // buffers of one part of a batch
    FloatVec      gradient;
    MaifsOfferAt *at;
    float        *cache, *u, *du, *f, *df, *features, *pairs, *d_pairs;
    float         hidden[HIDDEN], d_hidden[HIDDEN];
    double        loss;
} Part;

struct MaifsQ {
    MaifsQOptions o;
    size_t        n_net, n;  // parameters of the network; of all
    FloatVec      state;     // all of the next line
    FloatVec      w, target, m, v, steps;
    Part          parts[PARTS];
    // Of the current update.
    const MaifsQStep   *batch;
    const MaifsQSample *samples;
    uint32_t            n_batch;
};

static Dense  v_in(void) { return (Dense){MAIFS_Q_POOL, HIDDEN}; }
static Dense  v_out(void) { return (Dense){HIDDEN, 1}; }
static size_t at_out(const MaifsQ *q) { return q->n_net + dense_params(v_in()); }
static size_t at_scale(const MaifsQ *q) { return at_out(q) + dense_params(v_out()); }

static void open_part(MaifsQ *q, Part *p, Arena *a) {
    const MaifsQOptions *o = &q->o;
    size_t               pairs = (size_t)2 * o->took * o->net.rank;
    p->gradient = float_vec_new(a, q->n);
    p->at = arena_new(a, MaifsOfferAt, 2 * (size_t)o->took);
    p->cache = arena_new(a, float, maifs_net_cache(&o->net, o->servers, o->jobs));
    p->u = arena_new(a, float, o->jobs);
    p->du = arena_new(a, float, o->jobs);
    p->f = arena_new(a, float, 2 * (size_t)o->took);
    p->df = arena_new(a, float, 2 * (size_t)o->took);
    p->features = arena_new(a, float, 2 * (size_t)o->took * MAIFS_OFFER);
    p->pairs = arena_new(a, float, pairs);
    p->d_pairs = arena_new(a, float, pairs);
}

MaifsQ *maifs_q_create(Arena *a, MaifsQOptions o, uint64_t seed) {
    MaifsQ *q = arena_new(a, MaifsQ, 1);
    Rng     rng = {seed};
    q->o = o;
    q->n_net = maifs_net_params(&o.net);
    q->n = at_scale(q) + 1;
    q->state = float_vec_new(a, 4 * q->n + 1);
    q->w = float_vec_part(q->state, 0, q->n);
    q->target = float_vec_part(q->state, q->n, q->n);
    q->m = float_vec_part(q->state, 2 * q->n, q->n);
    q->v = float_vec_part(q->state, 3 * q->n, q->n);
    q->steps = float_vec_part(q->state, 4 * q->n, 1);
    maifs_net_init(&o.net, q->w.at, &rng);
    dense_init(v_in(), q->w.at + q->n_net, 1.4142f, &rng);
    q->w.at[at_scale(q)] = -2;  // its logarithm
    float_vec_copy(q->target, q->w);
    for (uint32_t i = 0; i < PARTS; i++) open_part(q, &q->parts[i], a);
    return q;
}

MaifsQOptions *maifs_q_options(MaifsQ *q) { return &q->o; }
FloatVec       maifs_q_net(MaifsQ *q) { return float_vec_part(q->w, 0, q->n_net); }
FloatVec       maifs_q_state(MaifsQ *q) { return q->state; }

void maifs_q_params_set(MaifsQ *q) {
    float_vec_copy(q->target, q->w);
    float_vec_zero(q->m);
    float_vec_zero(q->v);
    float_vec_zero(q->steps);
}

typedef struct Sum {  // of a joint action
    float v, scale, offers;
} Sum;

// s_m: near 1 for short jobs, small for long ones.
static float size_of(const MaifsQState *x, const Part *p, uint32_t i) {
    uint32_t job = x->offers[i].at.job;
    float    own = x->offers[i].own * repro_exp((float)MAIFS_VALUE_RANGE * (p->u[job] - x->u[job]));
    return own / (1 + own);
}

static float pair_of(const MaifsQ *q, const Part *p, uint32_t i, uint32_t j) {
    uint32_t     rank = q->o.net.rank;
    const float *left = p->pairs + (size_t)i * rank;
    const float *right = p->pairs + ((size_t)q->o.took + j) * rank;
    float        sum = 0;
    for (uint32_t r = 0; r < rank; r++) sum += left[r] * right[r];
    return sum / 2;
}

static float state_value(const MaifsQ *q, const float *w, const float *pool, Part *p) {
    float v;
    dense_forward(v_in(), w + q->n_net, 1, mat(pool, MAIFS_Q_POOL), mat_out(p->hidden, HIDDEN));
    activation_forward(ACTIVATION_RELU, HIDDEN, p->hidden, p->hidden);
    dense_forward(v_out(), w + at_out(q), 1, mat(p->hidden, HIDDEN), mat_out(&v, 1));
    return v;
}

// gain_m + f_m + pairs.
static float sum_of(const MaifsQ *q, const MaifsQState *x, const Part *p, uint32_t i) {
    float sum = x->offers[i].gain + p->f[i];
    for (uint32_t j = 0; i < x->n_took && j < x->n_took; j++)
        if (j != i) sum += pair_of(q, p, i, j);
    return sum;
}

// Forward pass; keeps in the part what the backward pass needs.
static Sum value(const MaifsQ *q, const float *w, const MaifsQState *x, Part *p) {
    const MaifsNet *net = &q->o.net;
    Sum             s = {.scale = repro_exp(w[at_scale(q)])};
    CHECK(x->in.n_servers <= q->o.servers && x->in.n_jobs <= q->o.jobs && x->n_took <= q->o.took);
    s.v = state_value(q, w, x->pool, p);
    if (x->n_took == 0) return s;
    for (uint32_t i = 0; i < 2 * x->n_took; i++) {
        p->at[i] = x->offers[i].at;
        memcpy(p->features + (size_t)i * MAIFS_OFFER, x->offers[i].features,
               sizeof x->offers[i].features);
    }
    maifs_net_observe(net, w, &x->in, p->cache, p->u);
    maifs_net_price(net, w, p->cache, 2 * x->n_took, p->at, p->features, p->f);
    maifs_net_pair(net, w, p->cache, x->n_took, p->at, p->pairs,
                   p->pairs + (size_t)q->o.took * net->rank);
    for (uint32_t i = 0; i < 2 * x->n_took; i++)
        s.offers += (i < x->n_took ? 1.0f : -1.0f) * size_of(x, p, i) * sum_of(q, x, p, i);
    return s;
}

static float total(const Sum *s) { return s->v + s->scale * s->offers; }

double maifs_q_value(MaifsQ *q, const MaifsQState *state) {
    MatBackend was = mat_set_backend(MAT_REPRODUCIBLE);
    Sum        s = value(q, q->w.at, state, &q->parts[0]);
    mat_set_backend(was);
    return (double)total(&s);
}

static void state_back(const MaifsQ *q, const float *pool, float d, Part *p) {
    const float *w = q->w.at;
    float       *gw = p->gradient.at;
    dense_backward(v_out(), w + at_out(q), gw + at_out(q), 1, mat(p->hidden, HIDDEN), mat(&d, 1),
                   mat_out(p->d_hidden, HIDDEN));
    activation_backward(ACTIVATION_RELU, HIDDEN, p->hidden, p->d_hidden, p->d_hidden);
    dense_backward(v_in(), w + q->n_net, gw + q->n_net, 1, mat(pool, MAIFS_Q_POOL),
                   mat(p->d_hidden, HIDDEN), mat_out(NULL, 0));
}

// Gradients of offers, pairs and job values; d is that of Q.
static void offers_back(const MaifsQ *q, const MaifsQState *x, const Sum *s, float d, Part *p) {
    uint32_t rank = q->o.net.rank, n = x->n_took;
    size_t   half = (size_t)q->o.took * rank;
    memset(p->du, 0, x->in.n_jobs * sizeof *p->du);
    memset(p->d_pairs, 0, 2 * half * sizeof *p->d_pairs);
    for (uint32_t i = 0; i < 2 * n; i++) {
        float own = size_of(x, p, i), by = (i < n ? d : -d) * s->scale * own;
        for (uint32_t j = 0; i < n && j < n; j++) {
            if (j == i) continue;
            for (uint32_t r = 0; r < rank; r++) {
                p->d_pairs[(size_t)i * rank + r] += by / 2 * p->pairs[half + (size_t)j * rank + r];
                p->d_pairs[half + (size_t)j * rank + r] += by / 2 * p->pairs[(size_t)i * rank + r];
            }
        }
        p->df[i] = by;
        p->du[x->offers[i].at.job] +=
            by * (1 - own) * (float)MAIFS_VALUE_RANGE * sum_of(q, x, p, i);
    }
    for (uint32_t k = 0; k < x->in.n_jobs; k++) p->du[k] += q->o.hold * (p->u[k] - x->u[k]);
}

static void step_back(const MaifsQ *q, const MaifsQState *x, const Sum *s, float d, Part *p) {
    const MaifsNet *net = &q->o.net;
    const float    *w = q->w.at;
    float          *gw = p->gradient.at;
    size_t          half = (size_t)q->o.took * net->rank;
    state_back(q, x->pool, d, p);
    if (x->n_took == 0) return;
    gw[at_scale(q)] += d * s->scale * s->offers;
    offers_back(q, x, s, d, p);
    maifs_net_back_begin(net, p->cache);
    maifs_net_price_back(net, w, gw, p->cache, 2 * x->n_took, p->at, p->features, p->df);
    maifs_net_pair_back(net, w, gw, p->cache, x->n_took, p->at, p->d_pairs, p->d_pairs + half);
    maifs_net_observe_back(net, w, gw, &x->in, p->cache, p->du);
}

static void train_one(const MaifsQ *q, const MaifsQStep *x, Part *p) {
    float target = x->reward;
    if (x->discount > 0) {
        Sum later = value(q, q->target.at, &x->next, p);
        target += x->discount * total(&later);
    }
    Sum   now = value(q, q->w.at, &x->now, p);
    float off = total(&now) - target;
    p->loss += (double)(off * off) / 2;
    float d = off > 1 ? 1 : off < -1 ? -1 : off;
    step_back(q, &x->now, &now, d / (float)q->n_batch, p);
}

static void teach_one(const MaifsQ *q, const MaifsQSample *x, Part *p) {
    float share = 1.0f / (float)(x->in.n_jobs > 0 ? x->in.n_jobs : 1);
    CHECK(x->in.n_servers <= q->o.servers && x->in.n_jobs <= q->o.jobs);
    maifs_net_observe(&q->o.net, q->w.at, &x->in, p->cache, p->u);
    for (uint32_t k = 0; k < x->in.n_jobs; k++) {
        float off = p->u[k] - x->u[k];
        p->loss += (double)(off * off * share);
        p->du[k] = 2 * off * share / (float)q->n_batch;
    }
    maifs_net_back_begin(&q->o.net, p->cache);
    maifs_net_observe_back(&q->o.net, q->w.at, p->gradient.at, &x->in, p->cache, p->du);
}

static void work(void *ctx, uint32_t index, uint32_t count) {
    MaifsQ    *q = ctx;
    MatBackend was = mat_set_backend(MAT_REPRODUCIBLE);
    for (uint32_t k = index; k < PARTS; k += count) {
        Part *p = &q->parts[k];
        float_vec_zero(p->gradient);
        p->loss = 0;
        for (uint32_t i = k; i < q->n_batch; i += PARTS) {
            if (q->batch != NULL)
                train_one(q, &q->batch[i], p);
            else
                teach_one(q, &q->samples[i], p);
        }
    }
    mat_set_backend(was);
}

static double update(MaifsQ *q, Team *team) {
    AdamOptions adam = adam_defaults(q->o.rate);
    double      loss = 0;
    FloatVec    sum = q->parts[0].gradient;
    if (team != NULL)
        team_run(team, work, q);
    else
        work(q, 0, 1);
    for (uint32_t i = 0; i < PARTS; i++) {
        if (i > 0) float_vec_add(sum, q->parts[i].gradient);
        loss += q->parts[i].loss / q->n_batch;
    }
    float_vec_clip(sum, (double)q->o.clip);
    q->steps.at[0] += 1;
    adam_step(&adam, (uint64_t)q->steps.at[0], q->w, sum, q->m, q->v);
    float_vec_blend(q->target, q->w, q->batch != NULL ? q->o.tau : 1);
    return loss;
}

double maifs_q_train(MaifsQ *q, Team *team, const MaifsQStep *steps, uint32_t n) {
    q->batch = steps;
    q->n_batch = n;
    return update(q, team);
}

double maifs_q_imitate(MaifsQ *q, Team *team, const MaifsQSample *samples, uint32_t n) {
    q->batch = NULL;
    q->samples = samples;
    q->n_batch = n;
    return update(q, team);
}
