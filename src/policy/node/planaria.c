// planaria: all cores are reallocated at every layer
//
// 1. When a request arrives or a layer ends, all requests are considered together. m is the fewest
//    cores that meet the deadline of a request, as predicted without interference; without such a
//    number the request is infeasible.
// 2. If all are feasible and all m fit: each gets its m, and spare cores are divided by
//    priority / time left on m cores.
// 3. Otherwise the requests with the highest priority / (slack * m) get their m while cores last,
//    the last of them in part; the remainder is divided by the same score.
// 4. Infeasible requests share cores that no feasible request can use, in proportion to
//    priority / time left on all cores; if none is feasible, they share the whole machine.
// 5. Shares of spare cores are rounded. A remainder goes to the highest score; an excess is taken
//    back core by core from the lowest score that has more than its m. No request gets more cores
//    than it can use.
// 6. A request keeps the cores of its current layer; the new allocation applies from its next
// layer.
//
// Every layer is a decision and a dispatch, layers run in the version that is fastest alone, and
// predictions ignore co-runners.
#include "policy/node/planaria.h"

#include <math.h>

#include "policy/node/common/core_placement.h"
#include "policy/node/common/node_setup.h"
#include "policy/node/common/suffix_times.h"
#include "policy/policies.h"

typedef struct Ranked {
    double   score;
    uint32_t at;
} Ranked;

static bool above(Ranked a, Ranked b) {
    return a.score != b.score ? a.score > b.score : a.at < b.at;
}

// Shell sort by descending score on small (score, index) pairs; the tasks are permuted once.
static void sort(PlanariaTask *tasks, uint32_t n) {
    static const uint32_t gaps[] = {57, 23, 10, 4, 1};
    Ranked                ranks[PLANARIA_MAX];
    PlanariaTask          sorted[PLANARIA_MAX];
    for (uint32_t i = 0; i < n; i++) ranks[i] = (Ranked){tasks[i].score, i};
    for (uint32_t g = 0; g < sizeof gaps / sizeof *gaps; g++)
        for (uint32_t i = gaps[g]; i < n; i++) {
            Ranked   moved = ranks[i];
            uint32_t j = i;
            for (; j >= gaps[g] && above(moved, ranks[j - gaps[g]]); j -= gaps[g])
                ranks[j] = ranks[j - gaps[g]];
            ranks[j] = moved;
        }
    for (uint32_t i = 0; i < n; i++) sorted[i] = tasks[ranks[i].at];
    for (uint32_t i = 0; i < n; i++) tasks[i] = sorted[i];
}

typedef double Claim(const PlanariaTask *t);

static double by_spare(const PlanariaTask *t) { return t->spare; }
static double by_score(const PlanariaTask *t) { return t->score > 0 ? t->score : 0; }
static double by_size(const PlanariaTask *t) { return fabs(t->score); }

static void give_units(PlanariaTask *t, uint32_t units, int64_t *left) {
    if (t->units + units > t->useful) units = t->useful > t->units ? t->useful - t->units : 0;
    t->units += units;
    *left -= units;
}

// Step 5: divides `left` units in proportion to claims; returns the remainder.
static int64_t spread(PlanariaTask *tasks, uint32_t n, int64_t left, Claim *claim) {
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += claim(&tasks[i]);
    if (left <= 0 || !(sum > 0)) return left;
    double all = (double)left;
    for (uint32_t i = 0; i < n; i++)
        give_units(&tasks[i], (uint32_t)(all * claim(&tasks[i]) / sum + 0.5), &left);
    for (uint32_t i = 0; i < n && left > 0; i++)
        if (claim(&tasks[i]) > 0) give_units(&tasks[i], (uint32_t)left, &left);
    for (uint32_t i = n; i-- > 0 && left < 0;)
        while (left < 0 && tasks[i].units > tasks[i].least) tasks[i].units--, left++;
    return left;
}

void planaria_allocate(PlanariaTask *tasks, uint32_t n, uint32_t n_units) {
    uint32_t feasible = 0;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        tasks[i].units = 0;
        feasible += tasks[i].least > 0;
        sum += tasks[i].least;
    }
    sort(tasks, n);
    int64_t left = n_units;
    for (uint32_t i = 0; i < n && left > 0; i++) {
        tasks[i].units = tasks[i].least < left ? tasks[i].least : (uint32_t)left;
        left -= tasks[i].units;
    }
    left = spread(tasks, n, left, feasible == n && sum <= n_units ? by_spare : by_score);
    spread(tasks, n, left, by_size);
}

#define SETTINGS(X)                                                                                \
    X(safety, double, 0.8, 0.1, 1.0, "share of the time left to plan with")                        \
    X(quantum, int, 4, 1, 256, "cores of a unit; allocations are whole units")

