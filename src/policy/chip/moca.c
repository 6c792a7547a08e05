// moca: memory bandwidth divided by urgency
//
// 1. Tasks and running layers are known by their bandwidth demand. A layer's time is predicted with
//    the demand it would meet: a kind that is fast alone can be slow beside others.
// 2. Every task has a score: priority + remaining time / time to the deadline. Tasks start in the
//    order of this score or, with `waited`, of priority + time waited / time alone, which is the
//    paper's order; bandwidth is divided by the score in both cases.
// 3. Memory-heavy layers, which demand more than `heavy` of the bandwidth, are paired with light
//    ones: while running layers demand more than `crowd` times the bandwidth, light layers of a
//    lower score overtake heavy ones. When no light layer is left, heavy ones start.
// 4. When layers demand more than the memory has, the excess is taken from them by throttles, more
//    from low scores: in proportion to demand x (1 + bias x (highest score / score - 1)), down to
//    `floor` of their demand. The paper does this in hardware at every unit; here it is the
//    package's THROTTLE.
// 5. In the paper tasks own their tiles. Here a task takes the unit where its layer is predicted to
//    end first, at every layer anew. Infeasible tasks have the lowest score, or are dropped.
//
// Defaults were chosen on traces of seeds 1 to 99 with bench/chip_tune.c. Throttles gain nothing
// there: without them the result is 0.1 points better, but the policy would not be MoCA.
#include <math.h>

#include "policy/chip/common/dispatch.h"
#include "policy/policies.h"

#define SETTINGS(X)                                                                                \
    FEASIBILITY_SETTINGS(X, LATE_DROP, 4.2)                                                        \
    X(waited, bool, true, 0, 1,                                                                    \
      "order by time waited; else by remaining time over time to the deadline")                    \
    X(heavy, double, 0.22, 0.0, 10.0,                                                              \
      "demand above which a layer is memory-heavy, over the bandwidth")                            \
    X(crowd, double, 0.42, 0.0, 100.0,                                                             \
      "demand above which light layers overtake heavy ones, over the bandwidth")                   \
    X(bias, double, 1.0, 0.0, 10.0, "how much more is taken from low scores; 0: no throttles")     \
    X(floor, double, 0.6, 0.01, 1.0, "share of its demand that a layer keeps")                     \
    PATIENCE_SETTING(X, 4.7)

