#include "train/cluster_gauge.h"

#include <math.h>

typedef struct Sheet {  // of all runs of one gauging
    const ClusterGauge  *gauge;
    const ClusterPlayer *players;
    ClusterCourseEnd    *ends;  // [player][cell][trace]
    uint32_t             own;   // of the players, those that must not fail
} Sheet;

static Err one(void *self, uint32_t i, Arena *a) {
    Sheet              *s = self;
    const ClusterGauge *g = s->gauge;
    uint32_t            each = g->n_cells * g->traces;
    ClusterCourseRun    x = cluster_course_cell(g->course, i % each / g->traces, i % g->traces);
    Err                 e = cluster_course_run(&x, &s->players[i / each], a, &s->ends[i]);
    if (e == ERR_OK || i / each < s->own) return e;
    s->ends[i] = (ClusterCourseEnd){NAN, NAN};  // a rival that is not for such jobs
    return ERR_OK;
}

static const double CLIP = 0.1;

static double over(double a, double b) { return log((a + 1e-9) / (b + 1e-9)); }

static double clipped(double x) { return fmin(fmax(x, -CLIP), CLIP); }

// Means over a cell's runs, of completion time and makespan; what is clipped goes into `clear`.
static void compare(const ClusterGauge *g, const ClusterCourseEnd *ends, uint32_t cell, double *jct,
                    double *makespan, double *clear) {
    const ClusterCourseEnd *x = ends + (size_t)cell * g->traces,
                           *rule = g->rule + (size_t)cell * g->traces;
    *jct = *makespan = *clear = 0;
    for (uint32_t k = 0; k < g->traces; k++) {
        double j = over(x[k].jct_s, rule[k].jct_s), m = over(x[k].makespan_s, rule[k].makespan_s);
        *jct += j / g->traces;
        *makespan += m / g->traces;
        *clear += (clipped(j) + g->weight * clipped(m)) / g->traces;
    }
}

static void note_rival(ClusterGauge *g, ClusterRival *r, const ClusterCourseEnd *ends) {
    double jct = 0, makespan = 0;
    r->cells = 0;
    for (uint32_t c = 0; c < g->n_cells; c++) {
        double j, m, clear;
        compare(g, ends, c, &j, &m, &clear);
        if (isnan(j)) continue;
        jct += j;
        makespan += m;
        g->best[c] = fmin(g->best[c], j);
        r->cells++;
    }
    r->jct = r->cells > 0 ? exp(jct / r->cells) : NAN;
    r->makespan = r->cells > 0 ? exp(makespan / r->cells) : NAN;
}

// The luck of single jobs makes single runs differ by more than weights do: hence the clip.
static ClusterMark mark_of(const ClusterGauge *g, const ClusterCourseEnd *ends) {
    ClusterMark m = {.worst = -INFINITY};
    double      sum = 0;
    for (uint32_t c = 0; c < g->n_cells; c++) {
        double j, s, clear;
        compare(g, ends, c, &j, &s, &clear);
        m.jct += j / g->n_cells;
        m.makespan += s / g->n_cells;
        m.worst = fmax(m.worst, j - g->best[c]);
        sum += clear / g->n_cells;
    }
    m.score = -sum;
    return m;
}

Err cluster_gauge_open(ClusterGauge *g, const Pupil *p, Arena *a, ClusterMark *rule) {
    g->n_cells = cluster_course_cells(g->course);
    size_t each = (size_t)g->n_cells * g->traces;
    g->rule = arena_new(a, ClusterCourseEnd, each);
    g->best = arena_new(a, double, g->n_cells);
    size_t         mark = a->used;
    ClusterPlayer *players = arena_new(a, ClusterPlayer, (size_t)g->n_rivals + 1);
    Sheet          s = {g, players, arena_new(a, ClusterCourseEnd, (g->n_rivals + 1) * each), 1};
    players[0] = (ClusterPlayer){p->policy, p->settings, p->loaded(p, NULL, a)};
    for (uint32_t i = 0; i < g->n_rivals; i++) players[i + 1] = g->rivals[i].player;
    TRY(runs_each(g->runs, (uint32_t)((g->n_rivals + 1) * each), one, &s));
    for (size_t i = 0; i < each; i++) g->rule[i] = s.ends[i];
    for (uint32_t c = 0; c < g->n_cells; c++) g->best[c] = INFINITY;
    for (uint32_t i = 0; i < g->n_rivals; i++)
        note_rival(g, &g->rivals[i], s.ends + (i + 1) * each);
    *rule = mark_of(g, g->rule);
    arena_rewind(a, mark);
    return ERR_OK;
}

Err cluster_gauge_weights(const ClusterGauge *g, const Pupil *p, const float *w, Arena *scratch,
                          ClusterMark *out) {
    size_t        mark = scratch->used, each = (size_t)g->n_cells * g->traces;
    ClusterPlayer player = {p->policy, p->settings, p->loaded(p, w, scratch)};
    Sheet         s = {g, &player, arena_new(scratch, ClusterCourseEnd, each), 1};
    Err           e = runs_each(g->runs, (uint32_t)each, one, &s);
    if (e == ERR_OK) *out = mark_of(g, s.ends);
    arena_rewind(scratch, mark);
    return e;
}
