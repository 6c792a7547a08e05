#include <math.h>
#include <string.h>

#include "learn/activation.h"
#include "learn/adam.h"
#include "policy/cluster/drl/drl.h"
#include "policy/policies.h"
#include "train/trainees.h"

enum {
    ROLLOUTS = 8,     // of the same trace
    PER_EPISODE = 4,  // episodes for each that the plan asks for: they are short
    CHOICES = 1024,   // recorded of an episode
    ROWS = 128,       // of a batch
};
static const float ENTROPY = 0.01f;   // weight of the entropy bonus
static const float EXPLORE = 0.3f;    // chance of a random choice while imitating
static const float SMOOTHING = 0.1f;  // of the labels while imitating

typedef struct Choice {
    float    x[DRL_IN];
    bool     can[DRL_OUT];
    uint32_t took;
    TimeNs   at;
    float    advantage;  // return, then return over the mean of the rollouts
} Choice;

typedef struct Recording {  // of an episode
    Choice  *choices;
    uint32_t n;
    Rng      rng;
    bool     imitate;
} Recording;

typedef struct DrlTrainee {
    Trainee                  trainee;
    const ClusterCurriculum *curriculum;
    DrlNet                   net;
    FloatVec                 w, m, v, steps;  // parts of the state: parameters, Adam
    FloatVec                 gradient;
} DrlTrainee;

typedef struct Episodes {  // of one generation
    DrlTrainee       *of;
    const TrainRound *round;
    Recording        *recordings;
} Episodes;

// Softmax over the allowed choices.
static void probabilities(const bool *can, const float *logits, float *out) {
    float most = -INFINITY, sum = 0;
    for (uint32_t i = 0; i < DRL_OUT; i++)
        if (can[i] && logits[i] > most) most = logits[i];
    for (uint32_t i = 0; i < DRL_OUT; i++) sum += out[i] = can[i] ? repro_exp(logits[i] - most) : 0;
    for (uint32_t i = 0; i < DRL_OUT; i++) out[i] /= sum;
}

static uint32_t draw(Rng *rng, const float *p) {
    float    at = rng_unit(rng);
    uint32_t last = 0;
    for (uint32_t i = 0; i < DRL_OUT; i++) {
        if (!(p[i] > 0)) continue;
        last = i;
        if (at < p[i]) break;
        at -= p[i];
    }
    return last;
}

static uint32_t first_allowed(const DrlObservation *seen) {
    uint32_t i = 0;
    while (i < DRL_WINDOW && !seen->can[i]) i++;
    return i;
}

// While imitating, random choices lead to states that the rule alone would not reach.
static uint32_t choose(void *self, const ClusterView *v, const DrlObservation *seen,
                       const float *logits) {
    Recording *d = self;
    float      p[DRL_OUT];
    bool       random = d->imitate && rng_unit(&d->rng) < EXPLORE;
    float      none[DRL_OUT] = {0};
    probabilities(seen->can, random ? none : logits, p);
    uint32_t rule = first_allowed(seen), took = d->imitate ? rule : draw(&d->rng, p);
    if (random) took = draw(&d->rng, p);
    if (d->n == CHOICES) return took;
    Choice *c = &d->choices[d->n++];
    memcpy(c->x, seen->x, sizeof c->x);
    memcpy(c->can, seen->can, sizeof c->can);
    c->took = d->imitate ? rule : took;
    c->at = v->now;
    return took;
}

static ClusterTrainRun run_of(const Episodes *x, uint32_t i) {
    uint32_t n = x->round->episodes * PER_EPISODE;
    uint32_t trace = x->round->imitate ? i : i / ROLLOUTS;
    return cluster_curriculum_draw(x->of->curriculum, x->round->seed,
                                   (uint64_t)x->round->generation * n + trace);
}

// The return of a choice: minus the time that jobs spend in the cluster after it, per job.
static void set_returns(Recording *d, const ClusterRun *run, const ClusterResult *r) {
    for (uint32_t k = 0; k < d->n; k++) {
        Choice *p = &d->choices[k];
        double  sum = 0;
        for (uint32_t j = 0; j < r->n; j++) {
            TimeNs from = run->jobs->at[j].submit > p->at ? run->jobs->at[j].submit : p->at;
            if (r->ends[j].finish > from) sum += (double)(r->ends[j].finish - from);
        }
        p->advantage = (float)(-sum / (double)CLUSTER_SECOND / r->n);
    }
}

