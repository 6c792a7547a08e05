#include "train/generation.h"

#include <string.h>

#include "learn/replay.h"
#include "policy/policies.h"
#include "train/episode.h"
#include "train/tutor.h"

enum { STEPS_MAX = 600 };  // that an episode leaves: of a longer one every second, third, ..

DdpgOptions generation_options(Actor actor, Critic critic) {
    DdpgOptions o = ddpg_defaults(actor, critic);
    o.critic_rate = 5e-4f;
    o.imitate = 0.02f;
    o.scale_values = true;
    o.actor_from = 300;
    return o;
}

// What the jobs of a generation share.
typedef struct Round {
    RelmasTrain *train;
    TrainStage   stage;
    float        sigma;
    float      **records;  // [episode] of steps, one after the other
    uint32_t    *n_steps;
    double      *sla;
    Arena       *arenas;  // [episode] that keep the records
} Round;

static CourseRun draw(const RelmasTrain *t, uint32_t episode) {
    return course_draw(t->course, t->seed, (uint64_t)t->generation * t->plan.episodes + episode);
}

// The tutor that gets most requests of this run in time; the earlier one among equals.
static Err choose_tutor(const RelmasTrain *t, const CourseRun *x, Arena *a, RelmasSettings *out) {
    double best = -1;
    for (uint32_t i = 0; i < TUTORS; i++) {
        RelmasSettings s = tutor_settings(&t->settings, i);
        RelmasLoaded   none = {.w = NULL};
        double         sla = 0;
        for (uint32_t k = 0; k < 2; k++) {
            size_t     mark = a->used;
            CourseRun  again = *x;
            ChipRun    run;
            ChipResult r;
            again.seed += k;
            TRY(course_run(&again, &chip_policy_relmas, &s, &none, a, &run, &r));
            sla += course_sla(&run, &r);
            arena_rewind(a, mark);
        }
        if (sla <= best + 0.005) continue;
        best = sla;
        *out = s;
    }
    return ERR_OK;
}

static void keep(Round *r, uint32_t i, const Episode *e) {
    const Actor *actor = &r->train->gauge.actor;
    uint32_t     every = e->n / STEPS_MAX + 1;
    size_t       floats = 0, at = 0;
    for (uint32_t k = 0; k < e->n; k += every)
        floats += ddpg_transition_size(actor, &e->steps[k]) + 1;
    r->records[i] = arena_new(&r->arenas[i], float, floats);
    for (uint32_t k = 0; k < e->n; k += every) {
        size_t   n = ddpg_transition_size(actor, &e->steps[k]);
        uint32_t length = (uint32_t)n;
        memcpy(r->records[i] + at, &length, sizeof length);
        ddpg_transition_write(actor, &e->steps[k], r->records[i] + at + 1);
        at += n + 1;
        r->n_steps[i]++;
    }
    r->sla[i] = e->sla;
}

static Err play(void *self, uint32_t i, Arena *a) {
    Round         *r = self;
    RelmasTrain   *t = r->train;
    CourseRun      x = draw(t, i);
    RelmasSettings tutor = t->settings;
    Episode        e = {0};
    EpisodeOptions o = {.actor = t->gauge.actor,
                        .w = ddpg_actor(t->ddpg),
                        .settings = &t->settings,
                        .sigma = r->sigma,
                        .sway = 2 * r->sigma,
                        .seed = x.seed ^ 0x5eed,
                        .discount = 0.995f,
                        .n_return = 200,
                        .crowding = 0.02f,
                        .tutor = &tutor};
    if (r->stage == TRAIN_IMITATE) TRY(choose_tutor(t, &x, a, &tutor));
    TRY(episode_run(&x, &o, a, &e));
    keep(r, i, &e);
    return ERR_OK;
}

static Err gather(Round *r, uint32_t n, Arena *a) {
    r->records = arena_new(a, float *, n);
    r->n_steps = arena_new(a, uint32_t, n);
    r->sla = arena_new(a, double, n);
    r->arenas = arena_new(a, Arena, n);
    for (uint32_t i = 0; i < n; i++) TRY(arena_init(&r->arenas[i], (size_t)1 << 28));
    return runs_each(r->train->runs, n, play, r);
}

static Replay *fill(const Round *r, uint32_t n, Arena *a) {
    size_t   floats = 0;
    uint32_t steps = 0;
    for (uint32_t i = 0; i < n; i++) {
        floats += r->arenas[i].used / sizeof(float);
        steps += r->n_steps[i];
    }
    Replay *replay = replay_create(a, (ReplayOptions){.records = steps, .floats = floats});
    for (uint32_t i = 0; i < n; i++) {
        const float *at = r->records[i];
        for (uint32_t k = 0; k < r->n_steps[i]; k++) {
            uint32_t length;
            memcpy(&length, at, sizeof length);
            memcpy(replay_add(replay, length), at + 1, length * sizeof *at);
            at += length + 1;
        }
    }
    return replay;
}

static void learn(Round *r, const Replay *replay, Arena *a, TrainReport *out) {
    RelmasTrain    *t = r->train;
    uint32_t        batch = ddpg_options(t->ddpg)->batch;
    ReplayPick     *picks = arena_new(a, ReplayPick, batch);
    DdpgTransition *steps = arena_new(a, DdpgTransition, batch);
    Rng             rng = rng_fork((Rng){t->seed ^ 0xd0a}, t->generation);
    DdpgReport      report = {0};
    if (replay_count(replay) == 0) return;
    ddpg_options(t->ddpg)->actor_rate = r->stage == TRAIN_IMITATE ? 1e-3f : 3e-5f;
    for (uint32_t u = 0; u < t->plan.updates; u++) {
        replay_draw(replay, &rng, batch, picks);
        for (uint32_t i = 0; i < batch; i++)
            steps[i] = ddpg_transition_read(&t->gauge.actor, picks[i].record);
        if (r->stage == TRAIN_IMITATE)
            ddpg_imitate(t->ddpg, runs_team(t->runs), steps, batch, &report);
        else
            ddpg_train(t->ddpg, runs_team(t->runs), steps, batch, &report);
        out->loss += (r->stage == TRAIN_IMITATE ? report.imitate_loss : report.critic_loss) /
                     t->plan.updates;
    }
}

Err generation_run(RelmasTrain *t, Arena *scratch, TrainReport *out) {
    Round    r = {.train = t, .stage = out->stage};
    uint32_t n = t->plan.episodes;
    if (out->stage == TRAIN_POLISH) return generation_polish(t, scratch, out);
    r.sigma = out->stage == TRAIN_IMITATE ? 0 : 0.06f;
    Err e = gather(&r, n, scratch);
    if (e == ERR_OK) {
        learn(&r, fill(&r, n, scratch), scratch, out);
        for (uint32_t i = 0; i < n; i++) out->sla += r.sla[i] / n;
    }
    for (uint32_t i = 0; i < n; i++) arena_finish(&r.arenas[i]);
    return e;
}
