#include "train/es.h"

#include "learn/noise.h"
#include "train/trainee.h"

typedef struct Trials {
    const EsParams  *p;
    const EsProblem *x;
    float           *params;  // [2 pairs][params.n]
    float           *noise;   // [pairs][part.n] added to one of the pair, subtracted from the other
    double          *fitness;  // [2 pairs][runs]
} Trials;

static Err try_one(void *self, uint32_t i, Arena *a) {
    Trials          *t = self;
    const EsProblem *x = t->x;
    uint32_t         trial = i / t->p->runs;
    return x->fitness(x->self, t->params + trial * x->params.n, i % t->p->runs, a, &t->fitness[i]);
}

static float scale_of(const EsProblem *x, size_t k) { return x->scale != NULL ? x->scale[k] : 1; }

static void perturb(Trials *t, Rng rng, Arena *a) {
    const EsProblem *x = t->x;
    uint32_t         pairs = t->p->pairs;
    size_t           n = x->params.n, from = (size_t)(x->part.at - x->params.at);
    t->params = arena_new(a, float, 2 * pairs * n);
    t->noise = arena_new(a, float, pairs * x->part.n);
    t->fitness = arena_new(a, double, (size_t)2 * pairs * t->p->runs);
    for (uint32_t p = 0; p < pairs; p++) {
        float *up = t->params + 2 * p * n, *down = up + n, *noise = t->noise + p * x->part.n;
        for (size_t k = 0; k < n; k++) up[k] = down[k] = x->params.at[k];
        for (size_t k = 0; k < x->part.n; k++) {
            noise[k] = noise_normal(&rng);
            up[from + k] += t->p->sigma * noise[k] * scale_of(x, k);
            down[from + k] -= t->p->sigma * noise[k] * scale_of(x, k);
        }
    }
}

// A single lucky job can dominate the difference on one run.
static double clipped(const EsParams *p, double x) {
    double most = (double)p->clip;
    return !(most > 0) || (x < most && x > -most) ? x : x > 0 ? most : -most;
}

// The gradient estimate, normalised to length 1.
static void estimate(const Trials *t, FloatVec g) {
    uint32_t runs = t->p->runs;
    float_vec_zero(g);
    for (uint32_t p = 0; p < t->p->pairs; p++) {
        const double *up = t->fitness + (size_t)2 * p * runs, *down = up + runs;
        double        gain = 0;
        for (uint32_t k = 0; k < runs; k++) gain += clipped(t->p, up[k] - down[k]);
        for (size_t k = 0; k < g.n; k++) g.at[k] += (float)gain * t->noise[p * g.n + k];
    }
    double norm = float_vec_norm(g);
    if (norm > 0) float_vec_scale(g, (float)(1 / norm));
}

Err es_step(const EsParams *p, const EsProblem *x, Rng rng, Arena *scratch, double *mean) {
    Trials   t = {.p = p, .x = x};
    size_t   mark = scratch->used;
    uint32_t n = 2 * p->pairs * p->runs;
    perturb(&t, rng, scratch);
    Err e = train_parallel(try_one, &t, n, x->threads);
    if (e == ERR_OK) {
        FloatVec g = float_vec_new(scratch, x->part.n);
        *mean = 0;
        for (uint32_t i = 0; i < n; i++) *mean += t.fitness[i] / n;
        estimate(&t, g);
        float_vec_blend(x->direction, g, 1 - p->momentum);
        for (size_t k = 0; k < x->part.n; k++)
            x->part.at[k] += p->step * x->direction.at[k] * scale_of(x, k);
    }
    arena_rewind(scratch, mark);
    return e;
}
