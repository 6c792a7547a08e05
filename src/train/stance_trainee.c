// Expert iteration of stances (policy/cluster/maifs/stance.h). At sampled decisions of a run every
// row is rolled out: the same jobs again, in which all agents take that row for some hours and the
// network's stance before and after. The simulator repeats a run exactly up to the decision, so
// that rollouts see true durations and profiles while the network sees beliefs. It learns the
// softmax of the negated costs, by cross entropy.
#include <math.h>
#include <string.h>

#include "learn/activation.h"
#include "learn/adam.h"
#include "policy/policies.h"
#include "train/trainees.h"

enum { BATCH = 16, ROOM = 1 << 15, CHOSEN = 4 };  // decisions of a run: noted, rolled out
static const double HOURS = 4, TAU = 0.05, MOST = 0.1;
static const float  RATE = 1e-3f, DECAY = 1e-3f;

typedef struct StanceTrainee {
    Trainee                  trainee;
    const ClusterCurriculum *curriculum;
    const MaifsSettings     *settings;
    MaifsLoaded              base;  // the trained maifs, without stances
    double                   makespan_weight;
    FloatVec                 m, v;
} StanceTrainee;

typedef struct StanceSample {
    TimeNs   at;
    float   *features;  // [n_servers][STANCE_FEATURES]
    uint32_t n_servers;
    float    target[STANCES];
} StanceSample;

typedef struct Noted {  // decisions of a run, a random selection of all
    StanceSample *samples;
    Arena        *arena;
    Rng           rng;
    uint32_t      n, seen;
} Noted;

typedef struct Episodes {  // of one generation
    StanceTrainee    *of;
    const TrainRound *round;
    Noted            *runs;    // [episode]
    Arena            *arenas;  // [episode]
} Episodes;

// Called before a decision: the state is that of the one before. Decisions without a choice are
// left out.
static void note(void *self, const ClusterView *v, const void *state) {
    Noted       *x = self;
    const Maifs *m = state;
    size_t       floats = (size_t)v->setup->n_servers * STANCE_FEATURES;
    if (m->decided_at == 0 || v->n_waiting == 0) return;
    uint32_t at = x->seen < CHOSEN ? x->seen : (uint32_t)rng_below(&x->rng, x->seen + 1);
    x->seen++;
    if (at >= CHOSEN) return;
    StanceSample *s = &x->samples[at];
    if (x->n <= at) s->features = arena_new(x->arena, float, floats);
    if (x->n <= at) x->n = at + 1;
    s->at = m->decided_at;
    s->n_servers = v->setup->n_servers;
    memcpy(s->features, m->scene, floats * sizeof(float));
}

static Err simulate(const StanceTrainee *t, const ClusterTrainRun *at, const MaifsLoaded *loaded,
                    Noted *noted, Arena *a, double *cost) {
    ClusterRun         run = {.policy = &cluster_policy_maifs,
                              .settings = t->settings,
                              .loaded = loaded,
                              .watch = noted != NULL ? note : NULL,
                              .watcher = noted};
    ClusterResult      result;
    ClusterTrainResult end;
    size_t             mark = a->used;
    TRY(cluster_curriculum_run(at, &run, a, &result, &end));
    *cost = log(fmax(end.jct_s, 1)) + t->makespan_weight * log(fmax(end.makespan_s, 1));
    if (noted == NULL) arena_rewind(a, mark);
    return ERR_OK;
}

// A single job may change a run by more than the rows do: hence the limit.
static void set_target(const double *cost, float *target) {
    double mean = 0, all = 0;
    for (uint32_t i = 0; i < STANCES; i++) mean += cost[i] / STANCES;
    for (uint32_t i = 0; i < STANCES; i++)
        all += exp(-fmax(-MOST, fmin(MOST, cost[i] - mean)) / TAU);
    for (uint32_t i = 0; i < STANCES; i++)
        target[i] = (float)(exp(-fmax(-MOST, fmin(MOST, cost[i] - mean)) / TAU) / all);
}

static Err roll_out(const StanceTrainee *t, const ClusterTrainRun *at, StanceSample *s, Arena *a) {
    MaifsLoaded loaded = t->base;
    double      cost[STANCES];
    loaded.stance = t->trainee.params.at;
    for (uint32_t row = 0; row < STANCES; row++) {
        TimeNs until = s->at + (TimeNs)(HOURS * 3600 * (double)CLUSTER_SECOND);
        loaded.forced = (StanceForced){s->at, until, row};
        TRY(simulate(t, at, &loaded, NULL, a, &cost[row]));
    }
    set_target(cost, s->target);
    return ERR_OK;
}

static Err run_episode(void *self, uint32_t i, Arena *a) {
    Episodes            *x = self;
    const StanceTrainee *t = x->of;
    uint64_t             n = (uint64_t)x->round->generation * x->round->episodes + i;
    ClusterTrainRun      at = cluster_curriculum_draw(t->curriculum, x->round->seed, n);
    MaifsLoaded          loaded = t->base;
    Noted               *noted = &x->runs[i];
    double               cost;
    loaded.stance = t->trainee.params.at;
    *noted = (Noted){.samples = arena_new(&x->arenas[i], StanceSample, CHOSEN),
                     .arena = &x->arenas[i],
                     .rng = rng_fork((Rng){x->round->seed ^ 0x57a}, n)};
    TRY(simulate(t, &at, &loaded, noted, a, &cost));
    for (uint32_t k = 0; k < noted->n; k++) TRY(roll_out(t, &at, &noted->samples[k], a));
    return ERR_OK;
}

