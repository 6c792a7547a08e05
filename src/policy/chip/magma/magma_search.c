#include "policy/chip/magma/magma_search.h"

#include <math.h>
#include <string.h>

#include "base/err.h"

static void add(MagmaGroup *g, const ChipView *v, uint32_t task, const MagmaGroupLimits *limits) {
    const ChipTask  *t = &v->tasks[task];
    const ChipModel *m = g->setup->tenants[t->request.tenant].model;
    uint32_t         layer = t->layer, n = limits->depth;
    MagmaChain       c = {.task = task, .first = g->n_jobs};
    if (t->unit != CHIP_NONE) {
        g->busy[t->unit].chain = g->n_chains;
        layer++;
    }
    if (n > m->n_layers - layer) n = m->n_layers - layer;
    if (n > limits->jobs - g->n_jobs) n = limits->jobs - g->n_jobs;
    c.layer = layer;
    c.n = n;
    c.left = (float)(t->request.deadline - v->now);
    c.rest = (float)feasibility_factor(v, t, limits->safety_factor) * m->rest_ns[layer + n];
    for (uint32_t i = 0; i < n; i++) g->costs[g->n_jobs++] = chip_cost(m, layer + i, 0);
    g->chains[g->n_chains++] = c;
}

void magma_group_fill(MagmaGroup *g, const ChipView *v, TaskQueue *q,
                      const MagmaGroupLimits *limits) {
    g->setup = v->setup;
    g->n_jobs = g->n_chains = 0;
    for (uint32_t u = 0; u < v->setup->n_units; u++) {
        const ChipUnit *on = &v->units[u];
        float           left = fmaxf((float)(on->free_at - v->now), 1.0F);
        g->busy[u] = (MagmaBusy){0, 0, CHIP_NONE};
        if (on->task == CHIP_NONE) continue;
        g->busy[u] = (MagmaBusy){left, on->bytes_ns, CHIP_NONE};
        if (g->n_jobs < limits->jobs && g->n_chains < MAGMA_CHAINS) add(g, v, on->task, limits);
    }
    while (!task_queue_empty(q) && g->n_jobs < limits->jobs && g->n_chains < MAGMA_CHAINS)
        add(g, v, task_queue_pop(q).task, limits);
}

typedef struct Decoding {  // the simulation of a genome
    const MagmaGroup  *g;
    const MagmaGenome *x;
    MagmaBusy          units[CHIP_UNITS];
    uint32_t           next[MAGMA_CHAINS];  // job of each chain that starts next
    uint64_t           ready[CHIP_KINDS];   // bits of chains with a next job for the kind
    uint32_t           n_busy;
    float              now;
    MagmaScore         score;
} Decoding;

static void make_ready(Decoding *p, uint32_t chain) {
    const MagmaChain *c = &p->g->chains[chain];
    uint32_t          job = p->next[chain];
    if (job < c->first + c->n) p->ready[p->x->kind[job]] |= (uint64_t)1 << chain;
}

// The ready chain with the next job of the highest priority.
static uint32_t choose(Decoding *p, uint64_t ready) {
    uint32_t best = CHIP_NONE;
    float    highest = -INFINITY;
    for (; ready != 0; ready &= ready - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(ready);
        float    priority = p->x->priority[p->next[i]];
        p->score.steps++;
        if (priority <= highest) continue;
        highest = priority;
        best = i;
    }
    return best;
}

static void start_jobs(Decoding *p) {
    const ChipSetup *s = p->g->setup;
    for (uint32_t u = 0; u < s->n_units; u++) {
        uint32_t kind = s->kind_of[u];
        if (p->units[u].ns > 0 || p->ready[kind] == 0) continue;
        uint32_t i = choose(p, p->ready[kind]);
        CHECK(i < MAGMA_CHAINS);
        const ChipCost *c = &p->g->costs[p->next[i]++][kind];
        p->units[u] = (MagmaBusy){c->ns, c->bytes_ns, i};
        p->ready[kind] &= ~((uint64_t)1 << i);
        p->n_busy++;
    }
}

static void end_job(Decoding *p, uint32_t unit) {
    uint32_t i = p->units[unit].chain;
    p->units[unit] = (MagmaBusy){0, 0, CHIP_NONE};
    p->n_busy--;
    if (i == CHIP_NONE) return;
    const MagmaChain *c = &p->g->chains[i];
    make_ready(p, i);
    if (p->next[i] < c->first + c->n) return;
    p->score.late += p->now + c->rest > c->left;
    p->score.makespan = p->now;
}

