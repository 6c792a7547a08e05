#include "train/chip_evaluator.h"

#include <math.h>

const TrainDefaults chip_train_defaults = {
    .plan = {.episodes = 24,
             .updates = 150,
             .es = {.pairs = 12, .runs = 12, .sigma = 0.06f, .step = 0.1f, .momentum = 0.8f},
             .check = 4,
             .tolerance = 0.006,
             .beat_rule = true},
    .parts = {2, 1, 1},
    .rest_first = true,
};

typedef struct Grid {  // all runs of one evaluation
    const ChipEvaluator   *e;
    const ChipTrainPolicy *policies;
    double                *sla;  // [policy][cell][trace]
} Grid;

static Err run_one(void *self, uint32_t i, Arena *a) {
    Grid                *g = self;
    const ChipEvaluator *e = g->e;
    uint32_t             each = e->n_cells * e->traces;
    ChipTrainRun x = chip_curriculum_cell(e->curriculum, i % each / e->traces, i % e->traces);
    ChipResult   result;
    return chip_curriculum_run(&x, &g->policies[i / each], a, &result, &g->sla[i]);
}

static Err run_grid(const ChipEvaluator *e, const ChipTrainPolicy *policies, uint32_t n,
                    double *sla) {
    Grid g = {e, policies, sla};
    return train_parallel(run_one, &g, n * e->n_cells * e->traces, e->evaluator.threads);
}

static double mean_of(const double *x, uint32_t n) {
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += x[i];
    return n > 0 ? sum / n : 0;
}

static const void *default_settings(const ChipPolicy *p, Arena *a) {
    if (p->settings_size == 0) return NULL;
    void    *values = arena_alloc(a, 1, p->settings_size, 16);
    Settings s = {p->rows, p->n_rows, values, a};
    settings_default(&s);
    return values;
}

static void note_baseline(ChipEvaluator *e, const ChipPolicy *p, const double *sla) {
    double mean = mean_of(sla, e->n_cells * e->traces);
    if (e->baseline == NULL || mean > e->baseline_mean) {
        e->baseline = p->name;
        e->baseline_mean = mean;
    }
    for (uint32_t c = 0; c < e->n_cells; c++)
        e->best[c] = fmax(e->best[c], mean_of(sla + (size_t)c * e->traces, e->traces));
}

static Err run_baselines(ChipEvaluator *e, Arena *a) {
    uint32_t n = 0;
    e->n_cells = chip_curriculum_cells(e->curriculum);
    e->best = arena_new(a, double, e->n_cells);
    while (e->baselines[n] != NULL) n++;
    size_t           mark = a->used, each = (size_t)e->n_cells * e->traces;
    ChipTrainPolicy *all = arena_new(a, ChipTrainPolicy, n);
    double          *sla = arena_new(a, double, n *each);
    for (uint32_t i = 0; i < n; i++)
        all[i] = (ChipTrainPolicy){e->baselines[i], default_settings(e->baselines[i], a), NULL};
    TRY(run_grid(e, all, n, sla));
    for (uint32_t i = 0; i < n; i++) note_baseline(e, e->baselines[i], sla + i * each);
    e->best_mean = mean_of(e->best, e->n_cells);
    arena_rewind(a, mark);
    return ERR_OK;
}

// A loss against the best baseline of a cell counts on top of the mean.
static Score score_of(const ChipEvaluator *e, const double *sla) {
    double mean = mean_of(sla, e->n_cells * e->traces), worst = 1, below = 0;
    for (uint32_t c = 0; c < e->n_cells; c++) {
        double gain = mean_of(sla + (size_t)c * e->traces, e->traces) - e->best[c];
        if (gain < worst) worst = gain;
        if (gain < 0) below += gain;
    }
    return (Score){.objective = mean + below / e->n_cells,
                   .values = {[CHIP_SCORE_MEAN] = mean, [CHIP_SCORE_WORST] = worst}};
}

static Err evaluate(const Evaluator *base, const Trainee *t, const float *params, Arena *scratch,
                    Score *out) {
    const ChipEvaluator *e = base->self;
    size_t               mark = scratch->used;
    ChipTrainPolicy      own = {e->policy, t->settings, t->loaded(t, params, scratch)};
    double              *sla = arena_new(scratch, double, (size_t)e->n_cells * e->traces);
    Err                  error = run_grid(e, &own, 1, sla);
    if (error == ERR_OK) *out = score_of(e, sla);
    arena_rewind(scratch, mark);
    return error;
}

static Err fitness(const Evaluator *base, const Trainee *t, const float *params, uint64_t seed,
                   uint64_t i, Arena *a, double *out) {
    const ChipEvaluator *e = base->self;
    ChipTrainRun         x = chip_curriculum_draw(e->curriculum, seed, i);
    ChipTrainPolicy      own = {e->policy, t->settings, t->loaded(t, params, a)};
    ChipResult           result;
    return chip_curriculum_run(&x, &own, a, &result, out);
}

static Err open(Evaluator *base, const Trainee *t, Arena *a, Score *rule) {
    TRY(run_baselines(base->self, a));
    return evaluate(base, t, NULL, a, rule);
}

void chip_evaluator_init(ChipEvaluator *e) {
    e->evaluator = (Evaluator){.names = {[CHIP_SCORE_MEAN] = "mean", [CHIP_SCORE_WORST] = "worst"},
                               .facts = "",
                               .open = open,
                               .evaluate = evaluate,
                               .fitness = fitness,
                               .self = e};
}
