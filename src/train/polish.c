#include "policy/policies.h"
#include "train/evolve.h"
#include "train/generation.h"

static Err try_one(void *self, const float *w, uint32_t run, Arena *a, double *worth) {
    RelmasTrain *t = self;
    uint64_t     at = (uint64_t)t->generation * GENERATION_RUNS + run;
    CourseRun    c = course_draw(t->course, t->seed ^ 0xe7, at);
    RelmasLoaded loaded = {.actor = t->gauge.actor, .w = w};
    ChipRun      chip;
    ChipResult   r;
    TRY(course_run(&c, &chip_policy_relmas, &t->settings, &loaded, a, &chip, &r));
    *worth = course_sla(&chip, &r);
    return ERR_OK;
}

Err generation_polish(RelmasTrain *t, Arena *scratch, TrainReport *out) {
    EvolveOptions o = {.pairs = t->plan.pairs,
                       .runs = GENERATION_RUNS,
                       .sigma = 0.06f,
                       .step = 0.1f,
                       .keep = 0.8f};
    size_t        head = dense_params(actor_head(t->gauge.actor));
    FloatVec      w = float_vec_new(scratch, t->best.n);
    Rng           rng = rng_fork((Rng){t->seed ^ 0xa11}, t->generation);
    float_vec_copy(w, (FloatVec){(float *)(uintptr_t)ddpg_actor(t->ddpg), w.n});
    TRY(evolve_step(&o, t->runs, rng, try_one, t, w, float_vec_part(w, w.n - head, head),
                    float_vec_part(t->trial, 0, head), scratch, &out->sla));
    ddpg_set_actor(t->ddpg, w);
    return ERR_OK;
}
