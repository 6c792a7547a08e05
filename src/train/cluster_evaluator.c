#include "train/cluster_evaluator.h"

#include <math.h>

const TrainDefaults cluster_train_defaults = {
    .plan = {.episodes = 16,
             .updates = 100,
             .es = {.pairs = 12,
                    .runs = 32,
                    .sigma = 0.05f,
                    .step = 0.12f,
                    .momentum = 0.8f,
                    .clip = 0.04f},
             .check = 4,
             .tolerance = 0.01},
    .parts = {1, 1, 4},
};

typedef struct GridPolicy {
    const ClusterPolicy *policy;
    const void          *settings, *loaded;  // loaded NULL: what the settings name
    bool                 optional;           // it may not support the jobs of a cell
} GridPolicy;

typedef struct Grid {  // all runs of one evaluation
    const ClusterEvaluator *e;
    const GridPolicy       *policies;
    ClusterTrainResult     *results;  // [policy][cell][trace]
} Grid;

static Err simulate(const ClusterTrainRun *x, const GridPolicy *c, Arena *a,
                    ClusterTrainResult *out) {
    ClusterRun    run = {.policy = c->policy, .settings = c->settings, .loaded = c->loaded};
    ClusterResult result;
    return cluster_curriculum_run(x, &run, a, &result, out);
}

static Err run_one(void *self, uint32_t i, Arena *a) {
    Grid                   *g = self;
    const ClusterEvaluator *e = g->e;
    uint32_t                each = e->n_cells * e->traces;
    const GridPolicy       *c = &g->policies[i / each];
    ClusterTrainRun x = cluster_curriculum_cell(e->curriculum, i % each / e->traces, i % e->traces);
    Err             error = simulate(&x, c, a, &g->results[i]);
    if (error == ERR_OK || !c->optional) return error;
    g->results[i] = (ClusterTrainResult){NAN, NAN};
    return ERR_OK;
}

static Err run_grid(const ClusterEvaluator *e, const GridPolicy *policies, uint32_t n,
                    ClusterTrainResult *results) {
    Grid g = {e, policies, results};
    return train_parallel(run_one, &g, n * e->n_cells * e->traces, e->evaluator.threads);
}

static const double CLIP = 0.1;

static double log_ratio(double a, double b) { return log((a + 1e-9) / (b + 1e-9)); }

static double clipped(double x) { return fmin(fmax(x, -CLIP), CLIP); }

typedef struct CellScore {  // means over a cell's runs
    double jct, makespan;   // log ratios to the rule
    double clipped;         // weighed sum of both, each clipped on each run
} CellScore;

static CellScore compare(const ClusterEvaluator *e, const ClusterTrainResult *results,
                         uint32_t cell) {
    const ClusterTrainResult *x = results + (size_t)cell * e->traces,
                             *rule = e->rule + (size_t)cell * e->traces;
    CellScore s = {0};
    for (uint32_t k = 0; k < e->traces; k++) {
        double jct = log_ratio(x[k].jct_s, rule[k].jct_s);
        double makespan = log_ratio(x[k].makespan_s, rule[k].makespan_s);
        s.jct += jct / e->traces;
        s.makespan += makespan / e->traces;
        s.clipped += (clipped(jct) + e->makespan_weight * clipped(makespan)) / e->traces;
    }
    return s;
}

static void note_baseline(ClusterEvaluator *e, ClusterBaseline *b,
                          const ClusterTrainResult *results) {
    double jct = 0, makespan = 0;
    b->cells = 0;
    for (uint32_t c = 0; c < e->n_cells; c++) {
        CellScore s = compare(e, results, c);
        if (isnan(s.jct)) continue;
        jct += s.jct;
        makespan += s.makespan;
        e->best[c] = fmin(e->best[c], s.jct);
        b->cells++;
    }
    b->jct = b->cells > 0 ? exp(jct / b->cells) : NAN;
    b->makespan = b->cells > 0 ? exp(makespan / b->cells) : NAN;
}