static Err run_episode(void *self, uint32_t i, Arena *a) {
    Episodes       *x = self;
    Recording      *d = &x->recordings[i];
    ClusterTrainRun at = run_of(x, i);
    DrlLoaded       loaded = {.net = x->of->net, .w = x->of->w.at, .choose = choose, .self = d};
    ClusterRun    run = {.policy = &cluster_policy_drl_single, .settings = x->of->trainee.settings};
    ClusterResult result;
    ClusterTrainResult end;
    run.loaded = &loaded;
    d->rng = rng_fork((Rng){x->round->seed ^ 0xd1a}, (uint64_t)x->round->generation << 20 | i);
    d->imitate = x->round->imitate;
    TRY(cluster_curriculum_run(&at, &run, a, &result, &end));
    set_returns(d, &run, &result);
    return ERR_OK;
}

// The return after the last choice up to a time.
static float return_at(const Recording *d, TimeNs at) {
    if (d->n == 0) return 0;
    uint32_t before = train_count_until(&d->choices->at, sizeof *d->choices, d->n, at);
    return d->choices[before > 0 ? before - 1 : 0].advantage;
}

// Advantages: returns over the mean of the rollouts of the same trace from the same time on, over
// their standard deviation.
static void set_advantages(Recording *group, float *room) {
    double   squares = 0;
    uint32_t n = 0, at = 0;
    for (uint32_t i = 0; i < ROLLOUTS; i++)
        for (uint32_t k = 0; k < group[i].n; k++, n++) {
            float mean = 0;
            for (uint32_t j = 0; j < ROLLOUTS; j++)
                mean += return_at(&group[j], group[i].choices[k].at) / ROLLOUTS;
            room[n] = group[i].choices[k].advantage - mean;
            squares += (double)room[n] * (double)room[n];
        }
    float scale = squares > 0 ? (float)(1 / sqrt(squares / n)) : 0;
    for (uint32_t i = 0; i < ROLLOUTS; i++)
        for (uint32_t k = 0; k < group[i].n; k++)
            group[i].choices[k].advantage = room[at++] * scale;
}

typedef struct Batch {
    float *x, *y, *dy, *cache;
} Batch;

// Cross entropy and its gradient by the logits: with smoothed labels for imitation, weighed by the
// advantage and with an entropy bonus for learning.
static double loss_of(const Choice *p, const float *logits, bool imitate, float *dy) {
    float chance[DRL_OUT], entropy = 0, weight = imitate ? 1 : p->advantage, can = 0;
    probabilities(p->can, logits, chance);
    for (uint32_t i = 0; i < DRL_OUT; i++) can += p->can[i] ? 1 : 0;
    for (uint32_t i = 0; i < DRL_OUT; i++)
        if (chance[i] > 1e-7f) entropy -= chance[i] * repro_log(chance[i]);
    for (uint32_t i = 0; i < DRL_OUT; i++) {
        float c = chance[i], label = i == p->took ? 1 : 0;
        if (imitate) label = (1 - SMOOTHING) * label + (p->can[i] ? SMOOTHING / can : 0);
        dy[i] = weight * (c - label) / ROWS;
        if (!imitate && c > 1e-7f) dy[i] += ENTROPY * c * (repro_log(c) + entropy) / ROWS;
    }
    float c = chance[p->took];
    return (double)(-weight * repro_log(c > 1e-7f ? c : 1e-7f));
}

static double update(DrlTrainee *d, Choice *const *choices, uint32_t n, bool imitate, Batch *b) {
    double      loss = 0;
    AdamOptions adam = adam_defaults(imitate ? 1e-3f : 2e-4f);
    memset(b->x, 0, (size_t)ROWS * DRL_IN * sizeof *b->x);
    memset(b->dy, 0, (size_t)ROWS * DRL_OUT * sizeof *b->dy);
    for (uint32_t i = 0; i < n; i++)
        memcpy(b->x + (size_t)i * DRL_IN, choices[i]->x, sizeof choices[i]->x);
    drl_net_forward(d->net, d->w.at, ROWS, b->x, b->y, b->cache);
    for (uint32_t i = 0; i < n; i++)
        loss +=
            loss_of(choices[i], b->y + (size_t)i * DRL_OUT, imitate, b->dy + (size_t)i * DRL_OUT) /
            n;
    float_vec_zero(d->gradient);
    drl_net_backward(d->net, d->w.at, d->gradient.at, ROWS, b->x, b->dy, b->cache);
    float_vec_clip(d->gradient, 1);
    d->steps.at[0] += 1;
    adam_step(&adam, (uint64_t)d->steps.at[0], d->w, d->gradient, d->m, d->v);
    return loss;
}

