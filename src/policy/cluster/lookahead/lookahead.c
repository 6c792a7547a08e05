// lookahead: simulates other policies from the present on and follows the best one
//
// Every `every_s` seconds while jobs wait, each variant of lookahead_variant.def (maifs by rules
// with several settings, and other policies) is simulated until all present jobs have ended, and
// the one with the least cost decides until the next time. What is simulated is made from the view:
// the believed work left of each job, or work drawn from the spread of that belief, and the
// believed profiles. No policy looks ahead in it, and no further job arrives.
//
// The variant in use is simulated first, then the others in turn. `budget` bounds the simulated
// decisions times servers; a variant that exceeds the rest is not considered, and the next time
// begins with it. It counts decisions, not time, so that runs repeat. Where not even the variant in
// use can be simulated, the first one decides, and the time to the next attempt doubles.
//
// A variant that takes over begins with a fresh state: the contract lets a policy find tasks that
// another one started.
#include <math.h>
#include <string.h>

#include "base/carve.h"
#include "base/err.h"
#include "contract/cluster_forecast.h"
#include "policy/policies.h"

#define SETTINGS(X)                                                                                \
    X(objective, string, "weighted", 3, 8, "jct, makespan, or weighted: both")                     \
    X(makespan_weight, double, 0.5, 0, 1, "of the makespan, if weighted")                          \
    X(every_s, int, 300, 1, 1000000, "seconds between comparisons of the variants")                \
    X(budget, int, 64000, 1, 1000000000, "simulated decisions x servers in a comparison, at most") \
    X(draws, int, 0, 0, 64, "of uncertain durations; 0: their expected values")                    \
    X(gain, double, 0, 0, 1, "part of the cost by which another variant must be better")

typedef struct LookaheadSettings {
    SETTINGS(SETTING_FIELD)
} LookaheadSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(LookaheadSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

static const struct VariantRow {
    const ClusterPolicy *policy;
    const char          *settings;
} variants[] = {
#define X(name, settings) {&cluster_policy_##name, settings},
#include "policy/cluster/lookahead/lookahead_variant.def"
#undef X
};

enum {
    VARIANTS = sizeof variants / sizeof *variants,
    SETTINGS_MOST = 1024,  // bytes of a variant's settings
    MOST_DOUBLED = 6,      // times that the time between comparisons doubles
};

typedef struct LoadedVariant {
    const void *settings, *loaded;
} LoadedVariant;

typedef struct Lookahead {
    const ClusterSetup      *setup;
    const LookaheadSettings *cfg;
    const LoadedVariant     *variants;  // [VARIANTS]
    void                    *state;     // of the variant in use
    TimeNs                  *work;      // [n_slots] of the forecast
    double                   makespan_weight;
    uint32_t                 now;       // the variant in use
    uint32_t                 next;      // the first other one to simulate
    TimeNs                   due;       // of the next comparison
    uint32_t                 failures;  // comparisons in a row beyond the budget
} Lookahead;

typedef struct ForecastCost {  // of a variant, summed over draws
    bool   complete;
    double alive_s, makespan_s;
} ForecastCost;

static Err load_variant(const ClusterSetup *s, const struct VariantRow *row, Arena *a,
                        LoadedVariant *out) {
    const ClusterPolicy *p = row->policy;
    void                *values = arena_alloc(a, 1, p->settings_size + 1, 64);
    Settings             set = {p->rows, p->n_rows, values, a};
    if (p->n_rows > 0) settings_default(&set);
    for (const char *at = row->settings; *at != '\0';) {
        size_t n = strcspn(at, " ");
        TRY(settings_set(&set, arena_printf(a, "%.*s", (int)n, at)));
        at += n + (at[n] != '\0');
    }
    *out = (LoadedVariant){.settings = values};
    return p->load != NULL ? p->load(s, values, a, &out->loaded) : ERR_OK;
}

static Err load(const ClusterSetup *s, const void *settings, Arena *a, const void **loaded) {
    const LookaheadSettings *cfg = settings;
    const char              *word = cfg->objective;
    LoadedVariant           *all = arena_new(a, LoadedVariant, VARIANTS);
    *loaded = all;
    if (strcmp(word, "jct") != 0 && strcmp(word, "makespan") != 0 && strcmp(word, "weighted") != 0)
        return err_set(ERR_ARG, "objective=%.40s: there are jct, makespan and weighted", word);
    for (uint32_t i = 0; i < VARIANTS; i++) TRY(load_variant(s, &variants[i], a, &all[i]));
    return ERR_OK;
}

static size_t state_of(const ClusterSetup *s, const ClusterPolicy *p) {
    _Alignas(64) char values[SETTINGS_MOST];
    Settings          set = {p->rows, p->n_rows, values, NULL};
    CHECK(p->settings_size <= sizeof values);
    if (p->n_rows > 0) settings_default(&set);
    return p->state_size != NULL ? p->state_size(s, values) : 0;
}

static size_t largest_state(const ClusterSetup *s) {
    size_t most = 0;
    for (uint32_t i = 0; i < VARIANTS; i++) {
        size_t bytes = state_of(s, variants[i].policy);
        if (bytes > most) most = bytes;
    }
    return most;
}

static Lookahead *carve_all(const ClusterSetup *s, Carve *from) {
    Lookahead none = {0}, *x = carve(from, Lookahead, 1), *to = x == NULL ? &none : x;
    to->work = carve(from, TimeNs, s->n_slots);
    to->state = carve_bytes(from, largest_state(s));
    return x;
}

CARVE_STATE_SIZE(ClusterSetup)

static void follow(Lookahead *x, uint32_t variant) {
    const ClusterPolicy *p = variants[variant].policy;
    const LoadedVariant *v = &x->variants[variant];
    x->now = variant;
    if (p->init != NULL) p->init(x->state, x->setup, v->settings, v->loaded);
}

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    Carve      c = {.base = state};
    Lookahead *x = carve_all(s, &c);
    x->setup = s;
    x->cfg = settings;
    x->variants = loaded;
    x->makespan_weight = x->cfg->makespan_weight;
    if (strcmp(x->cfg->objective, "jct") == 0) x->makespan_weight = 0;
    if (strcmp(x->cfg->objective, "makespan") == 0) x->makespan_weight = 1;
    follow(x, 0);
}

