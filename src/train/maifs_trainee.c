#include "learn/replay.h"
#include "policy/policies.h"
#include "train/maifs_episode.h"
#include "train/trainees.h"

enum {
    BATCH = 32,
    KEEP = 120,           // steps or samples of an episode
    IMITATE_UPDATES = 3,  // for each that the plan asks for
};
static const float EPSILON = 0.1f;

typedef struct MaifsTrainee {
    Trainee                  trainee;
    const ClusterCurriculum *curriculum;
    MaifsQ                  *q;
    MaifsSettings            settings;
} MaifsTrainee;

typedef struct Episodes {  // of one generation
    MaifsTrainee     *of;
    const TrainRound *round;
    MaifsEpisode     *episodes;
    Arena            *arenas;  // [episode] of what was recorded
} Episodes;

static Err run_episode(void *self, uint32_t i, Arena *a) {
    (void)a;
    Episodes           *x = self;
    uint64_t            n = (uint64_t)x->round->generation * x->round->episodes + i;
    ClusterTrainRun     at = cluster_curriculum_draw(x->of->curriculum, x->round->seed, n);
    MaifsEpisodeOptions o = {.settings = &x->of->settings,
                             .w = x->of->trainee.params.at,
                             .epsilon = EPSILON,
                             .keep = KEEP};
    if (x->round->imitate) {
        o.teacher = &x->of->settings;
        o.epsilon = 0;
    }
    return maifs_episode_run(&at, &o, &x->arenas[i], &x->episodes[i]);
}

static Err gather(Episodes *x, Arena *scratch) {
    uint32_t n = x->round->episodes;
    x->episodes = arena_new(scratch, MaifsEpisode, n);
    x->arenas = arena_new(scratch, Arena, n);
    for (uint32_t i = 0; i < n; i++) TRY(arena_init(&x->arenas[i], (size_t)1 << 31));
    return train_parallel(run_episode, x, n, x->round->threads);
}

static double imitate_all(const Episodes *x, Arena *scratch) {
    uint32_t     n = 0, at = 0;
    MaifsQSample batch[BATCH];
    Rng          rng = rng_fork((Rng){x->round->seed ^ 0x1e5}, x->round->generation);
    uint32_t     updates = IMITATE_UPDATES * x->round->updates;
    double       loss = 0;
    for (uint32_t i = 0; i < x->round->episodes; i++) n += x->episodes[i].n_samples;
    MaifsQSample *all = arena_new(scratch, MaifsQSample, n + 1);
    for (uint32_t i = 0; i < x->round->episodes; i++)
        for (uint32_t k = 0; k < x->episodes[i].n_samples; k++)
            all[at++] = x->episodes[i].samples[k];
    maifs_q_options(x->of->q)->rate = 1e-3f;
    for (uint32_t u = 0; n > 0 && u < updates; u++) {
        for (uint32_t i = 0; i < BATCH; i++) batch[i] = all[rng_below(&rng, n)];
        loss += maifs_q_imitate(x->of->q, x->round->team, batch, BATCH) / updates;
    }
    return loss;
}

// Steps of this generation only: a training can stop between any two.
static Replay *fill(const Episodes *x, Arena *scratch) {
    size_t   floats = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->round->episodes; i++) {
        n += x->episodes[i].n_steps;
        for (uint32_t k = 0; k < x->episodes[i].n_steps; k++)
            floats += maifs_step_size(&x->episodes[i].steps[k]);
    }
    Replay *replay =
        replay_create(scratch, (ReplayOptions){.records = n + 1, .floats = floats + 1});
    for (uint32_t i = 0; i < x->round->episodes; i++)
        for (uint32_t k = 0; k < x->episodes[i].n_steps; k++) {
            const MaifsQStep *s = &x->episodes[i].steps[k];
            maifs_step_write(s, replay_add(replay, (uint32_t)maifs_step_size(s)));
        }
    return replay;
}

static double learn_all(const Episodes *x, Arena *scratch) {
    Replay    *replay = fill(x, scratch);
    MaifsQStep batch[BATCH];
    ReplayPick picks[BATCH];
    Rng        rng = rng_fork((Rng){x->round->seed ^ 0x9a7}, x->round->generation);
    double     loss = 0;
    maifs_q_options(x->of->q)->rate = 2e-4f;
    for (uint32_t u = 0; replay_count(replay) > 0 && u < x->round->updates; u++) {
        replay_draw(replay, &rng, BATCH, picks);
        for (uint32_t i = 0; i < BATCH; i++) batch[i] = maifs_step_read(picks[i].record);
        loss += maifs_q_train(x->of->q, x->round->team, batch, BATCH) / x->round->updates;
    }
    return loss;
}

static Err train(Trainee *t, const TrainRound *r, Arena *scratch, double *loss) {
    Episodes x = {.of = t->self, .round = r};
    Err      e = gather(&x, scratch);
    if (e == ERR_OK) *loss = r->imitate ? imitate_all(&x, scratch) : learn_all(&x, scratch);
    for (uint32_t i = 0; i < r->episodes; i++) arena_finish(&x.arenas[i]);
    return e;
}

static const void *loaded(const Trainee *t, const float *params, Arena *a) {
    (void)t;
    MaifsLoaded *l = arena_new(a, MaifsLoaded, 1);
    *l = (MaifsLoaded){.w = params};
    return l;
}

static void params_set(Trainee *t) {
    MaifsTrainee *m = t->self;
    maifs_q_params_set(m->q);
}

Trainee *maifs_trainee_open(const ClusterCurriculum *c, const MaifsSettings *settings,
                            uint32_t servers, uint64_t seed, Arena *a) {
    MaifsTrainee     *m = arena_new(a, MaifsTrainee, 1);
    MaifsQOptions     o = maifs_q_defaults(maifs_net_of(settings));
    MaifsOutputLayers at = maifs_net_output_layers(&o.net);
    o.servers = servers;
    m->curriculum = c;
    m->settings = *settings;
    m->settings.net_exact = false;  // it learns what it is told to learn from
    m->q = maifs_q_create(a, o, rng_fork((Rng){seed}, 3).s);
    FloatVec params = maifs_q_net(m->q);
    FloatVec head = float_vec_part(params, at.value, at.end - at.value);
    float   *scale = arena_new(a, float, head.n);
    for (size_t i = 0; i < head.n; i++) scale[i] = i < at.straight - at.value ? 1 : 4;
    m->trainee = (Trainee){.name = cluster_policy_maifs.name,
                           .settings = &m->settings,
                           .params = params,
                           .head = head,
                           .head_scale = scale,
                           .state = maifs_q_state(m->q),
                           .facts = maifs_weights_facts(a),
                           .loaded = loaded,
                           .train = train,
                           .params_set = params_set,
                           .self = m};
    return &m->trainee;
}
