#include "train/evolve.h"

#include "learn/noise.h"

typedef struct Trials {
    const EvolveOptions *o;
    EvolveTry           *fn;
    void                *self;
    float               *w;    // [2 pairs][n] every trial's weights
    float               *way;  // [pairs][n_part] what was added to one and taken from the other
    size_t               n, from, n_part;
    double              *worth;  // [2 pairs][runs]
} Trials;

static Err try_one(void *self, uint32_t i, Arena *a) {
    Trials  *x = self;
    uint32_t trial = i / x->o->runs;
    return x->fn(x->self, x->w + trial * x->n, i % x->o->runs, a, &x->worth[i]);
}

static float reach(const EvolveOptions *o, size_t k) { return o->scale != NULL ? o->scale[k] : 1; }

static void lay_out(Trials *x, Rng rng, const float *now, Arena *a) {
    uint32_t pairs = x->o->pairs;
    x->w = arena_new(a, float, 2 * pairs * x->n);
    x->way = arena_new(a, float, pairs * x->n_part);
    x->worth = arena_new(a, double, (size_t)2 * pairs * x->o->runs);
    for (uint32_t p = 0; p < pairs; p++) {
        float *up = x->w + 2 * p * x->n, *down = up + x->n, *way = x->way + p * x->n_part;
        for (size_t k = 0; k < x->n; k++) up[k] = down[k] = now[k];
        for (size_t k = 0; k < x->n_part; k++) {
            way[k] = noise_normal(&rng);
            up[x->from + k] += x->o->sigma * way[k] * reach(x->o, k);
            down[x->from + k] -= x->o->sigma * way[k] * reach(x->o, k);
        }
    }
}

// A run in which one job more or less had luck tells little.
static double clipped(const EvolveOptions *o, double x) {
    double most = (double)o->clip;
    return !(most > 0) || (x < most && x > -most) ? x : x > 0 ? most : -most;
}

// Up the slope: changes weighed by what they gained. Its length is 1, however much they matter.
static void slope(const Trials *x, FloatVec g) {
    uint32_t runs = x->o->runs;
    float_vec_zero(g);
    for (uint32_t p = 0; p < x->o->pairs; p++) {
        const double *up = x->worth + (size_t)2 * p * runs, *down = up + runs;
        double        gain = 0;
        for (uint32_t k = 0; k < runs; k++) gain += clipped(x->o, up[k] - down[k]);
        for (size_t k = 0; k < g.n; k++) g.at[k] += (float)gain * x->way[p * g.n + k];
    }
    double norm = float_vec_norm(g);
    if (norm > 0) float_vec_scale(g, (float)(1 / norm));
}

Err evolve_step(const EvolveOptions *o, Runs *runs, Rng rng, EvolveTry *fn, void *self, FloatVec w,
                FloatVec part, FloatVec way, Arena *scratch, double *mean) {
    Trials   x = {.o = o, .fn = fn, .self = self, .n = w.n, .n_part = part.n};
    uint32_t n = 2 * o->pairs * o->runs;
    size_t   mark = scratch->used;
    x.from = (size_t)(part.at - w.at);
    lay_out(&x, rng, w.at, scratch);
    Err e = runs_each(runs, n, try_one, &x);
    if (e == ERR_OK) {
        FloatVec g = float_vec_new(scratch, part.n);
        *mean = 0;
        for (uint32_t i = 0; i < n; i++) *mean += x.worth[i] / n;
        slope(&x, g);
        float_vec_blend(way, g, 1 - o->keep);
        for (size_t k = 0; k < part.n; k++) part.at[k] += o->step * way.at[k] * reach(o, k);
    }
    arena_rewind(scratch, mark);
    return e;
}
