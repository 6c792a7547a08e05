#include "compile/tune.h"

#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/map.h"
#include "compile/stopwatch.h"
#include "compile/tune_search.h"

enum { PERMILLE = 1000 };

typedef struct Tuning {
    const TuneLayer   *layers;
    const TuneOptions *o;
    uint32_t           n;
    Arena             *arena;
    Profile           *out;
    bool              *wanted;   // [n] to be searched
    uint32_t          *same;     // [n] the first layer with this key
    double            *weights;  // [n] of the first ones, with those that are the same
    double             weight_left, weight_all;  // of what is wanted
    TimeNs             deadline;
} Tuning;

static TimeNs now(void) { return clock_now(clock_steady()); }

static bool same_counts(const Profile *p, const TuneOptions *o) {
    return p->n_counts == o->n_counts &&
           memcmp(p->counts, o->counts, o->n_counts * sizeof *o->counts) == 0;
}

static bool offers(const TuneLayer *l, const Version *v) {
    for (uint32_t i = 0; i < l->n; i++)
        if (version_same(v, &l->candidates[i])) return true;
    return false;
}

bool tune_known(const TuneLayer *l, const TuneOptions *o, Arena *a, Profile *out) {
    Profile p = {0};
    if (o->store == NULL || !store_get(o->store, l->key, a, &p)) return false;
    if (!same_counts(&p, o) || p.n_kept == 0) return false;
    for (uint32_t i = 0; i < p.n_kept; i++)
        if (!offers(l, &p.candidates[p.kept[i]].version)) return false;
    *out = p;
    return true;
}

// Large layers and those that come often matter more; a small one still gets a tenth of the mean.
static void weigh(Tuning *t) {
    Map    first;
    double all = 0;
    map_init(&first, t->arena);
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t other = map_get(&first, t->layers[i].key);
        t->same[i] = other != MAP_NONE ? other : i;
        if (other == MAP_NONE) map_put(&first, t->layers[i].key, i);
        t->weights[t->same[i]] += t->layers[i].macs;
        all += t->layers[i].macs;
    }
    for (uint32_t i = 0; i < t->n; i++) t->weights[i] += 0.1 * all / t->n + 1;
}

// An earlier search that was cut short goes on when there is more time now than it had.
static void plan(Tuning *t) {
    double all = 0;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->same[i] == i) all += t->weights[i];
    for (uint32_t i = 0; i < t->n; i++) {
        t->out[i] = (Profile){0};
        if (t->same[i] != i || t->layers[i].n == 0) continue;
        bool   known = tune_known(&t->layers[i], t->o, t->arena, &t->out[i]);
        double share_ns = 1e9 * t->o->seconds * t->weights[i] / all;
        bool   cut_short = !t->out[i].finished && share_ns > (double)t->out[i].spent_ns;
        t->wanted[i] = !known || cut_short;
        if (t->wanted[i]) t->weight_left += t->weights[i];
    }
    t->weight_all = t->weight_left;
}

static void tell(const Tuning *t) {
    double done = t->weight_all > 0 ? 1 - t->weight_left / t->weight_all : 1;
    progress_tell(t->o->sink, (int64_t)(done * PERMILLE + 0.5), PERMILLE);
}

static Err search(Tuning *t, Stopwatch *watch, uint32_t i) {
    TimeNs start = now(), left = t->deadline - start;
    double share = t->weights[i] / t->weight_left;
    t->weight_left -= t->weights[i];
    if (left <= 0 || (t->o->stop != NULL && atomic_load(t->o->stop))) return ERR_OK;
    TimeNs  end = start + (TimeNs)((double)left * (share < 1 ? share : 1));
    Profile known = t->out[i];
    TRY(tune_search(&t->layers[i], t->o, watch, end, &known, t->arena, &t->out[i]));
    if (t->o->store != NULL && t->out[i].n_kept > 0)
        (void)store_put(t->o->store, t->layers[i].key, &t->out[i]);  // if not, then next time
    return ERR_OK;
}

static Err search_all(Tuning *t, Stopwatch *watch) {
    for (uint32_t i = 0; i < t->n; i++) {
        if (!t->wanted[i]) continue;
        TRY(search(t, watch, i));
        tell(t);
    }
    return ERR_OK;
}

// What a run goes through beyond L2 in all its layers, each done in the thriftiest way.
static size_t program_bytes(const TuneLayer *layers, uint32_t n) {
    size_t all = 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t least = SIZE_MAX;
        for (uint32_t j = 0; j < layers[i].n; j++) {
            Traffic t = layers[i].traffic(layers[i].self, &layers[i].candidates[j], 1);
            if (t.beyond_l2_bytes < least) least = t.beyond_l2_bytes;
        }
        if (layers[i].n > 0) all += least;
    }
    return all;
}

static size_t scratch_most(const TuneLayer *layers, uint32_t n) {
    size_t most = 0;
    for (uint32_t i = 0; i < n; i++)
        if (layers[i].scratch_bytes_max > most) most = layers[i].scratch_bytes_max;
    return most;
}

Err tune_layers(const TuneLayer *layers, uint32_t n, const TuneOptions *o, Arena *a, Profile *out) {
    CHECK(o->n_counts > 0 && o->counts[o->n_counts - 1] <= team_size(o->team));
    Tuning     t = {.layers = layers, .o = o, .n = n, .arena = a, .out = out};
    Stopwatch *watch = NULL;
    t.wanted = arena_new(a, bool, n);
    t.same = arena_new(a, uint32_t, n);
    t.deadline = now() + (TimeNs)(o->seconds * 1e9);
    t.weights = arena_new(a, double, n);
    weigh(&t);
    plan(&t);
    size_t l3 = 2 * o->pressure->l3_bytes, others = program_bytes(layers, n) > l3 ? l3 : 0;
    TRY(stopwatch_create(&watch, o->team, scratch_most(layers, n), o->l2_bytes * 3 / 2, others));
    team_pin(o->team);
    Err e = search_all(&t, watch);
    team_unpin(o->team);
    stopwatch_destroy(watch);
    TRY(e);
    for (uint32_t i = 0; i < n; i++) out[i] = out[t.same[i]];
    return ERR_OK;
}
