#include <string.h>

#include "learn/replay.h"
#include "policy/policies.h"
#include "train/relmas_episode.h"
#include "train/trainees.h"

enum { STEPS_MAX = 600 };  // kept of an episode, evenly spread

typedef struct RelmasTrainee {
    Trainee               trainee;
    const ChipCurriculum *curriculum;
    RelmasSettings        settings;
    Actor                 actor;
    Ddpg                 *ddpg;
} RelmasTrainee;

typedef struct Episodes {  // of one generation
    const RelmasTrainee *of;
    const TrainRound    *round;
    float              **records;  // [episode] transitions, one after the other
    uint32_t            *n_steps;  // [episode]
    Arena               *arenas;   // [episode] of the records
} Episodes;

static void keep(Episodes *x, uint32_t i, const RelmasEpisode *e) {
    const Actor *actor = &x->of->actor;
    uint32_t     every = e->n / STEPS_MAX + 1;
    size_t       floats = 0, at = 0;
    for (uint32_t k = 0; k < e->n; k += every)
        floats += ddpg_transition_size(actor, &e->steps[k]) + 1;
    x->records[i] = arena_new(&x->arenas[i], float, floats);
    for (uint32_t k = 0; k < e->n; k += every) {
        size_t   n = ddpg_transition_size(actor, &e->steps[k]);
        uint32_t length = (uint32_t)n;
        memcpy(x->records[i] + at, &length, sizeof length);
        ddpg_transition_write(actor, &e->steps[k], x->records[i] + at + 1);
        at += n + 1;
        x->n_steps[i]++;
    }
}

static Err run_episode(void *self, uint32_t i, Arena *a) {
    Episodes            *x = self;
    const RelmasTrainee *t = x->of;
    const TrainRound    *r = x->round;
    ChipTrainRun         run =
        chip_curriculum_draw(t->curriculum, r->seed, (uint64_t)r->generation * r->episodes + i);
    RelmasSettings       teacher = t->settings;
    RelmasEpisode        e = {0};
    float                sigma = x->round->imitate ? 0 : 0.06f;
    RelmasEpisodeOptions o = {.actor = t->actor,
                              .params = ddpg_actor(t->ddpg),
                              .settings = &t->settings,
                              .sigma = sigma,
                              .bias = 2 * sigma,
                              .seed = run.seed ^ 0x5eed,
                              .discount = 0.995f,
                              .n_return = 200,
                              .crowding = 0.02f,
                              .teacher = &teacher};
    if (x->round->imitate) TRY(relmas_teacher_choose(&run, &t->settings, a, &teacher));
    TRY(relmas_episode_run(&run, &o, a, &e));
    keep(x, i, &e);
    return ERR_OK;
}

static Err gather(Episodes *x, Arena *a) {
    uint32_t n = x->round->episodes;
    x->records = arena_new(a, float *, n);
    x->n_steps = arena_new(a, uint32_t, n);
    x->arenas = arena_new(a, Arena, n);
    for (uint32_t i = 0; i < n; i++) TRY(arena_init(&x->arenas[i], (size_t)1 << 28));
    return train_parallel(run_episode, x, n, x->round->threads);
}

static Replay *fill(const Episodes *x, Arena *a) {
    size_t   floats = 0;
    uint32_t steps = 0, n = x->round->episodes;
    for (uint32_t i = 0; i < n; i++) {
        floats += x->arenas[i].used / sizeof(float);
        steps += x->n_steps[i];
    }
    Replay *replay = replay_create(a, (ReplayOptions){.records = steps, .floats = floats});
    for (uint32_t i = 0; i < n; i++) {
        const float *at = x->records[i];
        for (uint32_t k = 0; k < x->n_steps[i]; k++) {
            uint32_t length;
            memcpy(&length, at, sizeof length);
            memcpy(replay_add(replay, length), at + 1, length * sizeof *at);
            at += length + 1;
        }
    }
    return replay;
}

static double update(const Episodes *x, const Replay *replay, Arena *a) {
    const TrainRound *r = x->round;
    Ddpg             *d = x->of->ddpg;
    uint32_t          batch = ddpg_options(d)->batch;
    ReplayPick       *picks = arena_new(a, ReplayPick, batch);
    DdpgTransition   *steps = arena_new(a, DdpgTransition, batch);
    Rng               rng = rng_fork((Rng){r->seed ^ 0xd0a}, r->generation);
    DdpgReport        report = {0};
    double            loss = 0;
    if (replay_count(replay) == 0) return 0;
    ddpg_options(d)->actor_rate = x->round->imitate ? 1e-3f : 3e-5f;
    for (uint32_t u = 0; u < r->updates; u++) {
        replay_draw(replay, &rng, batch, picks);
        for (uint32_t i = 0; i < batch; i++)
            steps[i] = ddpg_transition_read(&x->of->actor, picks[i].record);
        if (x->round->imitate)
            ddpg_imitate(d, r->team, steps, batch, &report);
        else
            ddpg_train(d, r->team, steps, batch, &report);
        loss += (x->round->imitate ? report.imitate_loss : report.critic_loss) / r->updates;
    }
    return loss;
}

static Err train(Trainee *t, const TrainRound *r, Arena *scratch, double *loss) {
    Episodes x = {.of = t->self, .round = r};
    Err      e = gather(&x, scratch);
    if (e == ERR_OK) *loss = update(&x, fill(&x, scratch), scratch);
    for (uint32_t i = 0; i < r->episodes; i++) arena_finish(&x.arenas[i]);
    return e;
}

static const void *loaded(const Trainee *t, const float *params, Arena *a) {
    const RelmasTrainee *r = t->self;
    RelmasLoaded        *l = arena_new(a, RelmasLoaded, 1);
    *l = (RelmasLoaded){.actor = r->actor, .w = params};
    return l;
}

static void params_set(Trainee *t) {
    RelmasTrainee *r = t->self;
    ddpg_set_actor(r->ddpg, t->params);
}

static DdpgOptions options(Actor actor, uint32_t hidden) {
    Critic      critic = {.features = RELMAS_FEATURES, .actions = RELMAS_OUTPUTS, .hidden = hidden};
    DdpgOptions o = ddpg_defaults(actor, critic);
    o.critic_rate = 5e-4f;
    o.imitate = 0.02f;
    o.scale_values = true;
    o.actor_from = 300;
    return o;
}

Trainee *relmas_trainee_open(const ChipCurriculum *c, const RelmasSettings *settings,
                             uint32_t hidden, uint64_t seed, Arena *a) {
    RelmasTrainee *r = arena_new(a, RelmasTrainee, 1);
    *r = (RelmasTrainee){.curriculum = c, .settings = *settings, .actor = relmas_actor(hidden)};
    r->ddpg = ddpg_create(a, options(r->actor, hidden), rng_fork((Rng){seed}, 1).s);
    size_t   n = actor_params(r->actor), head = dense_params(actor_head(r->actor));
    FloatVec params = {(float *)(uintptr_t)ddpg_actor(r->ddpg), n};
    r->trainee = (Trainee){.name = chip_policy_relmas.name,
                           .settings = &r->settings,
                           .params = params,
                           .head = float_vec_part(params, n - head, head),
                           .state = ddpg_state(r->ddpg),
                           .facts = arena_printf(a, "hidden=%u\n", hidden),
                           .loaded = loaded,
                           .train = train,
                           .params_set = params_set,
                           .self = r};
    return &r->trainee;
}