// A single job can change a run by more than the parameters do: hence the clip in the objective.
static Score score_of(const ClusterEvaluator *e, const ClusterTrainResult *results) {
    double jct = 0, makespan = 0, worst = -INFINITY, sum = 0;
    for (uint32_t c = 0; c < e->n_cells; c++) {
        CellScore s = compare(e, results, c);
        jct += s.jct / e->n_cells;
        makespan += s.makespan / e->n_cells;
        worst = fmax(worst, s.jct - e->best[c]);
        sum += s.clipped / e->n_cells;
    }
    return (Score){.objective = -sum,
                   .values = {[CLUSTER_SCORE_JCT] = jct,
                              [CLUSTER_SCORE_MAKESPAN] = makespan,
                              [CLUSTER_SCORE_WORST] = worst}};
}

static GridPolicy trained(const ClusterEvaluator *e, const Trainee *t, const float *params,
                          Arena *a) {
    return (GridPolicy){e->policy, t->settings, t->loaded(t, params, a), false};
}

static Err open(Evaluator *base, const Trainee *t, Arena *a, Score *rule) {
    ClusterEvaluator *e = base->self;
    e->n_cells = cluster_curriculum_cells(e->curriculum);
    size_t each = (size_t)e->n_cells * e->traces;
    e->rule = arena_new(a, ClusterTrainResult, each);
    e->best = arena_new(a, double, e->n_cells);
    size_t              mark = a->used;
    uint32_t            n = e->n_baselines + 1;
    GridPolicy         *all = arena_new(a, GridPolicy, n);
    ClusterTrainResult *results = arena_new(a, ClusterTrainResult, n * each);
    all[0] = trained(e, t, NULL, a);
    for (uint32_t i = 1; i < n; i++)
        all[i] = (GridPolicy){e->baselines[i - 1].policy, e->baselines[i - 1].settings, NULL, true};
    TRY(run_grid(e, all, n, results));
    for (size_t i = 0; i < each; i++) e->rule[i] = results[i];
    for (uint32_t c = 0; c < e->n_cells; c++) e->best[c] = INFINITY;
    for (uint32_t i = 1; i < n; i++) note_baseline(e, &e->baselines[i - 1], results + i * each);
    *rule = score_of(e, e->rule);
    arena_rewind(a, mark);
    return ERR_OK;
}

static Err evaluate(const Evaluator *base, const Trainee *t, const float *params, Arena *scratch,
                    Score *out) {
    const ClusterEvaluator *e = base->self;
    size_t                  mark = scratch->used, each = (size_t)e->n_cells * e->traces;
    GridPolicy              own = trained(e, t, params, scratch);
    ClusterTrainResult     *results = arena_new(scratch, ClusterTrainResult, each);
    Err                     error = run_grid(e, &own, 1, results);
    if (error == ERR_OK) *out = score_of(e, results);
    arena_rewind(scratch, mark);
    return error;
}

static Err fitness(const Evaluator *base, const Trainee *t, const float *params, uint64_t seed,
                   uint64_t i, Arena *a, double *out) {
    const ClusterEvaluator *e = base->self;
    ClusterTrainRun         x = cluster_curriculum_draw(e->curriculum, seed, i);
    GridPolicy              own = trained(e, t, params, a);
    ClusterTrainResult      r;
    TRY(simulate(&x, &own, a, &r));
    *out = -(log(fmax(r.jct_s, 1)) + e->makespan_weight * log(fmax(r.makespan_s, 1)));
    return ERR_OK;
}

void cluster_evaluator_init(ClusterEvaluator *e, Arena *a) {
    e->evaluator = (Evaluator){
        .names = {[CLUSTER_SCORE_JCT] = "jct",
                  [CLUSTER_SCORE_MAKESPAN] = "makespan",
                  [CLUSTER_SCORE_WORST] = "worst"},
        .facts = arena_printf(a, "scenarios=%u\njobs=%u\n", e->curriculum->n, e->curriculum->jobs),
        .open = open,
        .evaluate = evaluate,
        .fitness = fitness,
        .self = e};
}