static double add_gradient(const float *w, float *gw, const StanceSample *s, Arena *scratch) {
    size_t mark = scratch->used, n = s->n_servers;
    float *hidden = float_vec_new(scratch, n * STANCE_HIDDEN).at;
    float *p = float_vec_new(scratch, n * STANCES).at;
    double loss = 0;
    stance_logits(w, n, s->features, hidden, p);
    activation_softmax(n, STANCES, NULL, p, p);
    for (size_t i = 0; i < n * STANCES; i++) {
        loss -= (double)s->target[i % STANCES] * log(fmax((double)p[i], 1e-9)) / (double)n;
        p[i] = (p[i] - s->target[i % STANCES]) / (float)n;
    }
    stance_back(w, gw, n, s->features, hidden, p);
    arena_rewind(scratch, mark);
    return loss;
}

static double learn(StanceTrainee *t, const TrainRound *r, const StanceSample *const *all,
                    uint32_t n, Arena *scratch) {
    Rng         rng = rng_fork((Rng){r->seed ^ 0x9a7}, r->generation);
    AdamOptions o = adam_defaults(RATE);
    FloatVec    g = float_vec_new(scratch, STANCE_PARAMS);
    double      loss = 0;
    o.decay = DECAY;
    for (uint32_t u = 0; n > 0 && u < r->updates; u++) {
        float_vec_zero(g);
        for (uint32_t i = 0; i < BATCH; i++)
            loss += add_gradient(t->trainee.params.at, g.at, all[rng_below(&rng, n)], scratch) /
                    BATCH / r->updates;
        float_vec_scale(g, 1.0f / BATCH);
        adam_step(&o, (uint64_t)r->generation * r->updates + u + 1, t->trainee.params, g, t->m,
                  t->v);
    }
    return loss;
}

static Err train(Trainee *self, const TrainRound *r, Arena *scratch, double *loss) {
    StanceTrainee       *t = self->self;
    Episodes             x = {.of = t,
                              .round = r,
                              .runs = arena_new(scratch, Noted, r->episodes),
                              .arenas = arena_new(scratch, Arena, r->episodes)};
    const StanceSample **all = arena_new(scratch, const StanceSample *, r->episodes *CHOSEN);
    uint32_t             n = 0;
    for (uint32_t i = 0; i < r->episodes; i++) TRY(arena_init(&x.arenas[i], (size_t)1 << 28));
    Err e = train_parallel(run_episode, &x, r->episodes, r->threads);
    for (uint32_t i = 0; e == ERR_OK && i < r->episodes; i++)
        for (uint32_t k = 0; k < x.runs[i].n; k++) all[n++] = &x.runs[i].samples[k];
    if (e == ERR_OK) *loss = learn(t, r, all, n, scratch);
    for (uint32_t i = 0; i < r->episodes; i++) arena_finish(&x.arenas[i]);
    return e;
}

static const void *loaded(const Trainee *self, const float *params, Arena *a) {
    const StanceTrainee *t = self->self;
    MaifsLoaded         *l = arena_new(a, MaifsLoaded, 1);
    *l = t->base;
    l->stance = params;
    return l;
}

static void params_set(Trainee *self) {
    StanceTrainee *t = self->self;
    float_vec_zero(t->m);
    float_vec_zero(t->v);
}

Err stance_trainee_open(const ClusterCurriculum *c, const MaifsSettings *settings,
                        double makespan_weight, uint64_t seed, Arena *a, Trainee **out) {
    StanceTrainee *t = arena_new(a, StanceTrainee, 1);
    FloatVec       state = float_vec_new(a, 3 * (size_t)STANCE_PARAMS);
    Rng            rng = rng_fork((Rng){seed}, 4);
    *t = (StanceTrainee){.curriculum = c,
                         .settings = settings,
                         .makespan_weight = makespan_weight,
                         .m = float_vec_part(state, STANCE_PARAMS, STANCE_PARAMS),
                         .v = float_vec_part(state, 2 * (size_t)STANCE_PARAMS, STANCE_PARAMS)};
    TRY(maifs_weights_load(settings->weights, a, &t->base));
    t->base.record = false;
    FloatVec w = float_vec_part(state, 0, STANCE_PARAMS);
    stance_init(w.at, &rng);
    size_t head = (size_t)(STANCE_HIDDEN + 1) * STANCES;
    t->trainee = (Trainee){.name = "stance",
                           .settings = settings,
                           .params = w,
                           .head = float_vec_part(w, STANCE_PARAMS - head, head),
                           .state = state,
                           .facts = STANCE_FACTS,
                           .loaded = loaded,
                           .train = train,
                           .params_set = params_set,
                           .self = t};
    *out = &t->trainee;
    return ERR_OK;
}