// To the end of the next layer; all slow down alike when they exceed the bandwidth.
static void advance(Decoding *p) {
    uint32_t n = p->g->setup->n_units;
    float    demand = 0, least = INFINITY;
    p->score.steps += n;
    for (uint32_t u = 0; u < n; u++) {
        if (!(p->units[u].ns > 0)) continue;
        demand += p->units[u].bytes_ns;
        if (p->units[u].ns < least) least = p->units[u].ns;
    }
    p->now += demand > p->g->setup->bytes_ns ? least * demand / p->g->setup->bytes_ns : least;
    for (uint32_t u = 0; u < n; u++) {
        if (!(p->units[u].ns > 0)) continue;
        p->units[u].ns -= least;
        if (!(p->units[u].ns > 0)) end_job(p, u);
    }
}

MagmaScore magma_group_decode(const MagmaGroup *g, const MagmaGenome *x) {
    Decoding p = {.g = g, .x = x};
    uint64_t runs = 0;
    for (uint32_t u = 0; u < g->setup->n_units; u++) {
        p.units[u] = g->busy[u];
        p.n_busy += g->busy[u].ns > 0;
        if (g->busy[u].chain != CHIP_NONE) runs |= (uint64_t)1 << g->busy[u].chain;
    }
    for (uint32_t i = 0; i < g->n_chains; i++) {
        p.next[i] = g->chains[i].first;
        if ((runs >> i & 1) == 0) make_ready(&p, i);
    }
    for (start_jobs(&p); p.n_busy > 0; start_jobs(&p)) advance(&p);
    return p.score;
}

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
        if (chance(&s->rng, s->cfg.mutation)) x->kind[i] = any_kind(g, i, &s->rng);
        if (chance(&s->rng, s->cfg.mutation)) x->priority[i] = rng_unit(&s->rng);
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

// All jobs that the other genome has on one kind.
static void cross_whole(MagmaGenome *x, const MagmaGenome *from, uint32_t n, uint32_t kind) {
    for (uint32_t i = 0; i < n; i++)
        if (from->kind[i] == kind) copy(x, from, i, i + 1);
}

static void breed(MagmaSearch *s, const MagmaGroup *g, const MagmaGenome *old, uint32_t n_parents,
                  MagmaGenome *x) {
    const MagmaGenome *one = &old[rng_below(&s->rng, n_parents)];
    const MagmaGenome *other = &old[rng_below(&s->rng, n_parents)];
    copy(x, one, 0, g->n_jobs);
    if (chance(&s->rng, s->cfg.single)) cross_single(x, other, g->n_jobs, &s->rng);
    if (chance(&s->rng, s->cfg.range)) cross_range(x, other, g->n_jobs, &s->rng);
    if (chance(&s->rng, s->cfg.whole))
        cross_whole(x, other, g->n_jobs, (uint32_t)rng_below(&s->rng, g->setup->n_kinds));
    mutate(s, g, x);
}

static void evaluate(const MagmaSearch *s, const MagmaGroup *g, MagmaGenome *x, double *ops) {
    MagmaScore score = magma_group_decode(g, x);
    x->cost = (double)score.makespan / (double)g->setup->period + s->cfg.late * score.late;
    *ops += score.steps + g->n_jobs;
}

// By cost, stable.
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

// The first generation: the known genomes and mutants of them.
static void first_generation(MagmaSearch *s, const MagmaGroup *g, uint32_t n, double *ops) {
    CHECK(s->n_known > 0);
    for (uint32_t i = 0; i < n; i++) {
        if (i >= s->n_known) {
            copy(&s->at[0][i], &s->at[0][i % s->n_known], 0, g->n_jobs);
            mutate(s, g, &s->at[0][i]);
        }
        evaluate(s, g, &s->at[0][i], ops);
    }
    sort(s->at[0], n);
}

const MagmaGenome *magma_search_run(MagmaSearch *s, const MagmaGroup *g, double *ops) {
    uint32_t n = s->cfg.population < s->cfg.evaluations ? s->cfg.population : s->cfg.evaluations;
    uint32_t elite = share(s->cfg.elite, n, 1), parents = share(s->cfg.parents, n, 2);
    if (n < s->n_known) n = s->n_known;
    first_generation(s, g, n, ops);
    uint32_t gen = 0, spent = g->n_jobs > 0 && n > elite ? n : s->cfg.evaluations;
    for (; spent < s->cfg.evaluations; gen = 1 - gen) {
        MagmaGenome *old = s->at[gen], *new = s->at[1 - gen];
        for (uint32_t i = 0; i < elite; i++) {
            copy(&new[i], &old[i], 0, g->n_jobs);
            new[i].cost = old[i].cost;
        }
        for (uint32_t i = elite; i < n; i++, spent++) {
            breed(s, g, old, parents, &new[i]);
            evaluate(s, g, &new[i], ops);
        }
        sort(new, n);
    }
    s->n_known = 0;
    return &s->at[gen][0];
}
