#include "policy/chip/magma_group.h"

#include <math.h>

#include "base/check.h"

static void add(MagmaGroup *g, const ChipView *v, uint32_t task, const MagmaShape *shape) {
    const ChipTask  *t = &v->tasks[task];
    const ChipModel *m = g->setup->tenants[t->request.tenant].model;
    uint32_t         layer = t->layer, n = shape->depth;
    MagmaChain       c = {.task = task, .first = g->n_jobs};
    if (t->unit != CHIP_NONE) {
        g->busy[t->unit].chain = g->n_chains;
        layer++;
    }
    if (n > m->n_layers - layer) n = m->n_layers - layer;
    if (n > shape->jobs - g->n_jobs) n = shape->jobs - g->n_jobs;
    c.layer = layer;
    c.n = n;
    c.left = (float)(t->request.deadline - v->now);
    c.rest = (float)hope_factor(v, t, shape->ease) * m->rest_ns[layer + n];
    for (uint32_t i = 0; i < n; i++) g->costs[g->n_jobs++] = chip_cost(m, layer + i, 0);
    g->chains[g->n_chains++] = c;
}

void magma_group_fill(MagmaGroup *g, const ChipView *v, Order *line, const MagmaShape *shape) {
    g->setup = v->setup;
    g->n_jobs = g->n_chains = 0;
    for (uint32_t u = 0; u < v->setup->n_units; u++) {
        const ChipUnit *on = &v->units[u];
        float           left = fmaxf((float)(on->free_at - v->now), 1.0F);
        g->busy[u] = (MagmaBusy){0, 0, CHIP_NONE};
        if (on->task == CHIP_NONE) continue;
        g->busy[u] = (MagmaBusy){left, on->bytes_ns, CHIP_NONE};
        if (g->n_jobs < shape->jobs && g->n_chains < MAGMA_CHAINS) add(g, v, on->task, shape);
    }
    while (line->n > 0 && g->n_jobs < shape->jobs && g->n_chains < MAGMA_CHAINS)
        add(g, v, order_pop(line).task, shape);
}

typedef struct Play {  // a genome while it is played through
    const MagmaGroup  *g;
    const MagmaGenome *x;
    MagmaBusy          units[CHIP_UNITS];
    uint32_t           next[MAGMA_CHAINS];  // job to be started
    uint64_t           ready[CHIP_KINDS];   // chains whose next job is meant for a kind, as bits
    uint32_t           n_busy;
    float              now;
    MagmaScore         score;
} Play;

static void make_ready(Play *p, uint32_t chain) {
    const MagmaChain *c = &p->g->chains[chain];
    uint32_t          job = p->next[chain];
    if (job < c->first + c->n) p->ready[p->x->kind[job]] |= (uint64_t)1 << chain;
}

// The ready chain whose next job has the highest priority.
static uint32_t choose(Play *p, uint64_t ready) {
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

static void start_jobs(Play *p) {
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

static void end_job(Play *p, uint32_t unit) {
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

// To the next end of a layer, all as slow as the memory makes them.
static void go_on(Play *p) {
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
    Play     p = {.g = g, .x = x};
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
    for (start_jobs(&p); p.n_busy > 0; start_jobs(&p)) go_on(&p);
    return p.score;
}
