#include "bench/pressure/sweep.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/sync.h"
#include "base/stats.h"
#include "compile/tune/stopwatch.h"

enum { SAMPLES_MAX = 400, SETTLE_NS = 5000000 };

typedef struct Sweeping {
    const TuneLayer    *layer;
    const TuneOptions  *o;
    const LayerProfile *p;
    Stopwatch          *watch;
    Bubble             *bubble;
    uint32_t            k;
    double              samples[PROFILE_KEPT][SAMPLES_MAX];
    uint32_t            n[PROFILE_KEPT];
    TimeNs              least[PROFILE_KEPT];
} Sweeping;

static TimeNs now(void) { return clock_now(clock_monotonic()); }

static void settle(void) {
    TimeNs end = now() + SETTLE_NS;
    while (now() < end) spin_pause();
}

static double rate_since(const Bubble *b, uint64_t moved, TimeNs since) {
    return (double)(bubble_moved(b) - moved) / (double)(now() - since);
}

// A sample is invalid if the bubble ran at less than half of its usual rate meanwhile.
static void take_sample(Sweeping *s, uint32_t i, double usual) {
    const Candidate *c = &s->p->candidates[s->p->kept[i]];
    StopwatchWork    w = {s->layer->run, s->layer->warm, s->layer->self, &c->version};
    bool             clean = false;
    uint64_t         moved = bubble_moved(s->bubble);
    TimeNs           begin = now();
    TimeNs           took = stopwatch_run(s->watch, w, s->p->counts[s->k], &clean);
    bool             pressed = rate_since(s->bubble, moved, begin) >= usual / 2;
    if (s->least[i] == 0 || took < s->least[i]) s->least[i] = took;
    if (clean && pressed && s->n[i] < SAMPLES_MAX) s->samples[i][s->n[i]++] = (double)took;
}

static Err evaluate(Sweeping *s, SweepLevel *out) {
    Arena a = {0};
    TRY(arena_init(&a, 2 * sizeof s->samples));
    Err e = ERR_OK;
    for (uint32_t i = 0; e == ERR_OK && i < s->p->n_kept; i++) {
        double *sorted = NULL;
        out->samples[i] = s->n[i];
        out->time_ns[i] = (double)s->least[i];
        if (s->n[i] == 0) continue;
        e = stats_sort(&a, s->samples[i], s->n[i], &sorted);
        if (e == ERR_OK) out->time_ns[i] = stats_percentile(sorted, s->n[i], 25);
    }
    arena_finish(&a);
    return e;
}

// The share left beside the bubble: the cache it does not fill, and the bandwidth it does not use,
// which is all of it while the bubble fits the cache.
static PressureShare left_over(const Pressure *m, const SweepLevel *l) {
    double room = (double)m->l3_bytes, filled = fmin((double)l->bubble_bytes / room, 1);
    double far = (double)l->bubble_bytes > room ? l->bubble_gbs / m->dram_all : 0;
    return (PressureShare){.l3 = 1 - filled, .dram = fmax(1 - far, 0.05)};
}

static Err sweep_level(Sweeping *s, uint32_t level, double seconds, SweepLevel *out) {
    const Pressure *m = s->o->pressure;
    double          share = 1 - pressure_share(level).l3;
    *out = (SweepLevel){.bubble_bytes = (size_t)(2 * share * (double)m->l3_bytes)};
    memset(s->n, 0, sizeof s->n);
    memset(s->least, 0, sizeof s->least);
    bubble_set(s->bubble, out->bubble_bytes, 0);
    settle();
    uint64_t moved = bubble_moved(s->bubble);
    TimeNs   begin = now(), end = begin + (TimeNs)(seconds * 1e9);
    settle();
    while (now() < end)
        for (uint32_t i = 0; i < s->p->n_kept; i++)
            take_sample(s, i, rate_since(s->bubble, moved, begin));
    out->bubble_gbs = rate_since(s->bubble, moved, begin);
    for (uint32_t i = 0; i < s->p->n_kept; i++)
        out->model_ns[i] = pressure_time(m, &s->p->candidates[s->p->kept[i]], s->k,
                                         s->p->counts[s->k], left_over(m, out));
    return evaluate(s, out);
}

Err sweep_layer(const TuneLayer *l, const TuneOptions *o, const LayerProfile *p, uint32_t k,
                Bubble *bubble, double seconds, SweepLevel out[PRESSURE_LEVELS]) {
    Sweeping s = {.layer = l, .o = o, .p = p, .bubble = bubble, .k = k};
    for (uint32_t i = 0; i < p->n_kept; i++)
        if (l->prepare != NULL) TRY(l->prepare(l->self, &p->candidates[p->kept[i]].version));
    TRY(stopwatch_create(&s.watch, o->team, l->scratch_bytes_max, o->l2_bytes * 3 / 2, 0));
    team_pin(o->team);
    Err e = ERR_OK;
    for (uint32_t level = 0; e == ERR_OK && level < PRESSURE_LEVELS; level++)
        e = sweep_level(&s, level, seconds, &out[level]);
    bubble_set(bubble, 0, 0);
    team_unpin(o->team);
    stopwatch_destroy(s.watch);
    return e;
}
