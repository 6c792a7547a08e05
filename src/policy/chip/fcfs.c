// fcfs: first come, first served
//
// The next layer of the oldest request goes to the unit that is free first and can compute it; of
// several free units to the fastest. Deadlines, the differences between units and the shared memory
// play no part.
//
// fcfs_h is the same on the best hardware: a layer runs only on the kind of unit that computes it
// fastest, and waits for one of these. Each layer is as fast as possible, but other kinds may idle
// meanwhile, and the fast kinds tend to be those with the highest bandwidth demand.
#include "policy/chip/common/dispatch.h"
#include "policy/policies.h"

#define SETTINGS(X)                                                                                \
    X(overtake, bool, true, 0, 1,                                                                  \
      "a task with a free unit may start before an older one that waits")

typedef struct FcfsSettings {
    SETTINGS(SETTING_FIELD)
} FcfsSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(FcfsSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

static uint32_t decide_by(DispatchState *s, UnitChoice choice, const ChipView *v, ChipAction *out,
                          uint32_t max) {
    const FcfsSettings *cfg = s->settings;
    if (v->n_free == 0 || v->n_waiting == 0) return 0;
    task_queue_clear(&s->queue);
    for (uint32_t i = 0; i < v->n_waiting; i++) task_queue_add(&s->queue, 0.0, v->waiting[i]);
    unit_timeline_open(&s->timeline, v);
    Dispatch d = {.choice = choice, .strict = !cfg->overtake};
    return dispatch_all(&d, &s->queue, &s->timeline, out, max);
}

static uint32_t decide(void *state, const ChipView *view, ChipAction *out, uint32_t max) {
    return decide_by(state, CHOOSE_FIRST_FREE, view, out, max);
}

static uint32_t decide_h(void *state, const ChipView *view, ChipAction *out, uint32_t max) {
    return decide_by(state, CHOOSE_FASTEST, view, out, max);
}

#define POLICY(id, text, fn)                                                                       \
    .name = id, .about = text, .rows = rows, .n_rows = sizeof rows / sizeof *rows,                 \
    .settings_size = sizeof(FcfsSettings), .state_size = dispatch_state_size,                      \
    .init = dispatch_state_init, .decide = fn

const ChipPolicy chip_policy_fcfs = {
    POLICY("fcfs", "in order of arrival, on whichever unit is free first", decide)};

const ChipPolicy chip_policy_fcfs_h = {POLICY(
    "fcfs_h", "in order of arrival, only on the fastest kind of unit for the layer", decide_h)};
