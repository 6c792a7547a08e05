#include "policy/chip/oracle_filter.h"

#include "policy/carve.h"

typedef struct Filter {
    OracleFilter with;
    void        *state;    // of inner
    uint32_t    *waiting;  // [n_slots] those that inner sees
} Filter;

static Filter *carve_all(const ChipSetup *s, const OracleFilter *with, Carve *from) {
    const ChipPolicy *p = with->inner;
    Filter           *f = carve(from, Filter, 1);
    uint32_t         *waiting = carve(from, uint32_t, s->n_slots);
    void *state = carve_bytes(from, p->state_size != NULL ? p->state_size(s, with->settings) : 0);
    if (f != NULL) *f = (Filter){*with, state, waiting};
    return f;
}

static size_t size(const ChipSetup *setup, const void *settings) {
    Carve c = {0};
    carve_all(setup, settings, &c);
    return c.used;
}

static void init(void *state, const ChipSetup *setup, const void *settings, const void *loaded) {
    (void)loaded;
    Carve   c = {.base = state};
    Filter *f = carve_all(setup, settings, &c);
    if (f->with.inner->init != NULL)
        f->with.inner->init(f->state, setup, f->with.settings, f->with.loaded);
}

static void think(void *state, const ChipView *v, ChipCharge *charge) {
    Filter *f = state;
    f->with.inner->think(f->state, v, charge);
}

static void adopt(void *state) {
    Filter *f = state;
    f->with.inner->adopt(f->state);
}

static uint32_t decide(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    Filter  *f = state;
    uint32_t n = 0;
    ChipView seen = *v;
    seen.waiting = f->waiting;
    seen.n_waiting = 0;
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        uint32_t task = v->waiting[i];
        if (n < max && f->with.fates[v->tasks[task].request.id] != ORACLE_KEEP)
            out[n++] = (ChipAction){.verb = CHIP_DROP, .task = task};
        else
            f->waiting[seen.n_waiting++] = task;
    }
    return n + f->with.inner->decide(f->state, &seen, out + n, max - n);
}

#define FILTER                                                                                     \
    .name = "filter", .about = "a policy without some requests",                                   \
    .settings_size = sizeof(OracleFilter), .state_size = size, .init = init, .decide = decide

static const ChipPolicy quick = {FILTER};
static const ChipPolicy thinker = {FILTER, .think = think, .adopt = adopt};

const ChipPolicy *oracle_filter(const ChipPolicy *inner) {
    return inner->think != NULL ? &thinker : &quick;
}
