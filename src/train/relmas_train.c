#include "train/relmas_train.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "learn/weights_file.h"
#include "train/generation.h"
#include "train/stages.h"

static const double ASTRAY = 0.006;  // below the best: back to it

TrainPlan train_plan(uint32_t generations, uint32_t stages) {
    static const uint32_t parts[TRAIN_STAGES] = {2, 1, 1};
    TrainPlan plan = {.episodes = 24, .updates = 150, .pairs = 12, .check = 4, .traces = 3};
    uint32_t  all = 0, first = TRAIN_STAGES, left = generations;
    for (uint32_t i = 0; i < TRAIN_STAGES; i++) {
        if ((stages >> i & 1) == 0) continue;
        all += parts[i];
        if (first == TRAIN_STAGES) first = i;
    }
    CHECK(first < TRAIN_STAGES);
    for (uint32_t i = first + 1; i < TRAIN_STAGES; i++) {
        if ((stages >> i & 1) != 0) plan.generations[i] = generations * parts[i] / all;
        left -= plan.generations[i];
    }
    plan.generations[first] = left;
    return plan;
}

Err relmas_train_open(RelmasTrain *t, const Course *c, Runs *runs, const ChipPolicy *const *rivals,
                      const RelmasSettings *settings, uint32_t hidden, TrainPlan plan,
                      uint64_t seed, Arena *a) {
    Actor  actor = relmas_actor(hidden);
    Critic critic = {.features = RELMAS_FEATURES, .actions = RELMAS_OUTPUTS, .hidden = hidden};
    *t = (RelmasTrain){.course = c, .runs = runs, .plan = plan, .seed = seed};
    t->settings = *settings;
    t->gauge = (Gauge){
        .course = c, .runs = runs, .settings = &t->settings, .actor = actor, .traces = plan.traces};
    t->ddpg = ddpg_create(a, generation_options(actor, critic), rng_fork((Rng){seed}, 1).s);
    t->best = float_vec_new(a, actor_params(actor));
    t->trial = float_vec_new(a, dense_params(actor_head(actor)));
    TRY(gauge_open(&t->gauge, rivals, a));
    TRY(gauge_weights(&t->gauge, NULL, a, &t->rule_mark));
    t->best_mark = t->rule_mark;
    return ERR_OK;
}

uint32_t relmas_train_total(const RelmasTrain *t) {
    return stages_total(t->plan.generations, TRAIN_STAGES);
}

TrainStage relmas_train_stage(const RelmasTrain *t, uint32_t generation) {
    return (TrainStage)stages_at(t->plan.generations, TRAIN_STAGES, generation);
}

// A stage ends with the best that was found so far, and the next one starts from there.
static bool ends_stage(const RelmasTrain *t, uint32_t g) {
    return stages_end(t->plan.generations, TRAIN_STAGES, g);
}

// Zeros learn nothing: as long as there is nothing better, what was learned goes on.
static void back_to_best(RelmasTrain *t) {
    if (float_vec_norm(t->best) > 0) ddpg_set_actor(t->ddpg, t->best);
    float_vec_zero(t->trial);
}

static Err check(RelmasTrain *t, Arena *scratch, TrainReport *out) {
    FloatVec now = {(float *)(uintptr_t)ddpg_actor(t->ddpg), t->best.n};
    TRY(gauge_weights(&t->gauge, now.at, scratch, &out->mark));
    out->checked = true;
    out->better = out->mark.score > t->best_mark.score;
    if (out->better) {
        float_vec_copy(t->best, now);
        t->best_mark = out->mark;
    } else if (out->mark.score < t->best_mark.score - ASTRAY) {
        back_to_best(t);
    }
    return ERR_OK;
}

Err relmas_train_step(RelmasTrain *t, Arena *scratch, TrainReport *out) {
    uint32_t    g = t->generation;
    TrainReport r = {.stage = relmas_train_stage(t, g)};
    size_t      mark = scratch->used;
    Err         e = generation_run(t, scratch, &r);
    arena_rewind(scratch, mark);
    TRY(e);
    if ((g + 1) % t->plan.check == 0 || ends_stage(t, g)) TRY(check(t, scratch, &r));
    if (ends_stage(t, g)) back_to_best(t);
    t->generation++;
    *out = r;
    return ERR_OK;
}

// The state of learning, the best so far, the polish and what the best was worth, in this order.
static size_t parts_of(const RelmasTrain *t, FloatVec *parts) {
    parts[0] = ddpg_state(t->ddpg);
    parts[1] = t->best;
    parts[2] = t->trial;
    return parts[0].n + parts[1].n + parts[2].n;
}

static char *facts_of(const RelmasTrain *t, Arena *a) {
    return arena_printf(
        a, "training=relmas\nseed=%" PRIu64 "\nhidden=%u\nplan=%u-%u-%u-%u-%u-%u-%u\n", t->seed,
        t->gauge.actor.trunk.hidden, t->plan.generations[0], t->plan.generations[1],
        t->plan.generations[2], t->plan.episodes, t->plan.updates, t->plan.pairs, t->plan.check);
}

Err relmas_train_save(const RelmasTrain *t, const char *path, Arena *scratch) {
    size_t   mark = scratch->used;
    FloatVec parts[3];
    FloatVec all = float_vec_new(scratch, parts_of(t, parts));
    float   *to = all.at;
    for (uint32_t i = 0; i < 3; i++, to += parts[i - 1].n)
        float_vec_copy((FloatVec){to, parts[i].n}, parts[i]);
    char *facts = arena_printf(scratch, "%sgeneration=%u\nmean=%.17g\nworst=%.17g\nscore=%.17g\n",
                               facts_of(t, scratch), t->generation, t->best_mark.mean,
                               t->best_mark.worst, t->best_mark.score);
    Err   e = weights_save(path, facts, all);
    arena_rewind(scratch, mark);
    return e;
}

static double number(const WeightsFile *w, const char *key, Arena *a) {
    const char *text = weights_metadata(w, key, a);
    return text != NULL ? strtod(text, NULL) : 0;
}

Err relmas_train_resume(RelmasTrain *t, const char *path, Arena *scratch) {
    size_t      mark = scratch->used;
    FloatVec    parts[3];
    WeightsFile w;
    size_t      n = parts_of(t, parts);
    Err         e = weights_load(path, facts_of(t, scratch), n, scratch, &w);
    if (e != ERR_OK) return err_add(e, "no training of this kind to go on with");
    float *from = w.params.at;
    for (uint32_t i = 0; i < 3; i++, from += parts[i - 1].n)
        float_vec_copy(parts[i], (FloatVec){from, parts[i].n});
    t->generation = (uint32_t)number(&w, "generation", scratch);
    t->best_mark = (GaugeMark){number(&w, "mean", scratch), number(&w, "worst", scratch),
                               number(&w, "score", scratch)};
    arena_rewind(scratch, mark);
    return ERR_OK;
}