typedef struct PlanariaSettings {
    SETTINGS(SETTING_FIELD)
} PlanariaSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(PlanariaSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct Planaria {
    PlanariaSettings cfg;
    uint32_t         unit;          // cores per unit; fewer on small machines
    SuffixTimes     *suffix_times;  // [tenant]
    uint16_t        *useful;        // [tenant] cores beyond which more do not help
    uint8_t         *solo;          // version 0 of every layer
    PlanariaTask     tasks[PLANARIA_MAX];
} Planaria;

static Planaria *carve_all(const NodeSetup *s, Carve *from) {
    Planaria    *p = carve(from, Planaria, 1);
    SuffixTimes *suffix_times = carve(from, SuffixTimes, s->n_tenants), unused;
    uint16_t    *useful = carve(from, uint16_t, s->n_tenants);
    for (uint32_t i = 0; i < s->n_tenants; i++)
        suffix_times_carve(p == NULL ? &unused : &suffix_times[i], s->tenants[i].model, 1, from);
    uint8_t *solo = node_setup_carve_solo(s, from);
    if (p != NULL) {
        p->suffix_times = suffix_times;
        p->useful = useful;
        p->solo = solo;
    }
    return p;
}

CARVE_STATE_SIZE(NodeSetup)

static void init(void *state, const NodeSetup *setup, const void *settings) {
    Carve     c = {.base = state};
    Planaria *p = carve_all(setup, &c);
    p->cfg = *(const PlanariaSettings *)settings;
    p->unit = node_setup_quantum(setup->machine, (uint32_t)p->cfg.quantum);
    for (uint32_t i = 0; i < setup->n_tenants; i++) {
        const NodeModel *m = setup->tenants[i].model;
        suffix_times_init(&p->suffix_times[i], NULL);
        p->useful[i] = m->counts[suffix_times_fastest(&p->suffix_times[i], 0, 0, m->n_layers)];
    }
}

static uint32_t units(const Planaria *p, uint32_t cores) { return (cores + p->unit - 1) / p->unit; }

static PlanariaTask task_of(const Planaria *p, const NodeView *v, uint32_t request, bool runs) {
    const NodeRequest *r = &v->requests[request];
    const NodeTenant  *t = &v->setup->tenants[r->tenant];
    const SuffixTimes *a = &p->suffix_times[r->tenant];
    uint32_t           at = runs ? r->first : r->next, n = t->model->n_layers;
    double             left = p->cfg.safety * (double)(r->deadline - v->now);
    uint32_t           k = suffix_times_least(a, 0, at, n, left);
    PlanariaTask       task = {.request = request, .runs = runs};
    task.useful = units(p, p->useful[r->tenant]);
    if (k < a->n_counts) {
        task.least = units(p, t->model->counts[k]);
        if (task.useful < task.least) task.useful = task.least;
        task.spare = t->priority / (double)suffix_times_at(a, 0, at)[k];
        task.score = t->priority / (left * task.least);
    } else {
        k = node_count_index(t->model, p->useful[r->tenant]);
        task.score = -t->priority / (double)suffix_times_at(a, 0, at)[k];
    }
    return task;
}

static uint32_t gather(Planaria *p, const NodeView *v) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n_running && n < PLANARIA_MAX; i++)
        p->tasks[n++] = task_of(p, v, v->running[i], true);
    for (uint32_t i = 0; i < v->n_waiting && n < PLANARIA_MAX; i++)
        p->tasks[n++] = task_of(p, v, v->waiting[i], false);
    return n;
}

static uint32_t decide(void *state, const NodeView *v, NodeAction *out, uint32_t max) {
    Planaria *p = state;
    if (v->n_free == 0 || v->n_waiting == 0) return 0;
    uint32_t n_tasks = gather(p, v), n = 0, n_free = v->n_free;
    planaria_allocate(p->tasks, n_tasks, units(p, v->setup->machine->n_cores));
    Cores free = v->free;
    for (uint32_t i = 0; i < n_tasks && n < max && n_free > 0; i++) {
        const PlanariaTask *t = &p->tasks[i];
        if (t->runs || t->units == 0) continue;
        uint32_t wanted = t->units * p->unit;
        if (wanted > v->setup->machine->n_cores) wanted = v->setup->machine->n_cores;
        uint32_t given = wanted < n_free ? wanted : n_free;
        Cores    cores = core_placement_first(&free, given);
        free = cores_difference(free, &cores);
        n_free -= given;
        out[n++] = (NodeAction){.verb = NODE_START,
                                .request = t->request,
                                .n_layers = 1,
                                .wanted = wanted,
                                .cores = cores,
                                .versions = p->solo};
    }
    return n;
}

const NodePolicy policy_planaria = {
    .name = "planaria",
    .about = "all cores reallocated at every layer, by feasibility and score",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(PlanariaSettings),
    .state_size = size,
    .init = init,
    .decide = decide,
};
