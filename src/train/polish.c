#include "learn/noise.h"
#include "policy/policies.h"
#include "train/generation.h"

enum { RUNS_EACH = 12 };

static const float SIGMA = 0.06f;  // of a trial's change
static const float STEP = 0.1f;    // the longest step that a generation takes
static const float KEEP = 0.8f;    // of the direction that was found before

typedef struct Trials {
    RelmasTrain *train;
    float       *w;    // [2 pairs][n] every trial's network
    float       *way;  // [pairs][n_head] what was added to one and taken from the other
    size_t       n, n_head;
    double      *sla;  // [2 pairs][RUNS_EACH]
} Trials;

static Err try_one(void *self, uint32_t i, Arena *a) {
    Trials      *x = self;
    RelmasTrain *t = x->train;
    uint32_t     trial = i / RUNS_EACH, which = i % RUNS_EACH;
    CourseRun    c =
        course_draw(t->course, t->seed ^ 0xe7, (uint64_t)t->generation * RUNS_EACH + which);
    RelmasLoaded loaded = {.actor = t->gauge.actor, .w = x->w + trial * x->n};
    ChipRun      run;
    ChipResult   r;
    TRY(course_run(&c, &chip_policy_relmas, &t->settings, &loaded, a, &run, &r));
    x->sla[i] = course_sla(&run, &r);
    return ERR_OK;
}

static void lay_out(Trials *x, const float *now, Arena *a) {
    uint32_t pairs = x->train->plan.pairs;
    Rng      rng = rng_fork((Rng){x->train->seed ^ 0xa11}, x->train->generation);
    x->w = arena_new(a, float, 2 * pairs * x->n);
    x->way = arena_new(a, float, pairs * x->n_head);
    x->sla = arena_new(a, double, (size_t)2 * pairs * RUNS_EACH);
    for (uint32_t p = 0; p < pairs; p++) {
        float *up = x->w + 2 * p * x->n, *down = up + x->n, *way = x->way + p * x->n_head;
        for (size_t k = 0; k < x->n; k++) up[k] = down[k] = now[k];
        for (size_t k = 0; k < x->n_head; k++) {
            way[k] = noise_normal(&rng);
            up[x->n - x->n_head + k] += SIGMA * way[k];
            down[x->n - x->n_head + k] -= SIGMA * way[k];
        }
    }
}

// Up the slope: changes weighed by what they gained. Its length is 1, however much they matter.
static void slope(const Trials *x, Block g) {
    uint32_t pairs = x->train->plan.pairs;
    block_zero(g);
    for (uint32_t p = 0; p < pairs; p++) {
        const double *up = x->sla + (size_t)2 * p * RUNS_EACH, *down = up + RUNS_EACH;
        double        gain = 0;
        for (uint32_t k = 0; k < RUNS_EACH; k++) gain += up[k] - down[k];
        for (size_t k = 0; k < g.n; k++) g.at[k] += (float)gain * x->way[p * g.n + k];
    }
    double norm = block_norm(g);
    if (norm > 0) block_scale(g, (float)(1 / norm));
}

Err generation_polish(RelmasTrain *t, Arena *scratch, TrainReport *out) {
    Trials x = {.train = t, .n = t->best.n, .n_head = dense_params(actor_head(t->gauge.actor))};
    lay_out(&x, ddpg_actor(t->ddpg), scratch);
    uint32_t n = 2 * t->plan.pairs * RUNS_EACH;
    TRY(runs_each(t->runs, n, try_one, &x));
    for (uint32_t i = 0; i < n; i++) out->sla += x.sla[i] / n;
    Block w = block_new(scratch, x.n), g = block_new(scratch, x.n_head);
    block_copy(w, (Block){(float *)(uintptr_t)ddpg_actor(t->ddpg), x.n});
    slope(&x, g);
    Block way = block_part(t->trial, 0, x.n_head), head = block_part(w, x.n - x.n_head, x.n_head);
    block_blend(way, g, 1 - KEEP);
    for (size_t k = 0; k < head.n; k++) head.at[k] += STEP * way.at[k];
    ddpg_set_actor(t->ddpg, w);
    return ERR_OK;
}