static Choice **shuffle(const Episodes *x, uint32_t n, Arena *a, uint32_t *total) {
    Rng rng = rng_fork((Rng){x->round->seed ^ 0x5f1e}, x->round->generation);
    *total = 0;
    for (uint32_t i = 0; i < n; i++) *total += x->recordings[i].n;
    Choice **all = arena_new(a, Choice *, *total);
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < x->recordings[i].n; k++) all[at++] = &x->recordings[i].choices[k];
    for (uint32_t i = *total; i > 1; i--) {
        uint32_t j = (uint32_t)rng_below(&rng, i);
        Choice  *p = all[i - 1];
        all[i - 1] = all[j];
        all[j] = p;
    }
    return all;
}

// One pass over all choices when learning; as many batches as the plan asks for when imitating.
static double train_on(const Episodes *x, uint32_t n, Arena *a) {
    DrlTrainee *d = x->of;
    uint32_t    total, batches = 0;
    Choice    **all = shuffle(x, n, a, &total);
    Batch       b = {.x = arena_new(a, float, (size_t)ROWS *DRL_IN),
                     .y = arena_new(a, float, (size_t)ROWS *DRL_OUT),
                     .dy = arena_new(a, float, (size_t)ROWS *DRL_OUT),
                     .cache = arena_new(a, float, drl_net_cache(d->net, ROWS))};
    double      loss = 0;
    uint32_t    most = x->round->imitate ? x->round->updates : (total + ROWS - 1) / ROWS;
    for (uint32_t from = 0; total > 0 && batches < most; from += ROWS, batches++) {
        if (from >= total) from = 0;
        uint32_t some = total - from < ROWS ? total - from : ROWS;
        loss += update(d, all + from, some, x->round->imitate, &b);
    }
    return batches > 0 ? loss / batches : 0;
}

static Err train(Trainee *t, const TrainRound *r, Arena *scratch, double *loss) {
    Episodes x = {.of = t->self, .round = r};
    uint32_t n = (r->episodes * PER_EPISODE + ROLLOUTS - 1) / ROLLOUTS * ROLLOUTS;
    x.recordings = arena_new(scratch, Recording, n);
    for (uint32_t i = 0; i < n; i++) x.recordings[i].choices = arena_new(scratch, Choice, CHOICES);
    TRY(train_parallel(run_episode, &x, n, r->threads));
    float *room = arena_new(scratch, float, (size_t)ROLLOUTS *CHOICES);
    for (uint32_t i = 0; !r->imitate && i < n; i += ROLLOUTS)
        set_advantages(&x.recordings[i], room);
    *loss = train_on(&x, n, scratch);
    return ERR_OK;
}

static const void *loaded(const Trainee *t, const float *params, Arena *a) {
    const DrlTrainee *d = t->self;
    DrlLoaded        *l = arena_new(a, DrlLoaded, 1);
    *l = (DrlLoaded){.net = d->net, .w = params};
    return l;
}

static void params_set(Trainee *t) {
    DrlTrainee *d = t->self;
    float_vec_zero(d->m);
    float_vec_zero(d->v);
    float_vec_zero(d->steps);
}

Trainee *drl_trainee_open(const ClusterCurriculum *c, const void *settings, uint32_t hidden,
                          uint64_t seed, Arena *a) {
    DrlTrainee *d = arena_new(a, DrlTrainee, 1);
    d->curriculum = c;
    d->net = (DrlNet){hidden};
    size_t   n = drl_net_params(d->net), head = drl_net_output_layer(d->net);
    FloatVec state = float_vec_new(a, 3 * n + 1);
    Rng      rng = rng_fork((Rng){seed}, 2);
    d->w = float_vec_part(state, 0, n);
    d->m = float_vec_part(state, n, n);
    d->v = float_vec_part(state, 2 * n, n);
    d->steps = float_vec_part(state, 3 * n, 1);
    d->gradient = float_vec_new(a, n);
    drl_net_init(d->net, d->w.at, &rng);
    d->trainee = (Trainee){.name = cluster_policy_drl_single.name,
                           .settings = settings,
                           .params = d->w,
                           .head = float_vec_part(d->w, head, n - head),
                           .state = state,
                           .facts = drl_weights_facts(d->net, a),
                           .loaded = loaded,
                           .train = train,
                           .params_set = params_set,
                           .self = d};
    return &d->trainee;
}
