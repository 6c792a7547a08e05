// prema: tokens for who waits, the shortest first among those that have enough
//
// 1. A request begins cfg as many tokens as its priority and earns more while it waits: its
//    priority times the time it has waited, in units of its own time alone, so that short ones earn
//    quickly.
// 2. The candidates are those cfg at least the threshold: the largest of 1, 3 and 9 that the
//    richest of them reaches. Among them the one cfg the least predicted time left goes first,
//    predicted from the layers' times alone.
// 3. PREMA was made for one accelerator, where the winner takes it. With several units candidates
//    are popped one after the other, each to the unit where its layer ends first; whoever is below
//    the threshold follows when there are no candidates left, by a threshold of its own.
// 4. The choice is made again after every layer: what was computed so far is the checkpoint.
//
// Deadlines and the memory are unknown to it, as in the original. patience was chosen on traces of
// the seeds 1 to 99, see bench/chip_tune.c; the thresholds are the paper's. (With one threshold,
// that is none, the shortest first, 5 points more are in time, but that is another policy.)
#include "policy/chip/common/feasibility.h"
#include "policy/chip/common/dispatch.h"
#include "policy/policies.h"

#define SETTINGS(X)                                                                                \
    X(step, double, 3.0, 1.01, 100.0, "ratio of neighbouring thresholds")                          \
    X(levels, int, 3, 1, 32, "thresholds there are, from 1 on")                                    \
    PATIENCE_SETTING(X, 8.0)

typedef struct PremaSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    SETTINGS(X)
#undef X
} PremaSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(PremaSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct Prema {
    PremaSettings cfg;
    TaskQueue     order;
    UnitTimeline  timeline;
} Prema;

static Prema *carve_all(const ChipSetup *s, Carve *from) {
    TaskQueue o;
    Prema    *p = carve(from, Prema, 1);
    task_queue_carve(&o, s->n_slots, from);
    if (p != NULL) p->order = o;
    return p;
}

static size_t size(const ChipSetup *setup, const void *settings) {
    (void)settings;
    Carve c = {0};
    carve_all(setup, &c);
    return c.used;
}

static void init(void *state, const ChipSetup *setup, const void *settings, const void *loaded) {
    (void)loaded;
    Carve  c = {.base = state};
    Prema *p = carve_all(setup, &c);
    p->cfg = *(const PremaSettings *)settings;
}

static double tokens_of(const ChipView *v, const ChipTask *t) {
    const ChipTenant *tenant = &v->setup->tenants[t->request.tenant];
    double            waited = (double)(v->now - t->request.arrival - t->ran);
    double            alone = (double)tenant->model->rest_ns[0];
    return tenant->priority * (1.0 + (waited > 0 ? waited / alone : 0));
}

// How many thresholds somebody reaches. Candidates are those that reach as many as the richest.
static int reached(const Prema *p, double tokens) {
    int    n = 0;
    double threshold = 1.0;
    for (; n < p->cfg.levels && threshold <= tokens; n++) threshold *= p->cfg.step;
    return n;
}

static uint32_t decide(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    const double longest = 1e15;  // more than any network takes
    Prema       *p = state;
    if (v->n_free == 0 || v->n_waiting == 0) return 0;
    task_queue_clear(&p->order);
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        const ChipTask *t = &v->tasks[v->waiting[i]];
        task_queue_add(&p->order, feasibility_rest_ns(v, t) - longest * reached(p, tokens_of(v, t)),
                       v->waiting[i]);
    }
    unit_timeline_open(&p->timeline, v);
    Dispatch dispatch = {.rule = CHOOSE_FIRST_TO_END, .patience = p->cfg.patience};
    return dispatch_all(&dispatch, &p->order, &p->timeline, out, max);
}

const ChipPolicy chip_policy_prema = {
    .name = "prema",
    .about = "tokens for who waits; of those cfg enough the shortest first",
    .paper = "HPCA 2020",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(PremaSettings),
    .state_size = size,
    .init = init,
    .decide = decide,
};