typedef struct MocaSettings {
    SETTINGS(SETTING_FIELD)
} MocaSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(MocaSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct Moca {
    MocaSettings cfg;
    TaskQueue    queue, heavy;
    UnitTimeline timeline;
    uint32_t     on[CHIP_UNITS];      // task of each unit after this decision
    double       weight[CHIP_UNITS];  // of the excess that is taken from it
} Moca;

static void *carve_all(const ChipSetup *s, const void *settings, Carve *from) {
    (void)settings;
    TaskQueue queue, heavy;
    Moca     *m = carve(from, Moca, 1);
    task_queue_carve(&queue, s->n_slots, from);
    task_queue_carve(&heavy, s->n_slots, from);
    if (m != NULL) *m = (Moca){.queue = queue, .heavy = heavy};
    return m;
}

static size_t size(const ChipSetup *setup, const void *settings) {
    return state_size(carve_all, setup, settings);
}

static void init(void *state, const ChipSetup *setup, const void *settings, const void *loaded) {
    (void)loaded;
    Moca *m = state_place(carve_all, setup, settings, state);
    m->cfg = *(const MocaSettings *)settings;
}

static bool late(const Moca *m, const ChipView *v, const ChipTask *t) {
    Feasibility f = {m->cfg.late_action, m->cfg.safety_factor};
    return infeasible(&f, v, t);
}

// Step 2.
static double score_of(const Moca *m, const ChipView *v, const ChipTask *t) {
    const double most = 100.0, least = 0.01;
    double       left = (double)(t->request.deadline - v->now);
    double       work = feasibility_rest_ns(v, t);
    if (late(m, v, t)) return least;
    return v->setup->tenants[t->request.tenant].priority +
           (left * most > work ? work / left : most);
}

static double order_of(const Moca *m, const ChipView *v, const ChipTask *t) {
    const ChipTenant *tenant = &v->setup->tenants[t->request.tenant];
    double            waited = (double)(v->now - t->request.arrival - t->ran);
    double            alone = (double)tenant->model->rest_ns[0];
    if (!m->cfg.waited || late(m, v, t)) return score_of(m, v, t);
    return tenant->priority + (waited > 0 ? waited / alone : 0.0);
}

static double key_of(const void *self, const ChipView *v, const ChipTask *t, bool is_late) {
    (void)is_late;
    return -order_of(self, v, t);
}

static const ChipCost *cost_on(const Moca *m, uint32_t task, uint32_t unit) {
    const ChipTask *t = &m->timeline.view->tasks[task];
    return chip_cost(unit_timeline_model(&m->timeline, t), t->layer,
                     m->timeline.view->setup->kind_of[unit]);
}

// Step 3: whether light layers may overtake this one.
static bool held(const Moca *m, uint32_t task, uint32_t unit) {
    double b = (double)m->timeline.bytes_ns, asks = (double)cost_on(m, task, unit)->bytes_ns;
    return asks > m->cfg.heavy * b && (double)m->timeline.demand + asks > m->cfg.crowd * b;
}

// Starts tasks of a queue; with `pair`, held heavy ones go to the other queue.
static uint32_t start(Moca *m, TaskQueue *from, bool pair, ChipAction *out, uint32_t max) {
    uint32_t n = 0;
    while (!task_queue_empty(from) && m->timeline.n_free > 0 && n < max) {
        uint32_t        task = task_queue_pop(from).task;
        const ChipTask *t = &m->timeline.view->tasks[task];
        UnitPick        p = unit_timeline_first_to_end(&m->timeline, t, (float)m->cfg.patience);
        if (p.unit == CHIP_NONE) continue;
        if (p.wait == 0 && pair && held(m, task, p.unit)) {
            task_queue_add(&m->heavy, 0.0, task);
            continue;
        }
        if (p.wait == 0) {
            m->on[p.unit] = task;
            out[n++] = (ChipAction){.verb = CHIP_START, .task = task, .unit = p.unit};
        }
        unit_timeline_reserve(&m->timeline, t, p);
    }
    return n;
}

static double top_score(const Moca *m, const ChipView *v) {
    double top = 0.0;
    for (uint32_t u = 0; u < v->setup->n_units; u++)
        if (m->on[u] != CHIP_NONE) top = fmax(top, score_of(m, v, &v->tasks[m->on[u]]));
    return top;
}

static double weigh(Moca *m, const ChipView *v) {
    double sum = 0.0, top = top_score(m, v);
    for (uint32_t u = 0; u < v->setup->n_units; u++) {
        m->weight[u] = 0.0;
        if (m->on[u] == CHIP_NONE) continue;
        double lower = top / score_of(m, v, &v->tasks[m->on[u]]) - 1.0;
        m->weight[u] = (double)cost_on(m, m->on[u], u)->bytes_ns * (1.0 + m->cfg.bias * lower);
        sum += m->weight[u];
    }
    return sum;
}

// Step 4. Caps that would change by less than 5 % are kept.
static uint32_t throttle(Moca *m, const ChipView *v, ChipAction *out, uint32_t max) {
    const double change = 0.05;
    double       asked = 0.0;
    uint32_t     n = 0;
    for (uint32_t u = 0; u < v->setup->n_units; u++)
        if (m->on[u] != CHIP_NONE) asked += (double)cost_on(m, m->on[u], u)->bytes_ns;
    double excess = asked - (double)v->setup->bytes_ns, sum = weigh(m, v);
    for (uint32_t u = 0; u < v->setup->n_units && n < max; u++) {
        if (m->on[u] == CHIP_NONE) continue;
        double b = (double)cost_on(m, m->on[u], u)->bytes_ns, cap = b;
        double was = v->units[u].task == m->on[u] ? fmin((double)v->units[u].cap, b) : b;
        if (excess > 0 && sum > 0) cap = b - excess * m->weight[u] / sum;
        if (cap < m->cfg.floor * b) cap = m->cfg.floor * b;
        if (fabs(cap - was) <= change * b || !(b > 0)) continue;
        out[n++] =
            (ChipAction){.verb = CHIP_THROTTLE, .unit = u, .cap = cap < b ? (float)cap : INFINITY};
    }
    return n;
}

static uint32_t decide(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    Moca       *m = state;
    Feasibility f = {m->cfg.late_action, m->cfg.safety_factor};
    uint32_t    n = task_queue_fill(&m->queue, v, &f, key_of, m, out, max);
    unit_timeline_open(&m->timeline, v);
    unit_timeline_share_bandwidth(&m->timeline);
    for (uint32_t u = 0; u < v->setup->n_units; u++) m->on[u] = v->units[u].task;
    task_queue_clear(&m->heavy);
    n += start(m, &m->queue, true, out + n, max - n);
    n += start(m, &m->heavy, false, out + n, max - n);
    if (m->cfg.bias > 0) n += throttle(m, v, out + n, max - n);
    return n;
}

const ChipPolicy chip_policy_moca = {
    .name = "moca",
    .about = "by urgency, memory-heavy layers beside light ones, bandwidth divided by throttles",
    .paper = "HPCA 2023",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(MocaSettings),
    .state_size = size,
    .init = init,
    .decide = decide,
};
