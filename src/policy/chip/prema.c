// prema: tokens while waiting; the shortest first among the tasks that have enough
//
// 1. A request starts with as many tokens as its priority and earns more while it waits: its
//    priority times its waiting time, in units of its own time alone, so that short requests earn
//    faster.
// 2. The candidates are the tasks that reach the threshold: the largest of 1, 3 and 9 that any task
//    reaches. Of these the one with the least predicted remaining time goes first, predicted from
//    the cost table alone.
// 3. PREMA schedules one accelerator, which the winner takes. With several units the candidates are
//    taken one after the other, each on the unit where its layer ends first; when there are none
//    left, the tasks below the threshold follow by the next lower threshold.
// 4. The choice is made again after every layer: the layers computed so far are the checkpoint.
//
// Deadlines and memory play no part, as in the paper. patience was chosen on traces of seeds 1 to
// 99 with bench/chip_tune.c; the thresholds are the paper's. (With a single threshold, which is
// shortest-first, 5 points more are in time, but that is another policy.)
#include "policy/chip/common/dispatch.h"
#include "policy/chip/common/feasibility.h"
#include "policy/policies.h"

#define SETTINGS(X)                                                                                \
    X(step, double, 3.0, 1.01, 100.0, "ratio of neighbouring thresholds")                          \
    X(levels, int, 3, 1, 32, "number of thresholds, from 1 on")                                    \
    PATIENCE_SETTING(X, 8.0)

typedef struct PremaSettings {
    SETTINGS(SETTING_FIELD)
} PremaSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(PremaSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

static double tokens_of(const ChipView *v, const ChipTask *t) {
    const ChipTenant *tenant = &v->setup->tenants[t->request.tenant];
    double            waited = (double)(v->now - t->request.arrival - t->ran);
    double            alone = (double)tenant->model->rest_ns[0];
    return tenant->priority * (1.0 + (waited > 0 ? waited / alone : 0));
}

// The number of thresholds that so many tokens reach.
static int level_of(const PremaSettings *cfg, double tokens) {
    int    n = 0;
    double threshold = 1.0;
    for (; n < cfg->levels && threshold <= tokens; n++) threshold *= cfg->step;
    return n;
}

static uint32_t decide(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    const double         longest = 1e15;  // more than any network takes, in nanoseconds
    DispatchState       *s = state;
    const PremaSettings *cfg = s->settings;
    if (v->n_free == 0 || v->n_waiting == 0) return 0;
    task_queue_clear(&s->queue);
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        const ChipTask *t = &v->tasks[v->waiting[i]];
        double          key = feasibility_rest_ns(v, t) - longest * level_of(cfg, tokens_of(v, t));
        task_queue_add(&s->queue, key, v->waiting[i]);
    }
    unit_timeline_open(&s->timeline, v);
    Dispatch d = {.choice = CHOOSE_FIRST_TO_END, .patience = cfg->patience};
    return dispatch_all(&d, &s->queue, &s->timeline, out, max);
}

const ChipPolicy chip_policy_prema = {
    .name = "prema",
    .about = "tokens earned by waiting; of the tasks with enough the shortest first",
    .paper = "HPCA 2020",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(PremaSettings),
    .state_size = dispatch_state_size,
    .init = dispatch_state_init,
    .decide = decide,
};
