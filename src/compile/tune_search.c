#include "compile/tune_search.h"

#include <math.h>

#include "base/clock.h"
#include "compile/pareto.h"

enum {
    FIRST_SAMPLES = 1,
    MORE_SAMPLES = 2,
    ENOUGH = 12,    // clean samples, after which a minimum hardly moves
    PATIENCE = 40,  // samples that were not clean count for less, but not for nothing
    FASTEST = 8,    // so many are measured well, whatever their footprint
};

static const double hopeless = 2;  // times slower than the best: one look is enough

typedef struct Search {
    const TuneLayer   *layer;
    const TuneOptions *o;
    Stopwatch         *watch;
    TimeNs             deadline;
    Profile            p;
    uint32_t          *samples;  // [layer->n] of candidate i, in units of 1 / PATIENCE of enough
    uint32_t          *set;      // [layer->n] room for indices
} Search;

static TimeNs now(void) { return clock_now(clock_steady()); }

static bool is_over(const Search *s, TimeNs deadline) {
    return now() >= deadline || (s->o->stop != NULL && atomic_load(s->o->stop));
}

static void sample(Search *s, uint32_t i, uint32_t k, bool *clean) {
    Candidate    *c = &s->p.candidates[i];
    StopwatchWork w = {s->layer->run, s->layer->warm, s->layer->self, &c->version};
    TimeNs        took = stopwatch_run(s->watch, w, s->p.counts[k], clean);
    if (c->time_ns[k] == 0 || took < c->time_ns[k]) c->time_ns[k] = took;
}

// A sample on each number of cores.
static void round_of(Search *s, uint32_t i) {
    bool all_clean = true;
    for (uint32_t k = 0; k < s->p.n_counts; k++) {
        bool clean = false;
        sample(s, i, k, &clean);
        all_clean = all_clean && clean;
    }
    s->samples[i] += all_clean ? PATIENCE : ENOUGH;
}

static bool is_enough(const Search *s, uint32_t i) { return s->samples[i] >= ENOUGH * PATIENCE; }

static TimeNs fastest(const Search *s, uint32_t k) {
    TimeNs best = INT64_MAX;
    for (uint32_t i = 0; i < s->p.n; i++) {
        TimeNs t = s->p.candidates[i].time_ns[k];
        if (t > 0 && t < best) best = t;
    }
    return best;
}

static uint32_t find(const Search *s, const Version *v) {
    uint32_t i = 0;
    while (i < s->p.n && !version_same(&s->p.candidates[i].version, v)) i++;
    return i;
}

// What cannot be prepared is no candidate.
static void try_one(Search *s, const Version *v) {
    const TuneLayer *l = s->layer;
    uint32_t         most = s->p.counts[s->p.n_counts - 1], i = s->p.n;
    bool             clean;
    if (find(s, v) < s->p.n) return;
    if (l->prepare != NULL && l->prepare(l->self, v) != ERR_OK) return;
    s->p.candidates[i] = (Candidate){
        .version = *v, .tasks = l->tasks(l->self, v), .traffic = l->traffic(l->self, v, most)};
    s->samples[i] = 0;
    sample(s, i, 0, &clean);
    s->p.n++;
    if ((double)s->p.candidates[i].time_ns[0] > hopeless * (double)fastest(s, 0)) return;
    for (uint32_t r = 0; r < FIRST_SAMPLES; r++) round_of(s, i);
}

static bool first_pass(Search *s) {
    TimeNs begin = now(), end = begin + (s->deadline - begin) / 2;
    for (uint32_t i = 0; i < s->layer->n; i++) {
        if (is_over(s, end)) return false;
        try_one(s, &s->layer->candidates[i]);
    }
    return true;
}

// How many of the others are faster on some number of cores, at best.
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

static uint32_t add_fast(const Search *s, uint32_t n, uint32_t ranks) {
    for (uint32_t i = 0; i < s->p.n; i++) {
        if (rank(s, i) >= ranks) continue;
        uint32_t j = 0;
        while (j < n && s->set[j] != i) j++;
        if (j == n) s->set[n++] = i;
    }
    return n;
}

// One round for each that is in the running. False: all of them are known well enough.
static bool refine(Search *s, uint32_t ranks) {
    uint32_t n = add_fast(s, pareto_front(&s->p, s->set), ranks);
    bool     more = false;
    for (uint32_t j = 0; j < n && !is_over(s, s->deadline); j++) {
        if (is_enough(s, s->set[j])) continue;
        for (uint32_t r = 0; r < MORE_SAMPLES; r++) round_of(s, s->set[j]);
        more = true;
    }
    return more;
}

static void take_over(Search *s, const Profile *known) {
    for (uint32_t i = 0; i < known->n; i++) {
        const Candidate *c = &known->candidates[i];
        bool             ours = false;
        for (uint32_t j = 0; j < s->layer->n && !ours; j++)
            ours = version_same(&c->version, &s->layer->candidates[j]);
        if (!ours || s->p.n == s->layer->n || find(s, &c->version) < s->p.n) continue;
        if (s->layer->prepare != NULL && s->layer->prepare(s->layer->self, &c->version) != ERR_OK)
            continue;
        s->samples[s->p.n] = 0;
        s->p.candidates[s->p.n++] = *c;
    }
    s->p.spent_ns = known->spent_ns;
}

Err tune_search(const TuneLayer *l, const TuneOptions *o, Stopwatch *watch, TimeNs deadline,
                const Profile *known, Arena *a, Profile *out) {
    Search s = {.layer = l, .o = o, .watch = watch, .deadline = deadline};
    TimeNs begin = now();
    s.p.n_counts = o->n_counts;
    for (uint32_t k = 0; k < o->n_counts; k++) s.p.counts[k] = o->counts[k];
    s.p.candidates = arena_try_new(a, Candidate, l->n);
    s.samples = arena_try_new(a, uint32_t, l->n);
    s.set = arena_try_new(a, uint32_t, l->n);
    if (s.p.candidates == NULL || s.samples == NULL || s.set == NULL)
        return err_set(ERR_LIMIT, "no memory for %u versions of a layer", l->n);
    take_over(&s, known);
    bool all = first_pass(&s);
    for (uint32_t ranks = s.p.n / 2; !is_over(&s, deadline); ranks /= 2) {
        if (ranks < FASTEST) ranks = FASTEST;
        s.p.finished = !refine(&s, ranks);
        if (s.p.finished) break;
    }
    s.p.finished = s.p.finished && all;
    s.p.spent_ns += now() - begin;
    (void)pareto_keep(&s.p, o->pressure, s.set);
    *out = s.p;
    return ERR_OK;
}
