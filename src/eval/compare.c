#include "eval/compare.h"

#include "base/parallel_for.h"

typedef struct Batch {  // the runs of some cells
    const CompareState *state;
    uint32_t            first_cell;
} Batch;

uint64_t compare_runs(const CompareTier *t, const CompareParams *p, uint32_t n_cells,
                      uint32_t n_policies) {
    return (uint64_t)n_cells * n_policies * p->seeds * t->parts;
}

double *compare_values(const CompareState *s, uint32_t cell, uint32_t policy, uint32_t seed) {
    size_t run = ((size_t)cell * s->choices->n + policy) * s->params->seeds + seed;
    return &s->values[run * METRICS];
}

// Policies alternate, so that on a live machine all meet the same moments.
static Err run_one(void *self, uint32_t i, Arena *a) {
    const Batch        *b = self;
    const CompareState *s = b->state;
    uint32_t            n = s->choices->n, parts = s->tier->parts, seeds = s->params->seeds;
    CompareRun          at = {.policy = i % n,
                              .part = i / n % parts,
                              .seed = i / n / parts % seeds,
                              .cell = b->first_cell + i / n / parts / seeds};
    if (s->cells[at.cell].missing[at.policy] != NULL) return ERR_OK;
    return s->tier->run(s, at, a);
}

static Err open_cell(CompareState *s, uint32_t cell, Arena *a) {
    CompareCell *c = &s->cells[cell];
    c->loaded = arena_new(a, const void *, s->choices->n);
    c->missing = arena_new(a, const char *, s->choices->n);
    return s->tier->open(s, cell, a);
}

static Err check_missing(const CompareState *s, uint32_t first, uint32_t n_cells) {
    uint32_t n = s->choices->n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t missing = 0;
        for (uint32_t c = 0; c < n_cells; c++) missing += s->cells[first + c].missing[i] != NULL;
        if (missing == n_cells && (!s->choices->all || n == 1))
            return err_set(ERR_ARG, "%s: %s", s->choices->at[i].label, s->cells[first].missing[i]);
    }
    for (uint32_t c = first; c < first + n_cells; c++) {
        uint32_t i = 0;
        while (i < n && s->cells[c].missing[i] != NULL) i++;
        if (i == n)
            return err_set(ERR_ARG, "%s: no policy can run it; %s: %s", s->cells[c].name,
                           s->choices->at[0].label, s->cells[c].missing[0]);
    }
    return ERR_OK;
}

static Err run_cells(CompareState *s, uint32_t first, uint32_t n, Arena *a) {
    Batch       b = {s, first};
    ParallelFor jobs = {.run = run_one,
                        .self = &b,
                        .n = (uint32_t)compare_runs(s->tier, s->params, n, s->choices->n),
                        .progress = s->params->progress,
                        .progress_steps = 1};
    for (uint32_t i = 0; i < n; i++) TRY(open_cell(s, first + i, a));
    TRY(check_missing(s, first, n));
    return parallel_for(&jobs, s->params->threads);
}

static Err describe(const CompareState *s, uint32_t cell, Arena *a, ComparisonCell *out) {
    const PolicyChoices *c = s->choices;
    ComparisonEntry     *entries = arena_new(a, ComparisonEntry, c->n);
    for (uint32_t i = 0; i < c->n; i++) {
        entries[i] = (ComparisonEntry){.policy = c->at[i].label,
                                       .paper = c->at[i].info.paper,
                                       .part_of = c->at[i].part_of,
                                       .missing = s->cells[cell].missing[i],
                                       .values = compare_values(s, cell, i, 0)};
        s->tier->entry(s, cell, i, a, &entries[i]);
    }
    *out = (ComparisonCell){.entries = entries, .n_entries = c->n};
    return s->tier->describe(s, cell, a, out);
}

static void close_cells(const CompareState *s, uint32_t first, uint32_t n) {
    for (uint32_t i = 0; s->tier->close != NULL && i < n; i++) s->tier->close(s, first + i);
}

static Err make_state(const CompareTier *t, const CompareParams *p, const PolicyChoices *c,
                      uint32_t n_cells, Arena *a, CompareState *out) {
    uint64_t n = compare_runs(t, p, n_cells, c->n);
    if (n > COMPARE_RUNS_MAX)
        return err_set(ERR_ARG, "%u cells of %u policies with %u seeds are more than %d runs",
                       n_cells, c->n, p->seeds, COMPARE_RUNS_MAX);
    *out = (CompareState){.tier = t,
                          .params = p,
                          .choices = c,
                          .cells = arena_new(a, CompareCell, n_cells),
                          .n_cells = n_cells,
                          .values = arena_try_new(a, double, n / t->parts * METRICS)};
    if (out->values == NULL)
        return err_set(ERR_LIMIT, "no memory for the results of %llu runs", (unsigned long long)n);
    return ERR_OK;
}

Err compare_run(const CompareTier *t, const CompareParams *p, const void *tier_params,
                const PolicyChoices *c, uint32_t n_cells, void *kept, Arena *a, Comparison *out) {
    CompareState s;
    uint32_t     each = t->one_at_a_time ? 1 : n_cells;
    Err          e = make_state(t, p, c, n_cells, a, &s);
    if (e != ERR_OK) return e;
    ComparisonCell *cells = arena_new(a, ComparisonCell, n_cells);
    s.tier_params = tier_params;
    s.kept = kept;
    for (uint32_t i = 0; e == ERR_OK && i < n_cells; i += each) {
        e = run_cells(&s, i, each, a);
        for (uint32_t k = i; e == ERR_OK && k < i + each; k++) e = describe(&s, k, a, &cells[k]);
        close_cells(&s, i, each);
    }
    out->tier = t->tier;
    out->subject = p->subject;
    out->seeds = p->seeds;
    out->first_seed = p->first_seed;
    out->timed = p->timed;
    out->cells = cells;
    out->n_cells = n_cells;
    return e;
}
