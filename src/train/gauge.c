#include "train/gauge.h"

#include <math.h>

#include "policy/policies.h"

typedef struct Rival {  // a policy with its usual settings
    const ChipPolicy *policy;
    void             *settings;
    const void       *loaded;
} Rival;

typedef struct Sheet {  // of all runs of one gauging
    const Gauge *gauge;
    const Rival *rivals;
    double      *sla;  // [rival][cell][trace]
} Sheet;

static Err one(void *self, uint32_t i, Arena *a) {
    Sheet       *s = self;
    const Gauge *g = s->gauge;
    uint32_t     each = g->n_cells * g->traces;
    const Rival *r = &s->rivals[i / each];
    CourseRun    x = course_cell(g->course, i % each / g->traces, i % g->traces);
    ChipRun      run;
    ChipResult   result;
    TRY(course_run(&x, r->policy, r->settings, r->loaded, a, &run, &result));
    s->sla[i] = course_sla(&run, &result);
    return ERR_OK;
}

static double mean_of(const double *x, uint32_t n) {
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += x[i];
    return n > 0 ? sum / n : 0;
}

static void set_usual(Rival *r, Arena *a) {
    if (r->policy->settings_size == 0) return;
    r->settings = arena_alloc(a, 1, r->policy->settings_size, 16);
    Settings s = {r->policy->rows, r->policy->n_rows, r->settings, a};
    settings_default(&s);
}

static void note_rival(Gauge *g, const Rival *r, const double *sla) {
    double mean = mean_of(sla, g->n_cells * g->traces);
    if (g->rival == NULL || mean > g->rival_mean) {
        g->rival = r->policy->name;
        g->rival_mean = mean;
    }
    for (uint32_t c = 0; c < g->n_cells; c++)
        g->best[c] = fmax(g->best[c], mean_of(sla + (size_t)c * g->traces, g->traces));
}

Err gauge_open(Gauge *g, const ChipPolicy *const *rivals, Arena *a) {
    uint32_t n = 0;
    g->n_cells = course_cells(g->course);
    g->best = arena_new(a, double, g->n_cells);
    while (rivals[n] != NULL) n++;
    size_t mark = a->used, each = (size_t)g->n_cells * g->traces;
    Rival *all = arena_new(a, Rival, n);
    Sheet  s = {g, all, arena_new(a, double, n *each)};
    for (uint32_t i = 0; i < n; i++) {
        all[i].policy = rivals[i];
        set_usual(&all[i], a);
    }
    TRY(runs_each(g->runs, (uint32_t)(n * each), one, &s));
    for (uint32_t i = 0; i < n; i++) note_rival(g, &all[i], s.sla + i * each);
    g->best_mean = mean_of(g->best, g->n_cells);
    arena_rewind(a, mark);
    return ERR_OK;
}

// Worse than others in a cell weighs more than a little better on average.
Err gauge_weights(const Gauge *g, const float *w, Arena *scratch, GaugeMark *out) {
    size_t       mark = scratch->used;
    RelmasLoaded loaded = {.actor = g->actor, .w = w};
    Rival        own = {&chip_policy_relmas, (void *)(uintptr_t)g->settings, &loaded};
    Sheet        s = {g, &own, arena_new(scratch, double, (size_t)g->n_cells * g->traces)};
    Err          e = runs_each(g->runs, g->n_cells * g->traces, one, &s);
    GaugeMark    m = {.mean = mean_of(s.sla, g->n_cells * g->traces), .worst = 1};
    double       below = 0;
    for (uint32_t c = 0; c < g->n_cells; c++) {
        double gain = mean_of(s.sla + (size_t)c * g->traces, g->traces) - g->best[c];
        if (gain < m.worst) m.worst = gain;
        if (gain < 0) below += gain;
    }
    m.score = m.mean + below / g->n_cells;
    arena_rewind(scratch, mark);
    TRY(e);
    *out = m;
    return ERR_OK;
}