static void change_to(Lookahead *x, uint32_t variant) {
    if (variant == x->now) return;
    memset(x->state, 0, state_of(x->setup, variants[variant].policy));
    follow(x, variant);
}

// Work of a task in the forecast: as believed, or drawn from the belief. A draw of a task is the
// same quantile at every time.
static TimeNs work_of(const Lookahead *x, const ClusterView *v, const ClusterTask *t,
                      uint32_t draw) {
    TimeNs ns = t->state == CLUSTER_RUNNING ? v->now - t->mark : 0;
    TimeNs owed = t->owed > ns ? t->owed - ns : 0, left = cluster_left(v, t) - owed;
    double sd = t->spread.left_sd, mean = t->spread.mean_s * (double)CLUSTER_SECOND;
    if (t->left < 0) return cluster_held(v, t) + CLUSTER_SECOND;
    if (!(sd > 0)) return left;
    if (draw == 0) return (TimeNs)fmin(fmax(mean, (double)left), 1e18);
    Rng r = rng_fork(rng_fork(x->setup->rng, draw), t->job.id);
    return (TimeNs)fmin((double)left * exp(sd * rng_normal(&r)), 1e18);
}

static void set_work(Lookahead *x, const ClusterView *v, uint32_t draw) {
    for (uint32_t i = 0; i < v->n_waiting; i++)
        x->work[i] = work_of(x, v, &v->tasks[v->waiting[i]], draw);
    for (uint32_t i = 0; i < v->n_running; i++)
        x->work[v->n_waiting + i] = work_of(x, v, &v->tasks[v->running[i]], draw);
}

static ForecastCost cost_of(Lookahead *x, const ClusterView *v, uint32_t variant,
                            uint64_t *budget) {
    const ClusterForecast *f = x->setup->forecast;
    ForecastCost           sum = {0};
    uint32_t               from = x->cfg->draws > 0 ? 1 : 0;
    for (uint32_t draw = from; draw <= (uint32_t)x->cfg->draws; draw++) {
        ClusterForecastRun run = {.policy = variants[variant].policy,
                                  .settings = x->variants[variant].settings,
                                  .loaded = x->variants[variant].loaded,
                                  .work = x->work,
                                  .most_decisions = *budget};
        if (*budget == 0) return sum;
        set_work(x, v, draw);
        ClusterOutlook o = f->simulate(f, v, &run);
        *budget -= o.decisions < *budget ? o.decisions : *budget;
        if (!o.drained) return sum;
        sum.alive_s += o.alive_s;
        sum.makespan_s += o.makespan_s;
    }
    sum.complete = true;
    return sum;
}

// Relative to another one.
static double relative(const Lookahead *x, const ForecastCost *c, const ForecastCost *to) {
    double m = x->makespan_weight;
    double alive = to->alive_s > 0 ? c->alive_s / to->alive_s : 1;
    double makespan = to->makespan_s > 0 ? c->makespan_s / to->makespan_s : 1;
    return (1 - m) * alive + m * makespan;
}

static uint32_t best_variant(Lookahead *x, const ClusterView *v) {
    uint64_t     budget = (uint64_t)x->cfg->budget / x->setup->n_servers;
    ForecastCost stay = cost_of(x, v, x->now, &budget);
    uint32_t     best = x->now, from = x->next;
    double       least = 1 - x->cfg->gain;
    x->failures = stay.complete ? 0 : x->failures + 1;
    if (!stay.complete) return 0;
    for (uint32_t k = 0; k < VARIANTS; k++) {
        uint32_t i = (from + k) % VARIANTS;
        if (i == x->now) continue;
        ForecastCost c = cost_of(x, v, i, &budget);
        x->next = i;
        if (!c.complete) break;
        double relation = relative(x, &c, &stay);
        if (relation >= least) continue;
        least = relation;
        best = i;
    }
    return best;
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    Lookahead *x = state;
    bool       able = x->setup->forecast != NULL && v->n_waiting > 0;
    TimeNs     every = (TimeNs)x->cfg->every_s * CLUSTER_SECOND;
    if (able && v->now >= x->due) {
        change_to(x, best_variant(x, v));
        x->due = v->now + (every << (x->failures < MOST_DOUBLED ? x->failures : MOST_DOUBLED));
    }
    uint32_t n = variants[x->now].policy->decide(x->state, v, out, max);
    if (able && n < max) out[n++] = (ClusterAction){.verb = CLUSTER_WAKE, .at = x->due};
    return n;
}

const ClusterPolicy cluster_policy_lookahead = {
    .name = "lookahead",
    .about = "simulates variants of maifs and other policies from beliefs, and follows the best",
    .knows = CLUSTER_ORACLE,
    .preempts = true,
    .forecasts = true,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(LookaheadSettings),
    .load = load,
    .state_size = size,
    .init = init,
    .decide = decide,
};
