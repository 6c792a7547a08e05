#include "policy/chip/oracle/oracle_int.h"

#include "policy/chip/common/dispatch.h"

typedef struct Filter {
    OracleFilter cfg;
    void        *state;    // of inner
    uint32_t    *waiting;  // [n_slots] that inner sees
} Filter;

static void *carve_all(const ChipSetup *s, const void *settings, Carve *from) {
    const OracleFilter *cfg = settings;
    const ChipPolicy   *p = cfg->inner;
    Filter             *f = carve(from, Filter, 1);
    uint32_t           *waiting = carve(from, uint32_t, s->n_slots);
    void *state = carve_bytes(from, p->state_size != NULL ? p->state_size(s, cfg->settings) : 0);
    if (f != NULL) *f = (Filter){*cfg, state, waiting};
    return f;
}

static size_t size(const ChipSetup *setup, const void *settings) {
    return state_size(carve_all, setup, settings);
}

static void init(void *state, const ChipSetup *setup, const void *settings, const void *loaded) {
    (void)loaded;
    Filter *f = state_place(carve_all, setup, settings, state);
    if (f->cfg.inner->init != NULL)
        f->cfg.inner->init(f->state, setup, f->cfg.settings, f->cfg.loaded);
}

static void plan(void *state, const ChipView *v, ChipPlanCost *cost) {
    Filter *f = state;
    f->cfg.inner->plan(f->state, v, cost);
}

static void commit(void *state) {
    Filter *f = state;
    f->cfg.inner->commit(f->state);
}

static uint32_t decide(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    Filter  *f = state;
    uint32_t n = 0;
    ChipView seen = *v;
    seen.waiting = f->waiting;
    seen.n_waiting = 0;
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        uint32_t task = v->waiting[i];
        if (n < max && f->cfg.verdicts[v->tasks[task].request.id] != ORACLE_REQUIRED)
            out[n++] = (ChipAction){.verb = CHIP_DROP, .task = task};
        else
            f->waiting[seen.n_waiting++] = task;
    }
    return n + f->cfg.inner->decide(f->state, &seen, out + n, max - n);
}

#define FILTER                                                                                     \
    .name = "filter", .about = "a policy without the rejected requests",                           \
    .settings_size = sizeof(OracleFilter), .state_size = size, .init = init, .decide = decide

static const ChipPolicy without_plan = {FILTER};
static const ChipPolicy with_plan = {FILTER, .plan = plan, .commit = commit};

const ChipPolicy *oracle_filter(const ChipPolicy *inner) {
    return inner->plan != NULL ? &with_plan : &without_plan;
}
