#include "compile/tune/tune.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/string_map.h"
#include "compile/tune/pareto.h"
#include "compile/tune/stopwatch.h"

static bool offers(const TuneLayer *l, const Version *v) {
    for (uint32_t i = 0; i < l->n; i++)
        if (version_same(v, &l->candidates[i])) return true;
    return false;
}

enum {
    FIRST_SAMPLES = 1,
    MORE_SAMPLES = 2,
    ENOUGH_CLEAN = 12,      // clean samples after which the minimum is stable
    ENOUGH_DISTURBED = 40,  // so many disturbed samples also suffice
    MIN_RANKS = 8,          // the fastest candidates are measured well whatever their footprint
    RETAKES = 3,            // of a sample that was disturbed, beside other work
};

static const double one_sample_factor = 2;  // times slower than the best: one sample is enough

typedef struct Search {
    const TuneLayer   *layer;
    const TuneOptions *o;
    Stopwatch         *watch;
    TimeNs             deadline;
    LayerProfile       p;
    uint32_t          *samples;  // [layer->n] weighted samples of candidate i
    uint32_t          *set;      // [layer->n] indexes of candidates
    bool               ended;    // it was told to end
} Search;

// The clock of the time budget: beside other work, waiting costs nothing.
static TimeNs budget_clock(const TuneOptions *o) {
    return o->pace != NULL ? stopwatch_cpu_time() : clock_monotonic_ns();
}

static bool is_told_to_end(const TuneOptions *o) {
    return o->stop != NULL && atomic_load(o->stop) == WORK_STOP;
}

static bool time_is_over(const Search *s, TimeNs deadline) {
    return s->ended || budget_clock(s->o) >= deadline || is_told_to_end(s->o);
}

static void sample_once(Search *s, uint32_t i, uint32_t k, bool *clean) {
    Candidate    *c = &s->p.candidates[i];
    StopwatchWork w = {s->layer->run, s->layer->warm, s->layer->self, &c->version};
    TimeNs        took = stopwatch_run(s->watch, w, s->p.counts[k], clean);
    if (c->time_ns[k] == 0 || took < c->time_ns[k]) c->time_ns[k] = took;
}

static void sample(Search *s, uint32_t i, uint32_t k, bool *clean) {
    const TunePace *pace = s->o->pace;
    if (pace == NULL) {
        sample_once(s, i, k, clean);
        return;
    }
    *clean = false;
    for (uint32_t r = 0; r < RETAKES && !*clean; r++) {
        s->ended = s->ended || is_told_to_end(s->o) || !pace->wait(pace->self);
        if (s->ended) return;
        sample_once(s, i, k, clean);
        bool disturbed = pace->disturbed(pace->self);
        *clean = *clean && !disturbed;
    }
}

// One sample on each core count.
static void sample_all_counts(Search *s, uint32_t i) {
    bool all_clean = true;
    for (uint32_t k = 0; k < s->p.n_counts; k++) {
        bool clean = false;
        sample(s, i, k, &clean);
        all_clean = all_clean && clean;
    }
    s->samples[i] += all_clean ? ENOUGH_DISTURBED : ENOUGH_CLEAN;
}

static bool has_enough_samples(const Search *s, uint32_t i) {
    return s->samples[i] >= ENOUGH_CLEAN * ENOUGH_DISTURBED;
}

static uint32_t find(const Search *s, const Version *v) {
    uint32_t i = 0;
    while (i < s->p.n && !version_same(&s->p.candidates[i].version, v)) i++;
    return i;
}

// Versions that cannot be prepared are skipped.
static void try_version(Search *s, const Version *v) {
    const TuneLayer *l = s->layer;
    uint32_t         most = s->p.counts[s->p.n_counts - 1], i = s->p.n;
    bool             clean;
    if (find(s, v) < s->p.n) return;
    if (l->prepare != NULL && l->prepare(l->self, v) != ERR_OK) return;
    s->p.candidates[i] = (Candidate){
        .version = *v, .tasks = l->tasks(l->self, v), .traffic = l->traffic(l->self, v, most)};
    s->samples[i] = 0;
    sample(s, i, 0, &clean);
    if (s->p.candidates[i].time_ns[0] == 0) return;
    s->p.n++;
    if ((double)s->p.candidates[i].time_ns[0] >
        one_sample_factor * (double)pareto_fastest(&s->p, 0))
        return;
    for (uint32_t r = 0; r < FIRST_SAMPLES; r++) sample_all_counts(s, i);
}

static bool first_pass(Search *s) {
    TimeNs begin = budget_clock(s->o), end = begin + (s->deadline - begin) / 2;
    for (uint32_t i = 0; i < s->layer->n; i++) {
        if (time_is_over(s, end)) return false;
        try_version(s, &s->layer->candidates[i]);
    }
    return true;
}

