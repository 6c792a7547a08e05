#include "eval/chip_explanation.h"

#include <string.h>

typedef struct DecisionFinder {
    DecisionQuery    query;
    ChipExplanation *to;
    uint64_t         n;  // decisions seen
    bool             found;
    // of the decision being traced
    const Relmas   *relmas;
    const ChipView *view;
} DecisionFinder;

static ExplainedTask *task_of(DecisionFinder *s, uint32_t task) {
    ChipExplanation *x = s->to;
    for (uint32_t i = x->n_tasks; i-- > 0;)
        if (x->tasks[i].task == task) return &x->tasks[i];
    if (x->n_tasks == EXPLAIN_TASKS) return NULL;
    const ChipTask     *t = &s->view->tasks[task];
    const RelmasScorer *rule = &s->relmas->dispatch.scorer;
    RelmasTaskState     c = relmas_task_state(rule, s->view, t);
    ExplainedTask      *to = &x->tasks[x->n_tasks++];
    *to = (ExplainedTask){.request = t->request,
                          .task = task,
                          .layer = t->layer,
                          .unit = CHIP_NONE,
                          .left_ms = (double)(t->request.deadline - s->view->now) / 1e6,
                          .rest_ms = (double)c.rest_ns / 1e6,
                          .slack_ms = (double)c.slack_ns / 1e6,
                          .output = relmas_dispatch_output(&s->relmas->dispatch, t),
                          .seen = s->relmas->dispatch.notes[t->slot].said == t->request.id + 1,
                          .infeasible = c.infeasible};
    to->score = relmas_score_task(rule, s->view, t, &c, &to->output, to->parts);
    return to;
}

static void add_pair(void *self, uint32_t task, uint32_t unit, float wait_ns, float fit,
                     const float parts[RELMAS_TERMS]) {
    DecisionFinder      *s = self;
    ChipExplanation     *x = s->to;
    const ExplainedTask *t = task_of(s, task);
    if (t == NULL || x->n_pairs == EXPLAIN_PAIRS) return;
    ExplainedPair *p = &x->pairs[x->n_pairs++];
    *p = (ExplainedPair){(uint32_t)(t - x->tasks), unit, wait_ns, fit, {0}};
    memcpy(p->parts, parts, sizeof p->parts);
}

static void add_decision(void *self, uint32_t task, uint32_t unit, RelmasDecision v) {
    DecisionFinder *s = self;
    ExplainedTask  *t = task_of(s, task);
    if (t == NULL) {
        s->to->more++;
        return;
    }
    t->unit = unit;
    t->outcome = v;
}

static void copy_units(ChipExplanation *x, const ChipView *v) {
    x->n_units = v->setup->n_units;
    for (uint32_t u = 0; u < x->n_units; u++) {
        const ChipUnit *unit = &v->units[u];
        x->units[u] = (ExplainedUnit){
            .busy = unit->task != CHIP_NONE, .bytes_ns = unit->bytes_ns, .cap = unit->cap};
        if (!x->units[u].busy) continue;
        x->units[u].request = v->tasks[unit->task].request.id;
        x->units[u].free_in = unit->free_at - v->now;
    }
}

static void copy_window(ChipExplanation *x, const Relmas *r) {
    x->n_seen = r->observation.n;
    for (uint32_t i = 0; i < r->observation.n; i++) x->seen[i] = r->ids[i];
    memcpy(x->features, r->observation.x, sizeof x->features);
}

static bool is_choice(const ChipExplanation *x) {
    uint32_t starts = 0;
    for (uint32_t i = 0; i < x->n_tasks; i++) starts += x->tasks[i].outcome == RELMAS_START;
    return x->n_tasks >= 2 && starts > 0 && starts < x->n_tasks;
}

static void observe(void *self, const ChipView *v, const void *state, bool planning) {
    DecisionFinder     *s = self;
    ChipAction          actions[2 * CHIP_UNITS];
    RelmasDecisionTrace trace = {add_pair, add_decision, s};
    if (planning || s->found) return;
    s->n++;
    if (v->now < s->query.from || (s->query.decision > 0 && s->n != s->query.decision)) return;
    memset(s->to, 0, sizeof *s->to);
    s->relmas = state;
    s->view = v;
    *s->to = (ChipExplanation){.decision = s->n,
                               .now = v->now,
                               .demand = v->demand,
                               .n_free = v->n_free,
                               .waiting = v->n_waiting};
    copy_units(s->to, v);
    copy_window(s->to, state);
    relmas_explain(state, v, &trace, actions, 2 * CHIP_UNITS);
    s->found = s->query.decision > 0 || is_choice(s->to);
}

Err chip_explanation_find(const ChipRun *run, DecisionQuery query, Arena *a, ChipExplanation *out) {
    DecisionFinder s = {.query = query, .to = out};
    ChipRun        observed = *run;
    ChipResult     r;
    observed.watch = observe;
    observed.watcher = &s;
    TRY(chip_simulate(&observed, a, &r));
    if (s.found) return ERR_OK;
    return err_set(ERR_ARG, "no such decision: the run has %llu, the last at %.3f ms",
                   (unsigned long long)s.n, (double)r.span / 1e6);
}

const ExplainedPair *chip_explanation_pair(const ChipExplanation *x, uint32_t task, uint32_t unit) {
    for (uint32_t i = 0; i < x->n_pairs; i++)
        if (x->pairs[i].task == task && x->pairs[i].unit == unit) return &x->pairs[i];
    return NULL;
}
