#include "policy/chip/magma_search.h"

#include <math.h>
#include <string.h>

#include "base/check.h"

void magma_search_carve(MagmaSearch *s, uint32_t population, Carve *from) {
    *s = (MagmaSearch){0};
    for (uint32_t g = 0; g < 2; g++)
        for (uint32_t i = 0; i < population; i++) {
            s->at[g][i].kind = carve(from, uint8_t, MAGMA_JOBS);
            s->at[g][i].priority = carve(from, float, MAGMA_JOBS);
        }
}

MagmaGenome *magma_search_known(MagmaSearch *s) { return &s->at[0][s->n_known++]; }

static void copy(MagmaGenome *to, const MagmaGenome *from, uint32_t first, uint32_t end) {
    memcpy(to->kind + first, from->kind + first, end - first);
    memcpy(to->priority + first, from->priority + first, (end - first) * sizeof(float));
}

static bool chance(Rng *rng, double p) { return rng_unit64(rng) < p; }

// A kind that can compute the job.
static uint8_t any_kind(const MagmaGroup *g, uint32_t job, Rng *rng) {
    uint32_t n = g->setup->n_kinds, k = (uint32_t)rng_below(rng, n);
    for (uint32_t i = 0; i < n; i++, k = (k + 1) % n)
        if (g->setup->kinds[k].n_units > 0 && !isinf(g->costs[job][k].ns)) break;
    return (uint8_t)k;
}

static void mutate(MagmaSearch *s, const MagmaGroup *g, MagmaGenome *x) {
    for (uint32_t i = 0; i < g->n_jobs; i++) {
        if (chance(&s->rng, s->rules.mutation)) x->kind[i] = any_kind(g, i, &s->rng);
        if (chance(&s->rng, s->rules.mutation)) x->priority[i] = rng_unit(&s->rng);
    }
}

// One of the two rows, from a random job on.
static void cross_single(MagmaGenome *x, const MagmaGenome *from, uint32_t n, Rng *rng) {
    uint32_t at = (uint32_t)rng_below(rng, n);
    if (rng_below(rng, 2) == 0)
        memcpy(x->kind + at, from->kind + at, n - at);
    else
        memcpy(x->priority + at, from->priority + at, (n - at) * sizeof(float));
}

static void cross_range(MagmaGenome *x, const MagmaGenome *from, uint32_t n, Rng *rng) {
    uint32_t a = (uint32_t)rng_below(rng, n), b = (uint32_t)rng_below(rng, n);
    copy(x, from, a < b ? a : b, (a < b ? b : a) + 1);
}

// All jobs that the other has on one kind.
static void cross_whole(MagmaGenome *x, const MagmaGenome *from, uint32_t n, uint32_t kind) {
    for (uint32_t i = 0; i < n; i++)
        if (from->kind[i] == kind) copy(x, from, i, i + 1);
}

static void breed(MagmaSearch *s, const MagmaGroup *g, const MagmaGenome *old, uint32_t n_parents,
                  MagmaGenome *x) {
    const MagmaGenome *mother = &old[rng_below(&s->rng, n_parents)];
    const MagmaGenome *father = &old[rng_below(&s->rng, n_parents)];
    copy(x, mother, 0, g->n_jobs);
    if (chance(&s->rng, s->rules.single)) cross_single(x, father, g->n_jobs, &s->rng);
    if (chance(&s->rng, s->rules.range)) cross_range(x, father, g->n_jobs, &s->rng);
    if (chance(&s->rng, s->rules.whole))
        cross_whole(x, father, g->n_jobs, (uint32_t)rng_below(&s->rng, g->setup->n_kinds));
    mutate(s, g, x);
}

static void judge(const MagmaSearch *s, const MagmaGroup *g, MagmaGenome *x, double *ops) {
    MagmaScore score = magma_group_decode(g, x);
    x->cost = (double)score.makespan / (double)g->setup->period + s->rules.late * score.late;
    *ops += score.steps + g->n_jobs;
}

// By cost; equal ones stay as they are.
static void sort(MagmaGenome *at, uint32_t n) {
    for (uint32_t i = 1; i < n; i++) {
        MagmaGenome x = at[i];
        uint32_t    j = i;
        for (; j > 0 && at[j - 1].cost > x.cost; j--) at[j] = at[j - 1];
        at[j] = x;
    }
}

static uint32_t share(double part, uint32_t n, uint32_t least) {
    uint32_t k = (uint32_t)(part * n + 0.5);
    return k < least ? least : k > n ? n : k;
}

// The first generation: what was known, and variations of it.
static void settle(MagmaSearch *s, const MagmaGroup *g, uint32_t n, double *ops) {
    CHECK(s->n_known > 0);
    for (uint32_t i = 0; i < n; i++) {
        if (i >= s->n_known) {
            copy(&s->at[0][i], &s->at[0][i % s->n_known], 0, g->n_jobs);
            mutate(s, g, &s->at[0][i]);
        }
        judge(s, g, &s->at[0][i], ops);
    }
    sort(s->at[0], n);
}

const MagmaGenome *magma_search_run(MagmaSearch *s, const MagmaGroup *g, double *ops) {
    uint32_t n =
        s->rules.population < s->rules.evaluations ? s->rules.population : s->rules.evaluations;
    uint32_t elite = share(s->rules.elite, n, 1), parents = share(s->rules.parents, n, 2);
    if (n < s->n_known) n = s->n_known;
    settle(s, g, n, ops);
    uint32_t gen = 0, spent = g->n_jobs > 0 && n > elite ? n : s->rules.evaluations;
    for (; spent < s->rules.evaluations; gen = 1 - gen) {
        MagmaGenome *old = s->at[gen], *new = s->at[1 - gen];
        for (uint32_t i = 0; i < elite; i++) {
            copy(&new[i], &old[i], 0, g->n_jobs);
            new[i].cost = old[i].cost;
        }
        for (uint32_t i = elite; i < n; i++, spent++) {
            breed(s, g, old, parents, &new[i]);
            judge(s, g, &new[i], ops);
        }
        sort(new, n);
    }
    s->n_known = 0;
    return &s->at[gen][0];
}