// Number of faster candidates, on the core count where it is lowest.
static uint32_t rank(const Search *s, uint32_t i) {
    uint32_t best = UINT32_MAX;
    for (uint32_t k = 0; k < s->p.n_counts; k++) {
        uint32_t faster = 0;
        TimeNs   t = s->p.candidates[i].time_ns[k];
        if (t == 0) return UINT32_MAX;
        for (uint32_t j = 0; j < s->p.n; j++) {
            TimeNs other = s->p.candidates[j].time_ns[k];
            faster += other > 0 && other < t;
        }
        if (faster < best) best = faster;
    }
    return best;
}

static uint32_t add_fastest(const Search *s, uint32_t n, uint32_t ranks) {
    for (uint32_t i = 0; i < s->p.n; i++) {
        if (rank(s, i) >= ranks) continue;
        uint32_t j = 0;
        while (j < n && s->set[j] != i) j++;
        if (j == n) s->set[n++] = i;
    }
    return n;
}

// Samples the Pareto front and the fastest `ranks` again. False: all have enough samples.
static bool refine(Search *s, uint32_t ranks) {
    uint32_t n = add_fastest(s, pareto_front(&s->p, s->set), ranks);
    bool     more = false;
    for (uint32_t j = 0; j < n && !time_is_over(s, s->deadline); j++) {
        if (has_enough_samples(s, s->set[j])) continue;
        for (uint32_t r = 0; r < MORE_SAMPLES; r++) sample_all_counts(s, s->set[j]);
        more = true;
    }
    return more;
}

static void reuse_known(Search *s, const LayerProfile *known) {
    for (uint32_t i = 0; i < known->n; i++) {
        const Candidate *c = &known->candidates[i];
        if (!offers(s->layer, &c->version)) continue;
        if (s->p.n == s->layer->n || find(s, &c->version) < s->p.n) continue;
        if (s->layer->prepare != NULL && s->layer->prepare(s->layer->self, &c->version) != ERR_OK)
            continue;
        s->samples[s->p.n] = 0;
        s->p.candidates[s->p.n++] = *c;
    }
    s->p.spent_ns = known->spent_ns;
}

// Tries each candidate briefly in at most half of the time, then samples fast and small ones
// repeatedly, in turns. `known`: result of an earlier search, or empty. *out lives in the arena; it
// has no candidates if there was no time, or if it was told to end beside other work.
static Err search_layer(const TuneLayer *l, const TuneOptions *o, Stopwatch *watch, TimeNs deadline,
                        const LayerProfile *known, Arena *a, LayerProfile *out) {
    Search s = {.layer = l, .o = o, .watch = watch, .deadline = deadline};
    TimeNs begin = budget_clock(o);
    s.p.n_counts = o->n_counts;
    for (uint32_t k = 0; k < o->n_counts; k++) s.p.counts[k] = o->counts[k];
    s.p.candidates = arena_try_new(a, Candidate, l->n);
    s.samples = arena_try_new(a, uint32_t, l->n);
    s.set = arena_try_new(a, uint32_t, l->n);
    if (s.p.candidates == NULL || s.samples == NULL || s.set == NULL)
        return err_set(ERR_LIMIT, "no memory for %u versions of a layer", l->n);
    reuse_known(&s, known);
    bool all = first_pass(&s);
    for (uint32_t ranks = s.p.n / 2; !time_is_over(&s, deadline); ranks /= 2) {
        if (ranks < MIN_RANKS) ranks = MIN_RANKS;
        s.p.finished = !refine(&s, ranks);
        if (s.p.finished) break;
    }
    s.p.finished = s.p.finished && all;
    s.p.spent_ns += budget_clock(o) - begin;
    if (o->pace != NULL && (s.ended || is_told_to_end(o))) {
        *out = (LayerProfile){0};
        return ERR_OK;
    }
    (void)pareto_keep(&s.p, o->pressure, s.set);
    *out = s.p;
    return ERR_OK;
}

enum { PERMILLE = 1000 };

typedef struct Tuning {
    const TuneLayer   *layers;
    const TuneOptions *o;
    uint32_t           n;
    Arena             *arena;
    LayerProfile      *out;
    bool              *wanted;                   // [n] to be tuned
    uint32_t          *same;                     // [n] first layer with the same key
    double            *weights;                  // [n] of first layers, including equal ones
    double             weight_left, weight_all;  // of layers to be tuned
    TimeNs             deadline;
} Tuning;

static bool same_counts(const LayerProfile *p, const TuneOptions *o) {
    return p->n_counts == o->n_counts &&
           memcmp(p->counts, o->counts, o->n_counts * sizeof *o->counts) == 0;
}

bool tune_known(const TuneLayer *l, const TuneOptions *o, Arena *a, LayerProfile *out) {
    LayerProfile p = {0};
    if (o->store == NULL || !profile_store_get(o->store, l->key, a, &p)) return false;
    if ((!same_counts(&p, o) && o->pace == NULL) || p.n_kept == 0) return false;
    for (uint32_t i = 0; i < p.n_kept; i++)
        if (!offers(l, &p.candidates[p.kept[i]].version)) return false;
    *out = p;
    return true;
}

// The time budget of a layer grows with its work and its number of occurrences, plus a tenth of the
// mean.
static void compute_weights(Tuning *t) {
    StringMap first;
    double    all = 0;
    string_map_init(&first, t->arena);
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t other = string_map_get(&first, t->layers[i].key);
        t->same[i] = other != STRING_MAP_NONE ? other : i;
        if (other == STRING_MAP_NONE) string_map_put(&first, t->layers[i].key, i);
        t->weights[t->same[i]] += t->layers[i].macs;
        all += t->layers[i].macs;
    }
    for (uint32_t i = 0; i < t->n; i++) t->weights[i] += 0.1 * all / t->n + 1;
}

// A search that ran out of time continues if the layer has more time now.
static void choose_layers(Tuning *t) {
    double all = 0;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->same[i] == i) all += t->weights[i];
    for (uint32_t i = 0; i < t->n; i++) {
        t->out[i] = (LayerProfile){0};
        if (t->same[i] != i || t->layers[i].n == 0) continue;
        bool   known = tune_known(&t->layers[i], t->o, t->arena, &t->out[i]);
        double share_ns = 1e9 * t->o->seconds * t->weights[i] / all;
        bool   cut_short = !t->out[i].finished && share_ns > (double)t->out[i].spent_ns;
        t->wanted[i] = !known || (cut_short && t->o->pace == NULL);
        if (t->wanted[i]) t->weight_left += t->weights[i];
    }
    t->weight_all = t->weight_left;
}

static void report_progress(const Tuning *t) {
    double done = t->weight_all > 0 ? 1 - t->weight_left / t->weight_all : 1;
    progress_report(t->o->sink, (int64_t)(done * PERMILLE + 0.5), PERMILLE);
}

static Err search(Tuning *t, Stopwatch *watch, uint32_t i) {
    TimeNs start = budget_clock(t->o), left = t->deadline - start;
    double share = t->weights[i] / t->weight_left;
    t->weight_left -= t->weights[i];
    if (left <= 0 || is_told_to_end(t->o)) return ERR_OK;
    TimeNs       end = start + (TimeNs)((double)left * (share < 1 ? share : 1));
    LayerProfile known = t->out[i];
    TRY(search_layer(&t->layers[i], t->o, watch, end, &known, t->arena, &t->out[i]));
    if (t->o->store != NULL && t->out[i].n_kept > 0)
        (void)profile_store_put(t->o->store, t->layers[i].key,
                                &t->out[i]);  // on failure the layer is tuned again next time
    return ERR_OK;
}

static Err search_all(Tuning *t, Stopwatch *watch) {
    for (uint32_t i = 0; i < t->n; i++) {
        if (!t->wanted[i]) continue;
        TRY(search(t, watch, i));
        report_progress(t);
    }
    return ERR_OK;
}

// Bytes beyond L2 of all layers of a run, each in its version with least traffic.
static size_t bytes_beyond_l2(const TuneLayer *layers, uint32_t n) {
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

static size_t max_scratch(const TuneLayer *layers, uint32_t n) {
    size_t most = 0;
    for (uint32_t i = 0; i < n; i++)
        if (layers[i].scratch_bytes_max > most) most = layers[i].scratch_bytes_max;
    return most;
}

Err tune_layers(const TuneLayer *layers, uint32_t n, const TuneOptions *o, Arena *a,
                LayerProfile *out) {
    CHECK(o->n_counts > 0 && o->counts[o->n_counts - 1] <= team_size(o->team));
    Tuning     t = {.layers = layers, .o = o, .n = n, .arena = a, .out = out};
    Stopwatch *watch = NULL;
    t.wanted = arena_new(a, bool, n);
    t.same = arena_new(a, uint32_t, n);
    t.deadline = budget_clock(o) + (TimeNs)(o->seconds * 1e9);
    t.weights = arena_new(a, double, n);
    compute_weights(&t);
    choose_layers(&t);
    size_t l3 = 2 * o->pressure->l3_bytes, others = bytes_beyond_l2(layers, n) > l3 ? l3 : 0;
    TRY(stopwatch_create(&watch, o->team, max_scratch(layers, n), o->l2_bytes * 3 / 2, others));
    if (o->pace == NULL) team_pin(o->team);
    Err e = search_all(&t, watch);
    if (o->pace == NULL) team_unpin(o->team);
    stopwatch_destroy(watch);
    TRY(e);
    for (uint32_t i = 0; i < n; i++) out[i] = out[t.same[i]];
    return ERR_OK;
}
